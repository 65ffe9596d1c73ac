"""The servers that are compared, each with a ZooKeeper of its own: `Subject` names one, `start_server` makes it run.

Both read the same settings. The broker gets the JVM options of Kafka's own start script and Kafka's defaults where the
settings of the tests would be smaller; kafka-dt runs as it is installed. Both have two listeners, SASL_PLAINTEXT and
SASL_SSL, with PLAIN and SCRAM. ACLs are on. Both ZooKeepers are the same program with the same options, and write
to the same disk before they answer.

Source: kafka-run-class.sh, kafka-server-start.sh of Kafka 3.9.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks.generator import password_of
from benchmarks.processes import Memory, ProcessTree
from benchmarks.tokens import AUDITOR, EVERYBODY_ELSE, OWNERS, PreparedTokens, heap_mb
from kafka_dt.config import Settings
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from tests.support.brokers.broker import Broker, sasl_properties
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.processes.ports import free_ports
from tests.support.processes.process import ChildProcess

HEAP_MB: Final = 1024
JVM: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
START_TIMEOUT_S: Final = 3600.0
"""A broker needs 8 to 20 ms a token, of which the table of describes has 100,000."""
SESSION_MS: Final = 660_000
"""How long a session lasts. Java clients log in again when 85 to 95 % of it are over: after ten minutes."""
KAFKA_DEFAULTS: Final = {"num.network.threads": 3, "num.io.threads": 8, "background.threads": 10}
USERS: Final = {user: password_of(user) for user in ("alice", "admin", AUDITOR, EVERYBODY_ELSE, *OWNERS)}


@dataclass(frozen=True, slots=True)
class Subject:
    """Who is measured."""

    name: str
    """In results and tables."""
    workers: int = 0
    """Of kafka-dt; 0 is the broker."""
    heap_mb: int = HEAP_MB
    """Of the broker."""
    sealed: bool = False
    """Whether its tokens are sealed in ZooKeeper, those that it finds there as well."""
    audit: str = ""
    """The mode of its audit events, which go to files; empty: there are none."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables of kafka-dt beyond those of this process."""

    @property
    def is_broker(self) -> bool:
        """Whether this is the broker, to which all others are compared."""
        return self.workers == 0


BROKER: Final = Subject("broker")
SMALL_BROKER: Final = Subject("broker, 256 MiB of heap", heap_mb=256)
KAFKA_DT: Final = Subject("kafka-dt", workers=2, sealed=True)
"""With its defaults."""
UNSEALED: Final = Subject("kafka-dt, unsealed", workers=2)
"""Its tokens are in ZooKeeper as a broker's are."""
ONE_WORKER: Final = Subject("kafka-dt, 1 worker", workers=1, sealed=True)
ONE_WORKER_UNSEALED: Final = Subject("kafka-dt, 1 worker, unsealed", workers=1)


class Program(Protocol):
    """The process of a server: of the broker or of kafka-dt."""

    process: ChildProcess

    def start(self) -> None:
        """Start it and wait until it serves."""

    def stop(self) -> object:
        """Stop it."""


@dataclass(frozen=True, slots=True)
class Kit:
    """The programs and files that servers share."""

    java: Java
    classpath: Classpath
    """The broker's."""
    key_store: Path
    """PEM, for the listeners with TLS."""
    classes: Path
    """Of the load generator."""


@dataclass(slots=True)
class Server:
    """One server with its ZooKeeper."""

    subject: Subject
    zookeeper: EmbeddedZooKeeper
    program: Program
    ports: tuple[int, int]
    tokens: PreparedTokens

    @property
    def address(self) -> str:
        """host:port of the listener without TLS."""
        return f"127.0.0.1:{self.ports[0]}"

    @property
    def tls_address(self) -> str:
        """host:port of the listener with TLS."""
        return f"127.0.0.1:{self.ports[1]}"

    @property
    def running(self) -> bool:
        """Whether both are up."""
        return self.zookeeper.running and self.program.process.running

    def start(self) -> None:
        """Start ZooKeeper and the server, and wait until it serves."""
        self.zookeeper.start(START_TIMEOUT_S)
        try:
            self.program.start()
        except BaseException:
            self.zookeeper.stop()
            raise

    def stop(self) -> None:
        """Stop both."""
        try:
            self.program.stop()
        finally:
            self.zookeeper.stop()

    def cpu_seconds(self) -> float:
        """Tell what the server has used, with all its processes."""
        return ProcessTree(_running(self.program.process.pid)).cpu_seconds()

    def zookeeper_cpu_seconds(self) -> float:
        """Tell what its ZooKeeper has used."""
        return ProcessTree(_running(self.zookeeper.server_pid)).cpu_seconds()

    def all_cpu_seconds(self) -> float:
        """Tell what both have used."""
        return self.cpu_seconds() + self.zookeeper_cpu_seconds()

    def memory(self) -> Memory:
        """Tell what the server has in memory, with all its processes, without ZooKeeper."""
        return ProcessTree(_running(self.program.process.pid)).memory()


def make_server(
    subject: Subject, kit: Kit, folder: Path, tokens: PreparedTokens, zookeeper: EmbeddedZooKeeper | None = None
) -> Server:
    """Make a server that does not run yet.

    Args:
        subject: which one.
        kit: what it is made of.
        folder: receives its files and its ZooKeeper's; what is left there by an earlier one goes.
        tokens: what its ZooKeeper holds.
        zookeeper: one that runs already, shared with other servers; `start` leaves it alone.
    """
    shutil.rmtree(folder, ignore_errors=True)
    if zookeeper is None:
        tokens.copy_to(folder / "zookeeper")
        zookeeper = EmbeddedZooKeeper(folder / "zookeeper", port=free_ports(1), heap_mb=heap_mb(tokens.count))
    # A measured start begins before the server could report a port of its own choice.
    first = free_ports(2)
    ports = (first, first + 1)
    properties = _properties(zookeeper.address, ports, kit.key_store)
    name = "broker" if subject.is_broker else "kafka-dt"
    return Server(subject, zookeeper, _program(subject, kit, folder / name, properties), ports, tokens)


def _program(subject: Subject, kit: Kit, folder: Path, properties: Mapping[str, object]) -> Program:
    if subject.is_broker:
        return Broker(
            folder,
            zookeeper=str(properties["zookeeper.connect"]),
            java=kit.java,
            classpath=kit.classpath,
            overrides={**properties, **KAFKA_DEFAULTS, "inter.broker.listener.name": "PLAINTEXT"}
            | {"listeners": f"{properties['listeners']},PLAINTEXT://127.0.0.1:0"},
            heap_mb=subject.heap_mb,
            flags=(f"-Xms{subject.heap_mb}m", *JVM),
            start_timeout_s=START_TIMEOUT_S,
        )
    settings = {
        **properties,
        "kafka.dt.workers": subject.workers,
        "delegation.token.metadata.encryption.enable": subject.sealed,
        "kafka.dt.log.lines.per.minute": Settings.log_lines_per_minute,
    }
    if subject.audit:
        settings |= {"kafka.dt.audit.mode": subject.audit, "kafka.dt.audit.log.dir": folder / "audit"}
    environment = dict(subject.environment) or None
    return KafkaDt(folder, settings, environment=environment, start_timeout_s=START_TIMEOUT_S)


def _properties(zookeeper: str, ports: tuple[int, int], key_store: Path) -> dict[str, Any]:
    return {
        **server_properties(zookeeper),
        **sasl_properties(USERS),
        **sasl_properties(USERS, "sasl_ssl"),
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{ports[0]},SASL_SSL://127.0.0.1:{ports[1]}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": key_store,
        "connections.max.reauth.ms": SESSION_MS,
        "allow.everyone.if.no.acl.found": False,
        "super.users": "User:admin;User:ANONYMOUS",
    }


def _running(pid: int | None) -> int:
    assert pid is not None, "it does not run"
    return pid
