"""`kafka-dt serve` as a child process, configured like a broker.

    with KafkaDt(folder, {"zookeeper.connect": ..., **sasl_properties(), ...}) as server:
        server.address("SASL_PLAINTEXT")   # "127.0.0.1:40123"

Listeners may ask for port 0; the address is taken from the line with which the server says that it is ready.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.support.brokers.broker import SECRET_KEY, sasl_properties
from tests.support.java.properties import write_properties
from tests.support.processes.forked import fork_server
from tests.support.processes.process import ChildProcess

START_TIMEOUT_S = 60.0
READY = r'kafka-dt is ready: (?P<listeners>[^\n"]+)["\n]'

PROGRAM = Path(sys.executable).with_name("kafka-dt")
FAR_AWAY = 10**9
AS_INSTALLED = Path(__file__).with_name("as_installed")
"""For PYTHONPATH: stands before packages of the tests that a program must not find, as where it is installed."""


def server_properties(zookeeper: str) -> dict[str, object]:
    """The settings of a server with the listeners, users and key of `tests.support.brokers.broker.Broker`.

    Its tokens are plain in ZooKeeper, so that a broker beside it can read them. Tests and benchmarks create as many as
    they can for the same few users, so the limits of how many and how often are far away.
    """
    return {
        "zookeeper.connect": zookeeper,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        **sasl_properties(),
        "delegation.token.secret.key": SECRET_KEY,
        "delegation.token.metadata.encryption.enable": False,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": True,
        "kafka.dt.tokens.per.owner.max": FAR_AWAY,
        "kafka.dt.token.creates.per.minute.max": FAR_AWAY,
    }


class KafkaDt:
    """One `kafka-dt serve`.

    Args:
        directory: receives its configuration and log.
        properties: its whole configuration.
        name: for messages and file names.
        environment: variables to set over those of this process.
        start_timeout_s: how long it may take to start; longer with many tokens.
        program: the `kafka-dt` to start; without it and without an environment one may be forked
            (`tests/support/processes/forked.py`), else it is the one beside this Python.
    """

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, object],
        name: str = "kafka-dt",
        environment: Mapping[str, str] | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
        *,
        program: Path | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        # Tests look for each line, and they all come from one address.
        properties = {"kafka.dt.log.lines.per.minute": 1_000_000, **properties}
        self.configuration = write_properties(directory / f"{name}.properties", properties)
        self.program = program or PROGRAM
        command = [str(self.program), "serve", "--config", str(self.configuration)]
        path = os.pathsep.join(filter(None, (str(AS_INSTALLED), os.environ.get("PYTHONPATH"))))
        variables = {"PYTHONUNBUFFERED": "1", "PYTHONPATH": path, **(environment or {})}
        forks = None if program or environment else fork_server()
        self.process = ChildProcess(name, command, directory / f"{name}.log", variables, forks=forks)
        self._addresses: dict[str, str] = {}
        self._start_timeout_s = start_timeout_s

    @property
    def name(self) -> str:
        """In messages."""
        return self.process.name

    def start(self) -> None:
        """Start it and wait until it serves; raises ProcessFailed with the end of its log."""
        with self.process.starting() as process:
            ready = process.wait_for(READY, self._start_timeout_s)
        self._addresses = dict(each.split("://") for each in ready["listeners"].split())

    def address(self, listener: str) -> str:
        """host:port of a listener, by its name."""
        return self._addresses[listener]

    @property
    def sasl(self) -> str:
        """host:port of the SASL_PLAINTEXT listener."""
        return self.address("SASL_PLAINTEXT")

    @property
    def plaintext(self) -> str:
        """host:port of the PLAINTEXT listener."""
        return self.address("PLAINTEXT")

    def stop(self) -> int | None:
        """Send SIGTERM, wait, give the exit status."""
        return self.process.stop()

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
