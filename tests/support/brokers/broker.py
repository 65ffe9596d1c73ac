"""A real Apache Kafka 3.9.1 broker in ZooKeeper mode as a child process, to compare with and to stand beside.

    with Broker(folder, zookeeper="127.0.0.1:2181", java=java, classpath=resolve(KAFKA_39, java)) as broker:
        broker.sasl      # "127.0.0.1:41237": PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
        broker.plaintext # "127.0.0.1:39121": no login

By hand, until Ctrl-C (the broker's log goes to DIR/broker.log):

    python -m tests.support.brokers.broker --zookeeper 127.0.0.1:2181 --directory DIR --override log.dirs=/somewhere

Ports are chosen by the system. AclAuthorizer without ACLs, everyone allowed; one partition, one replica everywhere.
Users of PLAIN are `USERS` unless told otherwise, the secret key is `SECRET_KEY`. The first start with a Java writes an
archive of the broker's classes (43 MB), which saves 0.8 of 2.1 CPU seconds of each later start.

Source: kafka.Kafka, kafka.server.KafkaServer.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from tests.support.java.class_archive import WRITING_TIMEOUT_S, archive_file, using, write_archive
from tests.support.java.jvm import QUICK_START, Java, find_java
from tests.support.java.maven import KAFKA_39, Classpath, resolve
from tests.support.java.properties import write_properties
from tests.support.processes.process import ChildProcess
from tests.support.zookeeper.server import make_chroot, running_zookeeper

SECRET_KEY = "interop-secret-key"
USERS = {"alice": "alice-secret", "bob": "bob-secret", "carol": "carol-secret", "admin": "admin-secret"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

START_TIMEOUT_S = 120.0

_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"

LOGGING_PROPERTIES = """\
log4j.rootLogger=INFO, stdout
log4j.logger.kafka=INFO
log4j.logger.org.apache.kafka.clients=WARN
log4j.logger.org.apache.zookeeper=WARN
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def sasl_properties(users: Mapping[str, str] = USERS, listener: str = "sasl_plaintext") -> dict[str, str]:
    """The settings of a listener that takes PLAIN of `users` and both SCRAM mechanisms, for any Kafka broker."""
    prefix = f"listener.name.{listener}"
    plain_users = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"{prefix}.plain.sasl.jaas.config": f"{_PLAIN_MODULE} required {plain_users};",
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{_SCRAM_MODULE} required;",
        f"{prefix}.scram-sha-512.sasl.jaas.config": f"{_SCRAM_MODULE} required;",
    }


class Broker:
    """One broker.

    Args:
        directory: receives its configuration, log and data.
        zookeeper: `zookeeper.connect`, chroot included.
        java: what runs it.
        classpath: the jars of Kafka 3.9.
        overrides: settings over the ones made here.
        heap_mb: its maximum heap.
        flags: of its JVM; None = those of a quick start.
        start_timeout_s: how long it may take to start; longer with many tokens.
    """

    def __init__(
        self,
        directory: Path,
        *,
        zookeeper: str,
        java: Java,
        classpath: Classpath,
        overrides: Mapping[str, object] | None = None,
        heap_mb: int = 384,
        flags: Sequence[str] | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._addresses: dict[str, str] = {}
        self._start_timeout_s = start_timeout_s
        self.configuration = write_properties(
            directory / "server.properties",
            {**_properties(zookeeper, directory / "data"), **(overrides or {})},
        )
        logging = directory / "log4j.properties"
        logging.write_text(LOGGING_PROPERTIES)
        command = java.command(
            "kafka.Kafka",
            [str(self.configuration)],
            classpath=classpath,
            heap_mb=heap_mb,
            properties={"log4j.configuration": logging.as_uri(), "kafka.logs.dir": str(directory)},
            flags=quick_broker(java, classpath) if flags is None else flags,
        )
        self.process = ChildProcess("broker", command, directory / "broker.log")

    def start(self) -> None:
        """Start it and wait until it serves; raises ProcessFailed with the end of its log."""
        with self.process.starting() as process:
            found = process.wait_for(r"Registered broker .* with addresses: (\S+), czxid", self._start_timeout_s)
            # Credentials and tokens are loaded by then, and the acceptors answer.
            process.wait_for(r"\[KafkaServer id=\d+\] started", self._start_timeout_s)
        self._addresses = dict(each.split("://") for each in found[1].split(","))

    def address(self, listener: str) -> str:
        """host:port of a listener once it runs, by its name."""
        return self._addresses[listener]

    @property
    def sasl(self) -> str:
        """host:port of the SASL_PLAINTEXT listener once it runs."""
        return self.address("SASL_PLAINTEXT")

    @property
    def plaintext(self) -> str:
        """host:port of the PLAINTEXT listener once it runs."""
        return self.address("PLAINTEXT")

    def stop(self) -> None:
        """Stop it; its session with ZooKeeper ends too, so that the next broker may have the same id."""
        self.process.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@cache
def quick_broker(java: Java, classpath: Classpath) -> tuple[str, ...]:
    """Options of the JVM of a broker that starts quickly."""
    file = archive_file("broker", java.executable, classpath)

    def end_writing(option: str) -> None:
        with (
            TemporaryDirectory() as folder,
            running_zookeeper(Path(folder, "zookeeper")) as address,
            Broker(
                Path(folder, "broker"),
                zookeeper=make_chroot(address, "classes"),
                java=java,
                classpath=classpath,
                flags=(*QUICK_START, option),
            ) as broker,
        ):
            broker.process.end(WRITING_TIMEOUT_S)

    write_archive(file, end_writing)
    return (*QUICK_START, *using(file))


def _properties(zookeeper: str, data: Path) -> dict[str, object]:
    return {
        "broker.id": 0,
        "zookeeper.connect": zookeeper,
        "zookeeper.connection.timeout.ms": 30000,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "inter.broker.listener.name": "PLAINTEXT",
        **sasl_properties(),
        "delegation.token.secret.key": SECRET_KEY,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": True,
        "log.dirs": str(data),
        "num.partitions": 1,
        "default.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "num.network.threads": 2,
        "num.io.threads": 2,
        "background.threads": 2,
        "controlled.shutdown.enable": False,
        "log.cleaner.enable": False,
        "log.flush.offset.checkpoint.interval.ms": 600000,
    }


def main() -> int:
    """Run one broker until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.brokers.broker", description=main.__doc__)
    parser.add_argument("--zookeeper", required=True, help="zookeeper.connect, for example 127.0.0.1:2181")
    parser.add_argument("--directory", type=Path, help="configuration, log and data; a temporary one without it")
    parser.add_argument("--override", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    overrides = dict(each.split("=", 1) for each in options.override)
    java = find_java()
    classpath = resolve(KAFKA_39, java, _say)
    with TemporaryDirectory(prefix="kafka-broker-") as temporary:
        directory = options.directory or Path(temporary)
        with Broker(
            directory, zookeeper=options.zookeeper, java=java, classpath=classpath, overrides=overrides
        ) as broker:
            _say(f"SASL_PLAINTEXT://{broker.sasl} PLAINTEXT://{broker.plaintext}")
            _wait_for_the_end()
    return 0


def _wait_for_the_end() -> None:
    ends = {signal.SIGINT, signal.SIGTERM}
    # Blocked only now: the broker, already started, must not inherit it.
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    signal.sigwait(ends)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
