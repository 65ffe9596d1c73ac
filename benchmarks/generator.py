"""The load generator: a Java program of one thread (`load/`), compiled once and kept running.

    with LoadGenerator(java, compile_load(java), folder) as generator:
        results = generator.run(Job(server.address, phases=("CREATE", "RENEW"), ...), on_mark)
        with generator.holding(Job(..., phases=("HOLD",), connections=10_000)):
            ...

It stays alive between jobs, so that its own code is compiled by then and does not take CPU from the server. `on_mark`
hears when the measured part of a phase begins and ends, to look at what the server has used by then.

Limits: one job at a time; take another generator to do two things at once.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self

from tests.support.brokers.broker import USERS
from tests.support.java.jvm import Java
from tests.support.java.programs import CompilationFailed, compiled
from tests.support.java.properties import write_properties

SOURCES: Final = Path(__file__).parent / "load"
FLAGS: Final = ("-XX:+UseSerialGC", "-Xms128m", "-Xshare:auto", "-Djdk.tls.namedGroups=x25519")
_HEAP_MB: Final = 512


class LoadFailed(Exception):
    """An answer was an error or did not come, so the measurement is not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job of the generator; `load/Job.java` describes each field."""

    address: str
    phases: tuple[str, ...]
    connections: int = 1
    at_once: int = 0
    tls: bool = False
    resume: bool = False
    mechanism: str = "PLAIN"
    user: str = "alice"
    credentials: Path | None = None
    once: bool = False
    trust: bool = False
    warm_ms: int = 0
    measure_ms: int = 0
    rate: float = 0
    renewed: Path | None = None
    owner: str = ""
    expected: int = 0
    topic: str = ""
    record_bytes: int = 0
    probed: Path | None = None

    def properties(self) -> dict[str, object]:
        """Write the job as the generator reads it."""
        named = {name: getattr(self, name) for name in self.__slots__ if name != "phases"}
        given = {name: value for name, value in named.items() if value is not None}
        return {**given, "phases": ",".join(self.phases), "password": password_of(self.user)}


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of one phase."""

    count: int
    seconds: float
    p50_us: float
    p99_us: float
    cpu_seconds: float
    """Of the generator."""
    full_handshakes: int
    """Of TLS; sessions that went on are not among them."""
    series: list[list[float]] = field(repr=False)
    """Second by second: count, p50 and p99 in microseconds."""


Mark = Callable[[str, str], None]
"""Hears the phase and `begin` or `end`."""


def password_of(user: str) -> str:
    """Give the password of a user of PLAIN."""
    return USERS.get(user, f"{user}-secret")


def compile_load(java: Java) -> Path:
    """Compile the generator unless that has been done; raises LoadFailed with the compiler's words."""
    if not java.has_compiler:
        raise LoadFailed(f"{java.executable} has no compiler: a JDK is needed")
    try:
        return compiled("load", sorted(SOURCES.glob("*.java")), java, options=("-Xlint:all", "-Werror"))
    except CompilationFailed as failure:
        raise LoadFailed(str(failure)) from failure


class LoadGenerator:
    """One generator.

    Args:
        java: what runs it.
        classes: what `compile_load` made.
        folder: receives the files that describe jobs, which hold passwords.
    """

    def __init__(self, java: Java, classes: Path, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._command = java.command("load.Main", classpath=[classes], heap_mb=_HEAP_MB, flags=FLAGS)
        self._process: subprocess.Popen[str] | None = None
        self._jobs = 0

    def start(self) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait(30)
            self._process.stdout.close()

    def run(self, job: Job, on_mark: Mark = lambda _phase, _mark: None) -> dict[str, LoadResult]:
        """Do a job; returns the results by phase. Raises LoadFailed."""
        results: dict[str, LoadResult] = {}
        for event in self._events(job):
            match event["event"]:
                case "begin" | "end":
                    on_mark(event["phase"], event["event"])
                case "result":
                    results[event["phase"]] = _result(event)
        return results

    @contextmanager
    def holding(self, job: Job) -> Iterator[list[LoadResult]]:
        """Log in on all connections of a job and keep them open during the block; they may log in again meanwhile.

        Gives a list that receives the result of these further logins at the end of the block. Raises LoadFailed.
        """
        events = self._events(job)
        next(event for event in events if event["event"] == "held")
        results: list[LoadResult] = []
        try:
            yield results
        finally:
            self._say("release")
            results += [_result(event) for event in events if event["event"] == "result"]

    def _events(self, job: Job) -> Iterator[Mapping[str, Any]]:
        self._jobs += 1
        self._say(str(write_properties(self._folder / f"job-{self._jobs}.properties", job.properties())))
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            if event["event"] == "failed":
                raise LoadFailed(f"{', '.join(job.phases)} on {job.address}: {event['reason']}")
            if event["event"] == "done":
                return
            yield event
        raise LoadFailed(f"the load generator ended with status {self._process.wait()}")

    def _say(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _result(event: Mapping[str, Any]) -> LoadResult:
    return LoadResult(**{each.name: event[each.name] for each in fields(LoadResult)})
