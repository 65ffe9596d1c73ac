"""A real Apache Kafka cluster without ZooKeeper (KRaft) as child processes: what a gateway stands in front of.

    classpath = (*resolve(LOGGING, java), *resolve(KAFKA_4X, java))     # RELEASES["4.x"]
    with KraftCluster(folder, java=java, classpath=classpath) as cluster:
        cluster.sasl              # "127.0.0.1:17321,127.0.0.1:17323": PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
        cluster.plaintext         # no login; also between the brokers
        cluster.brokers[2].kill()
        cluster.brokers[2].start()    # on the same ports, with its records
        third = cluster.another_broker(3)     # to be started; after its end, the same one on other ports

Brokers are 1, 2, ...; the first ones are controllers as well, or `separate_controller` is. StandardAuthorizer: only
`GATEWAY`, the super user that makes tokens for others, may do anything until an ACL says so; a connection without login
is one of the brokers, and may do everything. PLAIN takes `USERS` and the gateway. SCRAM takes the gateway alone, with
the same password.

By hand, until Ctrl-C:

    python -m tests.support.brokers.kraft --directory DIR --release 3.9 --override log.dirs=/somewhere

The first start with a Java writes an archive of the classes (50 MB), which saves 0.9 of 2.4 CPU seconds of each later
start of a node.

Limits: everything on 127.0.0.1; a broker that was killed is let in again after SESSION_TIMEOUT_MS.
Source: kafka.Kafka, kafka.tools.StorageTool, KIP-500, KIP-631, KIP-900.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final, Self

from tests.support.brokers.broker import LOGGING_PROPERTIES, SECRET_KEY, USERS, sasl_properties
from tests.support.brokers.controller_links import ControllerLinks
from tests.support.java.class_archive import WRITING_TIMEOUT_S, archive_file, using, write_archive
from tests.support.java.jvm import QUICK_START, Java, find_java
from tests.support.java.maven import KAFKA_4X, KAFKA_39, LOGGING, Classpath, resolve
from tests.support.java.properties import SCRAM_MECHANISMS, write_properties
from tests.support.processes.ports import free_ports
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import METADATA, RawConnection

GATEWAY: Final = "gateway"
GATEWAY_PASSWORD: Final = "gateway-secret"
RELEASES: Final = {"3.9": (KAFKA_39,), "4.x": (LOGGING, KAFKA_4X)}
"""The jars of a broker, in the order of its class path."""
CONTROLLER_ID: Final = 100
"""Of a controller that is no broker."""
SESSION_TIMEOUT_MS: Final = 3_000
"""A broker that has been silent for so long is gone: others lead its partitions."""

START_TIMEOUT_S: Final = 120.0
_FORMAT_TIMEOUT_S: Final = 60.0
_FIRST_RECORDS: Final = ("bootstrap.checkpoint", "__cluster_metadata-0")
"""The file with what the first leader of the controllers writes into the empty metadata log; since 4.4 a folder with
what the log of each of them begins with (KIP-1170)."""

_MEMBERS: Final = (("heartbeat.interval.ms", 200), ("min.heartbeat.interval.ms", 200), ("assignment.interval.ms", 0))
_ONE_CONTROLLER: Final = {
    # It has no other member to wait for.
    "controller.quorum.election.timeout.ms": 200,
    "controller.quorum.election.backoff.max.ms": 200,
}
_QUICK: Final = {
    "broker.heartbeat.interval.ms": 200,
    "broker.session.timeout.ms": SESSION_TIMEOUT_MS,
    "replica.fetch.backoff.ms": 200,
    "group.initial.rebalance.delay.ms": 0,
    # Members are told what is theirs in the answer to their next heartbeat.
    **{f"group.{kind}.{name}": ms for kind in ("consumer", "share") for name, ms in _MEMBERS},
}
_SMALL: Final = {
    "num.partitions": 1,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "share.coordinator.state.topic.num.partitions": 1,
    "num.network.threads": 2,
    "num.io.threads": 2,
    "background.threads": 2,
    "num.replica.fetchers": 1,
    "log.cleaner.dedupe.buffer.size": 2_097_152,
    "log.index.size.max.bytes": 1_048_576,
    "log.flush.offset.checkpoint.interval.ms": 600_000,
}


@dataclass(frozen=True, slots=True)
class Node:
    """One process of a cluster, broker or controller or both, and its ports."""

    node_id: int
    process: ChildProcess
    sasl: str
    """host:port with login; empty of a mere controller."""
    plaintext: str
    """host:port without login; empty of a mere controller."""

    def launch(self) -> None:
        """Start it without waiting."""
        self.process.start()

    def wait(self) -> None:
        """Wait until it serves; raises ProcessFailed with the end of its log."""
        self.process.wait_for(r"Kafka Server started", START_TIMEOUT_S)

    def start(self) -> None:
        """Start it, again too, and wait until it serves."""
        self.launch()
        self.wait()

    def stop(self) -> None:
        """Let it hand over what it leads and end."""
        self.process.stop()

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()


class KraftCluster:
    """One cluster.

    Args:
        directory: receives configurations, logs and data.
        java: what runs it.
        classpath: the jars of one of `RELEASES`.
        brokers: how many.
        controllers: how many of the brokers are controllers as well.
        separate_controller: whether the only controller is a process of its own, so that each broker may be killed.
        links: gives the ways to the controllers into the hands of the test.
        overrides: settings over the ones made here, for all.
        heap_mb: maximum heap of each.
        flags: of each JVM; None = those of a quick start.
    """

    def __init__(
        self,
        directory: Path,
        *,
        java: Java,
        classpath: Classpath,
        brokers: int = 2,
        controllers: int = 1,
        separate_controller: bool = False,
        links: ControllerLinks | None = None,
        overrides: Mapping[str, object] | None = None,
        heap_mb: int = 320,
        flags: Sequence[str] | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.cluster_id = _uuid()
        self._directory = directory
        self._java = java
        self._classpath = classpath
        self._heap_mb = heap_mb
        self._quick_flags = quick_kraft(java, classpath) if flags is None else QUICK_START
        self._flags = self._quick_flags if flags is None else flags
        self._overrides = dict(overrides or {})
        self._replicas = min(brokers, 2)
        self._logging = directory / "log4j.properties"
        self._logging.write_text(LOGGING_PROPERTIES)
        self._links = links
        ids = (CONTROLLER_ID,) if separate_controller else tuple(range(1, controllers + 1))
        first = free_ports(2 * brokers + len(ids))
        self._controllers = {each: first + 2 * brokers + index for index, each in enumerate(ids)}
        """The ports of the controllers by their ids."""
        self.brokers = {each + 1: self._node(each + 1, first + 2 * each) for each in range(brokers)}
        """Those that are there from the start on."""
        self._nodes = [*self.brokers.values()]
        if separate_controller:
            self._nodes.append(self._node(CONTROLLER_ID, None))

    @property
    def sasl(self) -> str:
        """`bootstrap.servers` with login."""
        return ",".join(each.sasl for each in self.brokers.values())

    @property
    def plaintext(self) -> str:
        """`bootstrap.servers` without login, for super users."""
        return ",".join(each.plaintext for each in self.brokers.values())

    def start(self) -> None:
        """Start all and wait until each knows every other; raises ProcessFailed with the end of a log."""
        try:
            if self._links is not None:
                self._links.start((each.node_id for each in self._nodes), self._controllers)
            # The brokers wait for their controllers, whose directories take a tool to make.
            for node in self._nodes:
                if node.node_id not in self._controllers:
                    self._write_meta(node)
                    node.launch()
            self._format()
            for controller in self._controllers:
                self._node_of(controller).launch()
            for node in self._nodes:
                node.wait()
            for broker in self.brokers.values():
                _wait_for_brokers(broker, set(self.brokers))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Kill all nodes at once; no test needs their data any more."""
        for node in self._nodes:
            node.kill()
        if self._links is not None:
            self._links.stop()

    def another_broker(self, broker_id: int, **overrides: object) -> Node:
        """Make one more broker, on ports of its own; made again, it has other ports and the data of before.

        Args:
            broker_id: of none of `brokers`; it may be running no more.
            overrides: further settings, with `_` for each `.`.

        Returns:
            What the caller starts, and stops in the end.
        """
        settings = {key.replace("_", "."): value for key, value in overrides.items()}
        node = self._node(broker_id, free_ports(2), settings)
        if not self._data(broker_id).exists():
            self._write_meta(node)
        return node

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _node_of(self, node_id: int) -> Node:
        return next(each for each in self._nodes if each.node_id == node_id)

    def _node(self, node_id: int, port: int | None, settings: Mapping[str, object] = MappingProxyType({})) -> Node:
        """Write the configuration of a broker with two ports, or of a mere controller."""
        sasl, plaintext = ("", "") if port is None else (f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}")
        roles = [] if port is None else ["broker"]
        listeners = [] if port is None else [f"SASL_PLAINTEXT://{sasl}", f"PLAINTEXT://{plaintext}"]
        if node_id in self._controllers:
            roles.append("controller")
            listeners.append(f"CONTROLLER://{self._address(node_id)}")
        configuration = write_properties(
            self._file(node_id, "properties"),
            {
                "process.roles": ",".join(roles),
                "node.id": node_id,
                "listeners": ",".join(listeners),
                **({"inter.broker.listener.name": "PLAINTEXT"} if port is not None else {}),
                **self._properties(),
                "log.dirs": self._data(node_id),
                **self._overrides,
                **settings,
            },
        )
        command = self._java.command(
            "kafka.Kafka",
            [str(configuration)],
            classpath=self._classpath,
            heap_mb=self._heap_mb,
            properties={
                "log4j.configuration": self._logging.as_uri(),
                "kafka.logs.dir": str(self._directory),
                **self._own_hosts(node_id),
            },
            flags=self._flags,
        )
        return Node(node_id, ChildProcess(f"node {node_id}", command, self._file(node_id, "log")), sasl, plaintext)

    def _properties(self) -> dict[str, object]:
        return {
            "controller.quorum.voters": ",".join(f"{each}@{self._address(each)}" for each in self._controllers),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": (
                "SASL_PLAINTEXT:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            **sasl_properties({**USERS, GATEWAY: GATEWAY_PASSWORD}),
            "delegation.token.secret.key": SECRET_KEY,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{GATEWAY};User:ANONYMOUS",
            "auto.create.topics.enable": False,
            # A refused login is an answer, not something to wait for.
            "connection.failed.authentication.delay.ms": 0,
            "offsets.topic.replication.factor": self._replicas,
            "transaction.state.log.replication.factor": self._replicas,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": self._replicas,
            "share.coordinator.state.topic.min.isr": 1,
            **_SMALL,
            **_QUICK,
            **(_ONE_CONTROLLER if len(self._controllers) == 1 else {}),
        }

    def _address(self, controller: int) -> str:
        host = "127.0.0.1" if self._links is None else self._links.host(controller)
        return f"{host}:{self._controllers[controller]}"

    def _own_hosts(self, node_id: int) -> dict[str, str]:
        """The option of the JVM that names the hosts file of a node."""
        if self._links is None:
            return {}
        return {
            "jdk.net.hosts.file": str(self._links.write_hosts(self._file(node_id, "hosts"), node_id, self._controllers))
        }

    def _write_meta(self, node: Node) -> None:
        """Make the data directory of a broker, as kafka-storage does without a JVM's start."""
        data = self._data(node.node_id)
        data.mkdir(parents=True)
        meta = {"version": 1, "cluster.id": self.cluster_id, "node.id": node.node_id, "directory.id": _uuid()}
        write_properties(data / "meta.properties", meta)

    def _format(self) -> None:
        """Make the data directories of the controllers, with the gateway's credentials and the newest features."""
        first, *others = self._controllers
        arguments = ["format", "--cluster-id", self.cluster_id]
        arguments += ["--config", str(self._file(first, "properties"))]
        for mechanism in SCRAM_MECHANISMS:
            arguments += ["--add-scram", f"{mechanism}=[name={GATEWAY},password={GATEWAY_PASSWORD}]"]
        # The tool reads arguments from a file too, which other users cannot read as they can a command line.
        given = self._directory / "format.arguments"
        given.touch(mode=0o600)
        given.write_text("\n".join(arguments))
        command = self._java.command(
            "kafka.tools.StorageTool",
            [f"@{given}"],
            classpath=self._classpath,
            properties={"log4j.configuration": self._logging.as_uri()},
            flags=self._quick_flags,
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FORMAT_TIMEOUT_S, check=False)
        if done.returncode:
            raise AssertionError(f"kafka-storage format: status {done.returncode}\n{done.stdout}\n{done.stderr}")
        for other in others:
            self._write_meta(self._node_of(other))
            for name in _FIRST_RECORDS:
                made, copy = self._data(first) / name, self._data(other) / name
                if made.is_dir():
                    shutil.copytree(made, copy)
                elif made.exists():
                    shutil.copy(made, copy)

    def _data(self, node_id: int) -> Path:
        return self._directory / f"data-{node_id}"

    def _file(self, node_id: int, kind: str) -> Path:
        return self._directory / f"node-{node_id}.{kind}"


@cache
def quick_kraft(java: Java, classpath: Classpath) -> tuple[str, ...]:
    """Options of the JVM of a broker or controller that starts quickly."""
    file = archive_file("kraft", java.executable, classpath)

    def end_writing(option: str) -> None:
        flags = (*QUICK_START, option)
        with (
            TemporaryDirectory() as folder,
            KraftCluster(Path(folder), java=java, classpath=classpath, brokers=1, flags=flags) as cluster,
        ):
            cluster.brokers[1].process.end(WRITING_TIMEOUT_S)

    write_archive(file, end_writing)
    return (*QUICK_START, *using(file))


def _uuid() -> str:
    """Make an id as Kafka writes them; one that begins with a dash would be an option to its tools."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _wait_for_brokers(broker: Node, brokers: set[int]) -> None:
    """Wait until a broker knows all others."""

    def known() -> bool:
        return {each.node_id for each in connection.ask(METADATA, 1, topics=()).brokers} == brokers

    with RawConnection(broker.plaintext) as connection:
        eventually(known, START_TIMEOUT_S)


def main() -> int:
    """Run one cluster until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.brokers.kraft", description=main.__doc__)
    parser.add_argument("--directory", type=Path, help="configuration, log and data; a temporary one without it")
    parser.add_argument("--release", choices=RELEASES, default="4.x")
    parser.add_argument("--brokers", type=int, default=2)
    parser.add_argument("--override", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    overrides = dict(each.split("=", 1) for each in options.override)
    java = find_java()
    bundles = RELEASES[options.release]
    classpath = tuple(jar for bundle in bundles for jar in resolve(bundle, java, _say))
    with TemporaryDirectory(prefix="kraft-") as temporary:
        directory = options.directory or Path(temporary)
        with KraftCluster(
            directory, java=java, classpath=classpath, brokers=options.brokers, overrides=overrides
        ) as cluster:
            _say(f"SASL_PLAINTEXT {cluster.sasl} PLAINTEXT {cluster.plaintext}")
            ends = {signal.SIGINT, signal.SIGTERM}
            # Blocked only now: the nodes, already started, must not inherit it.
            signal.pthread_sigmask(signal.SIG_BLOCK, ends)
            signal.sigwait(ends)
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
