"""What a scenario works with: servers on so many tokens, rounds in turns, and a place for values.

    def run(bench: Bench) -> None:
        for round_number, server in bench.rounds("logins", bench.stage(1_000, (BROKER, KAFKA_DT))):
            values = bench.load(server, bench.timed(Job(address=server.address, ...), round_number))
            bench.record(Case("login"), server.subject, round_number, values["LOGIN"])

Round 0 is longer and warms the servers; nothing of it is recorded. Servers stay up from case to case and from scenario
to scenario as long as the number of tokens is the same; a measurement begins when all of them have come to rest.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol, TypeVar

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.change_znodes import remove_changes
from benchmarks.credentials import Known, write_credentials
from benchmarks.generator import Job, LoadGenerator, LoadResult
from benchmarks.ledger import Ledger
from benchmarks.metrics import GENERATOR, PSS, RATE, RESUMED, SERVER_CPU, ZOOKEEPER_CPU
from benchmarks.servers import Kit, Server, Subject, make_server
from benchmarks.tokens import PreparedTokens

REST_SHARE: Final = 0.15
"""The share of a core that all servers together may use when a measurement begins."""
REST_TIMEOUT_S: Final = 60.0
_LOOK_S: Final = 0.4

Values = dict[str, float]


class Turn(Protocol):
    """Who takes turns: a server, or a way to one."""

    @property
    def subject(self) -> Subject:
        """What is measured."""

    @property
    def running(self) -> bool:
        """Whether it is up."""

    def all_cpu_seconds(self) -> float:
        """Tell what it has used, with all that serves it alone."""


TurnT = TypeVar("TurnT", bound=Turn)


@dataclass(slots=True, kw_only=True)
class Bench(Ledger):
    """One run, with servers and a load."""

    kit: Kit
    generator: LoadGenerator
    _servers: dict[tuple[Subject, int], Server] = field(default_factory=dict)
    _turns: Sequence[Turn] = ()
    """Who takes turns now, on a stage or not."""
    _known: Known = field(default_factory=dict)

    def folder_of(self, name: str) -> Path:
        """Give the folder of a server."""
        return self.folder / "servers" / re.sub(r"\W+", "-", name)

    def stage(self, tokens: int, subjects: Sequence[Subject]) -> list[Server]:
        """Give running servers, one a subject; those with another number of tokens are stopped."""
        for key in [key for key in self._servers if key[1] != tokens]:
            self._servers.pop(key).stop()
        for subject in subjects:
            if (subject, tokens) not in self._servers:
                self._servers[subject, tokens] = self._start(subject, tokens)
        return [self._servers[subject, tokens] for subject in subjects]

    def clear_stage(self) -> None:
        """Stop all servers."""
        for server in self._servers.values():
            server.stop()
        self._servers.clear()

    def rounds(self, title: str, servers: Sequence[TurnT], *, warm: bool = True) -> Iterator[tuple[int, TurnT]]:
        """Walk the rounds, and in each of them the servers in turn.

        Args:
            title: what the terminal shows meanwhile.
            servers: in the order of their turns.
            warm: whether there is a round 0.
        """
        self._turns = servers
        numbers = range(0 if warm else 1, self.plan.rounds + 1)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[turn]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as progress:
            task = progress.add_task(title, total=len(numbers) * len(servers), turn="")
            for number in numbers:
                for server in servers:
                    name = f"round {number}" if number else "warm-up"
                    progress.update(task, turn=f"{name}, {server.subject.name}")
                    yield number, server
                    progress.advance(task)

    def timed(self, job: Job, round_number: int) -> Job:
        """Give the job as long as a round takes; round 0 is warmed for longer."""
        warm_ms = self.plan.warm_ms if round_number else self.plan.first_warm_ms
        return replace(job, warm_ms=warm_ms, measure_ms=self.plan.measure_ms)

    def load(self, server: Server, job: Job, *, rested: bool = True) -> dict[str, Values]:
        """Put a load on a server beside others that rest; gives values by phase.

        Args:
            server: bears the load.
            job: is the load.
            rested: whether to wait until this server rests as well.
        """
        if rested:
            if server.zookeeper.running:
                remove_changes(server.zookeeper.address)
            self.rest()
        used: dict[tuple[str, str], tuple[float, float]] = {}

        def look(phase: str, mark: str) -> None:
            used[phase, mark] = (server.cpu_seconds(), server.zookeeper_cpu_seconds())

        results = self.generator.run(job, look)
        memory = server.memory()
        return {
            phase: _values(job, result, used[phase, "begin"], used[phase, "end"])
            | {PSS: memory.pss_mib, "rss_mib": memory.rss_mib}
            for phase, result in results.items()
        }

    def rest(self) -> None:
        """Wait until no server has anything to do; gives up after a minute, for some never rest."""
        deadline = time.monotonic() + REST_TIMEOUT_S
        before = self._used()
        while time.monotonic() < deadline:
            time.sleep(_LOOK_S)
            now = self._used()
            if now - before < REST_SHARE * _LOOK_S:
                return
            before = now
        self.console.print("[yellow]the servers did not come to rest")

    def credentials(self, server: Server, mechanism: str, ids: Sequence[str]) -> Path:
        """Give the file with which the generator logs in with these tokens."""
        path = self.folder / "jobs" / "credentials.tsv"
        return write_credentials(path, self.generator, (server.address, mechanism), ids, self._known)

    @contextmanager
    def another_generator(self) -> Iterator[LoadGenerator]:
        """Give a second generator during a block."""
        with LoadGenerator(self.kit.java, self.kit.classes, self.folder / "other-jobs") as generator:
            yield generator

    def new_server(self, subject: Subject, tokens: int, name: str = "") -> Server:
        """Make a server for this caller alone; it does not run yet."""
        prepared = PreparedTokens(self.folder / "prepared", tokens, sealed=subject.sealed)
        return make_server(subject, self.kit, self.folder_of(f"{name or subject.name} {tokens}"), prepared)

    def _start(self, subject: Subject, tokens: int) -> Server:
        server = self.new_server(subject, tokens)
        with self.console.status(f"starting {subject.name} with {tokens:,} tokens"):
            server.start()
        return server

    def _used(self) -> float:
        everybody: dict[int, Turn] = {id(each): each for each in (*self._servers.values(), *self._turns)}
        return sum(each.all_cpu_seconds() for each in everybody.values() if each.running)


def _values(job: Job, result: LoadResult, begin: tuple[float, float], end: tuple[float, float]) -> Values:
    if not result.count:
        return {RATE: 0.0}
    server, zookeeper = (after - before for before, after in zip(begin, end, strict=True))
    values = {
        RATE: result.count / result.seconds,
        "p50_ms": result.p50_us / 1000,
        "p99_ms": result.p99_us / 1000,
        SERVER_CPU: server / result.count * 1000,
        ZOOKEEPER_CPU: zookeeper / result.count * 1000,
        GENERATOR: result.cpu_seconds / result.seconds,
    }
    if job.resume:
        values[RESUMED] = 1 - result.full_handshakes / result.count
    return values
