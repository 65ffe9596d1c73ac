"""A ZooKeeper ensemble of three real servers on this machine, with every link in the hands of the test.

    with Ensemble(folder) as ensemble:
        connect = ensemble.connect                    # what `zookeeper.connect` takes: all members
        leader, follower = ensemble.leader(), ensemble.followers()[0]
        node = Node(..., node_properties(follower.connect))     # a client of one member alone
        with ensemble.isolated(follower):             # its clients reach it, the other members do not
            ...
        ensemble.cut_clients(follower)                # ... and the reverse, until ensemble.heal()
        with hanging(follower.pid): ...               # tests.support.processes.process: SIGSTOP
        follower.kill(); follower.start()             # a crash

Each member sees the other two through gates of its own (`processes.tcp_gate`), two a direction: one for elections,
one for the data. Clients come through one more gate a member. `isolated` and `partition` hold the gates as a network
partition does: connections stay open and nothing arrives, not even their end. The members find out by their own
timeouts: a follower gives its leader up after `sync_limit` ticks of `TICK_TIME_MS`, a leader without a quorum steps
down after as many and one more. What was held back arrives when the partition heals.

The gates run in a thread of their own, so all methods may be called from any thread, also while an event loop of the
test waits. They return at once, except `start`, `leader`, `followers` and `heal`, which wait for a quorum.

Limits: 127.0.0.1 only, except that the members listen for each other on every address: a member that announced its own
would be called back there, around the gate (ZooKeeper ignores an announced 0.0.0.0). The ports are chosen before the
servers bind them (`tests.support.processes.ports`). An ensemble takes about three seconds to start, and 200 MB.

Source: "ZooKeeper Administrator's Guide" (Cluster Options); org.apache.zookeeper.server.quorum.QuorumCnxManager
(InitialMessage, which address is called back), org.apache.zookeeper.server.quorum.Leader.lead (when it steps down).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import pytest

from kafka_dt.zookeeper.embedded.java import find_java, server_class_path
from kafka_dt.zookeeper.errors import JarsNotFound, JavaNotFound
from tests.support.processes.gate_thread import GateThread
from tests.support.processes.ports import free_ports
from tests.support.processes.process import ChildProcess
from tests.support.processes.tcp_gate import TcpGate
from tests.support.processes.waiting import eventually
from tests.support.zookeeper.server import quick_zookeeper

HOST = "127.0.0.1"
MEMBERS = 3
TICK_TIME_MS = 500
SYNC_LIMIT = 4
"""In ticks."""
QUORUM_WITHIN_S = 60.0
_CLIENT, _DATA, _ELECTION = range(3)
_PORTS_A_MEMBER = 3
_ANSWER_S = 2.0
_PATIENCE_S = 1.0
"""A member tries again a second after another has refused a connection, but not after it has closed one."""


class Member:
    """One server of an ensemble; `number` is its `myid`, from 1."""

    def __init__(self, number: int, folder: Path, command: list[str], port: int, gate: TcpGate) -> None:
        self.number = number
        self.gate = gate
        """Where clients come through; its methods belong to the thread of the gates: see `Ensemble.cut_clients`."""
        self._port = port
        self._process = ChildProcess(f"zookeeper-{number}", command, folder / "zookeeper.log")

    @property
    def connect(self) -> str:
        """What `zookeeper.connect` takes, for this member alone, through its gate."""
        return f"{HOST}:{self.gate.port}"

    @property
    def direct(self) -> str:
        """The same around the gate: for a test's own client, which sees what the member sees whatever is cut."""
        return f"{HOST}:{self._port}"

    @property
    def pid(self) -> int | None:
        """Process id of the server, for `tests.support.processes.process.hanging`."""
        return self._process.pid

    def start(self) -> None:
        """Start it; it serves when it has found a quorum."""
        self._process.start()

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()

    def mode(self) -> str | None:
        """`leader` or `follower`; None while it has no quorum, hangs or is not there."""
        try:
            with socket.create_connection((HOST, self._port), _ANSWER_S) as connection:
                connection.sendall(b"srvr")
                answer = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
        except OSError:
            return None
        _, mode, rest = answer.partition("Mode: ")
        return rest.split()[0] if mode else None


class Ensemble:
    """Three members and what is between them.

    Args:
        folder: receives their data and logs.
        sync_limit: after how many ticks a member gives the others up.
        properties: further lines for the configuration of each, over the ones set here.
        system_properties: Java system properties of each, such as `jute.maxbuffer`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        sync_limit: int = SYNC_LIMIT,
        properties: Mapping[str, str] | None = None,
        system_properties: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._properties = {
            "tickTime": str(TICK_TIME_MS),
            "initLimit": "8",
            "syncLimit": str(sync_limit),
            "clientPortAddress": HOST,
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr",
            **(properties or {}),
        }
        self._system_properties = dict(system_properties or {})
        self._gates = GateThread()
        self._between: dict[tuple[int, int], list[TcpGate]] = {}
        """The gates by which one member, the first number, reaches another, the second."""
        self.members: tuple[Member, ...] = ()

    @property
    def connect(self) -> str:
        """What `zookeeper.connect` takes: all members, each through its gate."""
        return ",".join(member.connect for member in self.members)

    def leader(self) -> Member:
        """Wait until there is exactly one leader that answers, and give it."""
        return self._in_mode("leader", 1)[0]

    def followers(self) -> list[Member]:
        """Wait until a leader has two followers that answer, and give them."""
        return self._in_mode("follower", MEMBERS - 1)

    @contextlib.contextmanager
    def isolated(self, member: Member) -> Iterator[None]:
        """Part a member from the two others for a block; clients still reach it."""
        self.partition(member)
        try:
            yield
        finally:
            self.heal()

    def partition(self, member: Member, *others: Member) -> None:
        """Part a member from others, by default from all, until `heal`."""
        apart = {other.number for other in others or self.members} - {member.number}
        for number in apart:
            for link in ((member.number, number), (number, member.number)):
                for gate in self._between[link]:
                    self._gates.call(gate.hold)

    def depose(self, leader: Member) -> None:
        """Part the leader from the others, which elect another at once; the old one serves on until it notices.

        Returns when the new leader serves; `heal` ends the partition.
        """
        self.partition(leader)
        others = [member for member in self.members if member is not leader]
        for other in others:
            for gate in self._between[other.number, leader.number]:
                self._gates.call(gate.drop)
        eventually(lambda: "leader" in [other.mode() for other in others], QUORUM_WITHIN_S)

    def refuse_new_clients(self, member: Member) -> None:
        """Let no more clients come to a member until `heal`; those that it has stay."""
        self._gates.call(member.gate.refuse_new)

    def open_to_clients(self, member: Member) -> None:
        """Let clients come to a member again."""
        self._gates.call(member.gate.open)

    def cut_clients(self, member: Member, *, silently: bool = True) -> None:
        """Part a member from its clients until `heal`: nothing arrives, or their connections break at once."""
        self._gates.call(member.gate.hold if silently else member.gate.shut)

    def heal(self) -> None:
        """Let everything pass again, and wait until the members that run serve."""
        for gate in itertools.chain(*self._between.values(), (member.gate for member in self.members)):
            self._gates.call(gate.open)
        self.leader()

    def start(self) -> None:
        """Start all members and wait until they serve; the test is skipped where there is no Java."""
        try:
            java, class_path, options = find_java(), server_class_path(), quick_zookeeper()
        except (JavaNotFound, JarsNotFound) as reason:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(reason))
        self._gates.start()
        numbers = range(1, MEMBERS + 1)
        first = free_ports(_PORTS_A_MEMBER * MEMBERS)
        ports = {number: first + _PORTS_A_MEMBER * (number - 1) for number in numbers}
        for one, other in itertools.permutations(numbers, 2):
            self._between[one, other] = [
                self._gates.open(HOST, ports[other] + kind, patience_s=_PATIENCE_S) for kind in (_DATA, _ELECTION)
            ]
        members = []
        for number, port in ports.items():
            folder = self._folder / f"member-{number}"
            configuration = self._write_configuration(folder, number, ports)
            command = [
                *(str(java), "-Xms32m", "-Xmx256m", *options, "-Dzookeeper.jmx.log4j.disable=true"),
                f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
                *(f"-D{name}={value}" for name, value in self._system_properties.items()),
                *("-cp", class_path, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(configuration)),
            ]
            members.append(Member(number, folder, command, port + _CLIENT, self._gates.open(HOST, port + _CLIENT)))
        self.members = tuple(members)
        for member in self.members:
            member.start()
        self.followers()

    def stop(self) -> None:
        """Stop all members, and close the gates."""
        for member in self.members:
            member.kill()  # in any order: no test needs their data any more
        self._gates.stop()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _in_mode(self, mode: str, count: int) -> list[Member]:
        found: list[Member] = []

        def there() -> bool:
            found[:] = [member for member in self.members if member.mode() == mode]
            return len(found) == count

        eventually(there, QUORUM_WITHIN_S)
        return found

    def _write_configuration(self, folder: Path, number: int, ports: Mapping[int, int]) -> Path:
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "myid").write_text(f"{number}\n")
        (folder / "log4j2.properties").write_text(_LOG_CONFIGURATION)
        lines = {"dataDir": str(folder / "data"), "clientPort": str(ports[number] + _CLIENT), **self._properties}
        for other in ports:
            if other == number:
                lines[f"server.{other}"] = f"0.0.0.0:{ports[other] + _DATA}:{ports[other] + _ELECTION}"
            else:
                data, election = self._between[number, other]
                lines[f"server.{other}"] = f"{HOST}:{data.port}:{election.port}"
        path = folder / "zookeeper.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        return path


_LOG_CONFIGURATION = """\
status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{ISO8601} %-5p %c{1}: %m%n
rootLogger.level=info
rootLogger.appenderRef.out.ref=out
"""
