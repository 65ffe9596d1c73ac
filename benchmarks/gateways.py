"""The ways to one broker that are compared: directly, through kafka-dt as a gateway, and through grepplabs/kafka-proxy.

    with stage(bench) as ways:
        for round_number, way in bench.rounds("produce", ways.all): ...

The broker is Kafka 4.3 without ZooKeeper, with the options of Kafka's start script. On every way the client connects to
a SASL_PLAINTEXT listener and logs in with PLAIN. The program in between logs in at the broker with SCRAM-SHA-512 as
itself (`service`, and kafka-proxy), or with a token of the client's principal (`owner-token`). With `tls=True` all of
these connections are TLS connections, those of clients and those to the broker, and clients verify certificates.

kafka-proxy is measured where `KAFKA_PROXY` in the environment names its program; the program of its plugin for PLAIN,
`auth-user`, must be in the same folder. Otherwise the tables say that its figures are missing.

Source: kafka-server-start.sh; kafka-proxy's README.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.bench import Bench
from benchmarks.generator import password_of
from benchmarks.perf_tools import USER, PerfTools, client_tls
from benchmarks.processes import Memory, ProcessTree
from benchmarks.servers import BROKER, HEAP_MB, JVM, KAFKA_DEFAULTS, KAFKA_DT, Subject
from benchmarks.tls import write_trust_store
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from kafka_dt_protocol.api.responses import element_type
from tests.support.brokers.broker import SECRET_KEY, sasl_properties
from tests.support.brokers.kraft import GATEWAY, GATEWAY_PASSWORD, RELEASES, KraftCluster
from tests.support.brokers.kraft_operator import CREATE_TOPICS, describe_topic
from tests.support.java.maven import KAFKA_4X, resolve
from tests.support.nodes.gateway import IDENTITY, PORT_BASE, UPSTREAM, service_login
from tests.support.nodes.server import KafkaDt
from tests.support.processes.ports import free_ports
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import RawConnection, ms, request_type

KAFKA_DT_OWNER_TOKEN: Final = Subject("kafka-dt, owner-token", workers=KAFKA_DT.workers)
KAFKA_PROXY: Final = Subject("kafka-proxy")
PROGRAM_VARIABLE: Final = "KAFKA_PROXY"
PLUGIN: Final = "auth-user"

_DELETE_TOPICS: Final = 20
_VERSION: Final = 4
"""Of CreateTopics and DeleteTopics."""
_TIMEOUT_MS: Final = 30_000
_PORTS: Final = 2
"""Of a gateway: for the ids 0 and 1."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to the broker."""

    subject: Subject
    address: str
    """host:port that clients are given."""
    broker: ChildProcess
    between: ChildProcess | None = None
    """The program between client and broker; None on the direct way."""

    @property
    def running(self) -> bool:
        """Whether the process that clients connect to runs."""
        return (self.between or self.broker).running

    def all_cpu_seconds(self) -> float:
        """Tell what it has used; the broker counts as the direct way."""
        return _tree(self.between or self.broker).cpu_seconds()

    def cpu_seconds(self) -> tuple[float, float]:
        """Tell what has been used: by what is between, and by the broker."""
        between = _tree(self.between).cpu_seconds() if self.between else 0.0
        return between, _tree(self.broker).cpu_seconds()

    def memory(self) -> Memory | None:
        """Tell what it has in memory, if anything is between."""
        return _tree(self.between).memory() if self.between else None


@dataclass(frozen=True, slots=True)
class Stage:
    """The broker, and the ways to it."""

    ways: tuple[Way, ...]
    tools: PerfTools
    plaintext: str
    """host:port of the broker's listener without login."""

    def make_topic(self, name: str, partitions: int) -> None:
        """Make a topic and wait until its partitions have their leader."""
        topic_type = element_type(request_type(CREATE_TOPICS, _VERSION), "topics")
        topic = topic_type(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
        with RawConnection(self.plaintext) as connection:
            answer = connection.ask(CREATE_TOPICS, _VERSION, topics=(topic,), timeout=ms(_TIMEOUT_MS))
            assert answer.topics[0].error_code.value == 0, answer
            eventually(lambda: _has_leaders(connection, name, partitions), _TIMEOUT_MS / 1000)

    def remove_topic(self, name: str) -> None:
        """Remove a topic, so that the disk does not fill."""
        with RawConnection(self.plaintext) as connection:
            connection.ask(_DELETE_TOPICS, _VERSION, topic_names=(name,), timeout=ms(_TIMEOUT_MS))


@dataclass(frozen=True, slots=True)
class Encryption:
    """What connections with TLS need."""

    key_store: Path
    """Of all servers: PEM with key and certificate."""
    trusted: Path
    """The certificate alone."""

    @property
    def server(self) -> dict[str, Any]:
        """Settings of a server."""
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.key_store}

    @property
    def broker(self) -> dict[str, Any]:
        """Settings of the broker, whose listener with login keeps its name."""
        protocols = "SASL_PLAINTEXT:SASL_SSL,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
        return {**self.server, "listener.security.protocol.map": protocols}

    @property
    def kafka_proxy(self) -> list[str]:
        """Arguments of kafka-proxy."""
        listener = ("cert-file", "key-file")
        return [
            *("--proxy-listener-tls-enable", *(f"--proxy-listener-{each}={self.key_store}" for each in listener)),
            *("--tls-enable", f"--tls-ca-chain-cert-file={self.trusted}"),
        ]


@contextmanager
def stage(bench: Bench, *, tls: bool = False) -> Iterator[Stage]:
    """Start everything, and stop it at the end.

    Args:
        bench: has the programs and the folder.
        tls: whether clients, gateways and the broker speak TLS with each other.
    """
    bench.clear_stage()
    key_store = bench.kit.key_store
    encryption = Encryption(key_store, write_trust_store(key_store)) if tls else None
    folder = bench.folder_of("gateway")
    shutil.rmtree(folder, ignore_errors=True)
    java = bench.kit.java
    with ExitStack() as stack, bench.console.status("starting the broker and the ways to it"):
        settings = {"allow.everyone.if.no.acl.found": True, **(encryption.broker if encryption else {})}
        cluster = stack.enter_context(kafka_4(bench, folder / "kraft", settings))
        zookeeper = stack.enter_context(EmbeddedZooKeeper(folder / "zookeeper"))
        (node,) = cluster.brokers.values()
        ways = [Way(BROKER, node.sasl, node.process)]
        for subject, identity in ((KAFKA_DT, "service"), (KAFKA_DT_OWNER_TOKEN, "owner-token")):
            base = free_ports(_PORTS)
            properties = _properties(f"{zookeeper.address}/{identity}", node.sasl, identity, base, encryption)
            gateway = stack.enter_context(KafkaDt(folder / identity, properties))
            ways.append(Way(subject, gateway.address(_protocol(encryption)), node.process, gateway.process))
        if program := kafka_proxy():
            port = free_ports(1)
            process = ChildProcess(
                "kafka-proxy", _command(program, node.sasl, port, encryption), folder / "kafka-proxy.log"
            )
            stack.enter_context(process).wait_for("Ready for new connections", 30)
            ways.append(Way(KAFKA_PROXY, f"127.0.0.1:{port}", node.process, process))
        else:
            bench.console.print(f"[yellow]{PROGRAM_VARIABLE} names no kafka-proxy: it is not measured")
        tools = PerfTools(java, resolve(KAFKA_4X, java), folder / "tools", encryption.trusted if encryption else None)
        yield Stage(tuple(ways), tools, node.plaintext)


def kafka_4(bench: Bench, folder: Path, settings: Mapping[str, object]) -> KraftCluster:
    """Make a Kafka 4 broker that does not run yet, with the options of Kafka's start script.

    Args:
        bench: has the programs.
        folder: receives its files.
        settings: over its own.
    """
    java = bench.kit.java
    return KraftCluster(
        folder,
        java=java,
        classpath=tuple(jar for bundle in RELEASES["4.x"] for jar in resolve(bundle, java, bench.console.print)),
        brokers=1,
        heap_mb=HEAP_MB,
        flags=(f"-Xms{HEAP_MB}m", *JVM),
        overrides={
            **KAFKA_DEFAULTS,
            "offsets.topic.num.partitions": 1,
            "log.segment.delete.delay.ms": 1000,
            **settings,
        },
    )


def kafka_proxy() -> Path | None:
    """Find the program of kafka-proxy; None where it, or its plugin, is not at hand."""
    found = shutil.which(os.environ.get(PROGRAM_VARIABLE, "kafka-proxy"))
    return Path(found) if found and Path(found).with_name(PLUGIN).exists() else None


def kafka_proxy_version() -> str:
    """Tell its version; empty where it is not at hand."""
    program = kafka_proxy()
    if program is None:
        return ""
    return subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout.strip()


def _protocol(encryption: Encryption | None) -> str:
    return "SASL_PLAINTEXT" if encryption is None else "SASL_SSL"


def _properties(
    zookeeper: str, upstream: str, identity: str, base: int, encryption: Encryption | None
) -> dict[str, Any]:
    protocol = _protocol(encryption)
    upstream_login = service_login() | client_tls(encryption.trusted if encryption else None)
    return {
        "zookeeper.connect": zookeeper,
        "listeners": f"{protocol}://127.0.0.1:0",
        **sasl_properties(listener=protocol.lower()),
        **(encryption.server if encryption else {}),
        "delegation.token.secret.key": SECRET_KEY,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "kafka.dt.workers": KAFKA_DT.workers,
        f"{UPSTREAM}.bootstrap.servers": upstream,
        **{f"{UPSTREAM}.{key}": value for key, value in upstream_login.items()},
        IDENTITY: identity,
        PORT_BASE: base,
    }


def _command(program: Path, upstream: str, port: int, encryption: Encryption | None) -> list[str]:
    """Start kafka-proxy with its defaults, on this machine's own addresses alone."""
    return [
        *(str(program), "server"),
        *("--bootstrap-server-mapping", f"{upstream},127.0.0.1:{port}"),
        *("--default-listener-ip", "127.0.0.1", "--dynamic-listeners-disable", "--http-disable"),
        *("--sasl-enable", "--sasl-method", "SCRAM-SHA-512"),
        *("--sasl-username", GATEWAY, "--sasl-password", GATEWAY_PASSWORD),
        *("--auth-local-enable", "--auth-local-command", str(program.with_name(PLUGIN))),
        *(f"--auth-local-param=--username={USER}", f"--auth-local-param=--password={password_of(USER)}"),
        *(encryption.kafka_proxy if encryption else []),
    ]


def _has_leaders(connection: RawConnection, topic: str, partitions: int) -> bool:
    found = describe_topic(connection, topic).partitions
    return len(found) == partitions and all(each.leader_id >= 0 for each in found)


def _tree(process: ChildProcess) -> ProcessTree:
    assert process.pid is not None, "it does not run"
    return ProcessTree(process.pid)
