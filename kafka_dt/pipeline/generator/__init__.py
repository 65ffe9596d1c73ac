"""Realistic audit events with incidents planted in them, and the truth about what was planted.

    scenario = Scenario.of_size(250_000, start=datetime(2026, 10, 1, tzinfo=UTC))
    generated = generate(scenario, Path("/tmp/events"), spark=spark)
    generated.truth.of(IncidentKind.STOLEN_TOKEN)

They are what a cluster's nodes would have written in a month: batch jobs, streaming jobs, services and people with
notebooks, nodes and clients that are upgraded, everything that goes wrong without an attack, and in between a few
incidents of each kind and of three strengths.

Read `scenario.py` first. `owners.py` has the owners, `clients.py` where their clients are; `workloads.py` and `jobs.py`
plan the lives of their tokens (`lives.py`), `recording.py` makes a day's events of them, `noise.py` and `incidents.py`
add what is no job's. This file puts all of it together and writes it.

A scenario is made in parts, on Spark's executors or in this process. A `Part` is one worker's share of the owners for
one day. An owner's clients always meet the same worker of whichever node they connect to, so a part needs nothing of
the other parts. Its ids and connections are named after the part.

Files are named as the server names them and roll at midnight and by size. A file has another name until it is complete.
Its time of modification is that of its last event, because a reader takes files in this order. A generator that was
interrupted and runs again with the same scenario replaces the files.

Limits: IPv4 only; a client has one address, though in reality there is NAT; the expiry of tokens is a day and their
longest life a week, as they are by default. Executors reach the folder under the same path.

Source: KIP-48, KIP-373; docs/audit.md; kafka_dt/audit/files.py
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from itertools import count, groupby
from operator import attrgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from kafka_dt.audit import AuditEvent
from kafka_dt.audit.encoding import encode
from kafka_dt.audit.file_names import FileName, second
from kafka_dt.files import naming
from kafka_dt.pipeline.errors import PipelineError
from kafka_dt.pipeline.generator.drafts import Desk, Draft
from kafka_dt.pipeline.generator.incidents import plant
from kafka_dt.pipeline.generator.noise import administration, keys_changed, mishaps
from kafka_dt.pipeline.generator.recording import Day, record
from kafka_dt.pipeline.generator.scenario import DAY_MS, SECOND_MS, Scenario, ScenarioError
from kafka_dt.pipeline.generator.truth import TRUTH_FILE, Incident, IncidentKind, Strength, Truth, TruthError
from kafka_dt.pipeline.generator.workloads import Workloads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from kafka_dt.pipeline.generator.incidents import Planted

__all__ = [
    "TRUTH_FILE",
    "FolderInUse",
    "Generated",
    "Incident",
    "IncidentKind",
    "Scenario",
    "ScenarioError",
    "Strength",
    "Truth",
    "TruthError",
    "Written",
    "generate",
]

_LOOK_S: Final = 0.25
_FILE_BYTES: Final = 64 * 1024 * 1024
"""When a file is full."""


@dataclass(frozen=True, slots=True)
class Generated:
    """The files and numbers of a generated scenario."""

    folder: Path
    written: Written
    truth: Truth

    @property
    def truth_file(self) -> Path:
        """Where it says what was planted."""
        return self.folder / TRUTH_FILE


@dataclass(frozen=True, slots=True)
class Written:
    """How much there is."""

    events: int = 0
    files: int = 0
    size_bytes: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(self.events + other.events, self.files + other.files, self.size_bytes + other.size_bytes)


class FolderInUse(PipelineError):
    """There are events already, of something else."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} has audit events of something else; name a folder that is empty or does not exist")
        self.folder = folder


def generate(
    scenario: Scenario,
    folder: Path,
    *,
    spark: SparkSession | None = None,
    told: Callable[[int, int], None] = lambda _done, _of: None,
) -> Generated:
    """Write the events of a scenario, and the truth about them, into a folder.

    Args:
        scenario: which one.
        folder: made when missing.
        spark: whose executors do it; None = this process, one part after the other.
        told: is called with the number of parts that are done, and the number of all parts.

    Raises:
        FolderInUse: there are events already, of something else.
        OSError: it cannot be written.
    """
    planted = plant(scenario, Workloads(scenario))
    truth = Truth(scenario.document(), tuple(each.incident for each in planted))
    _take(folder, truth)
    made = parts(scenario, planted)
    told(0, len(made))
    if spark is not None:
        return Generated(folder, _on_spark(spark, made, folder, told), truth)
    written = Written()
    for number, part in enumerate(made, start=1):
        written += write_part(part, folder)
        told(number, len(made))
    return Generated(folder, written, truth)


def _take(folder: Path, truth: Truth) -> None:
    """Make the folder ours, unless it holds other events."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / TRUTH_FILE
    if any(folder.glob("*.jsonl*")):
        try:
            same = Truth.load(path) == truth
        except (FileNotFoundError, TruthError):
            same = False
        if not same:
            raise FolderInUse(folder)
    truth.save(path)


def _on_spark(spark: SparkSession, made: Sequence[Part], folder: Path, told: Callable[[int, int], None]) -> Written:
    context = spark.sparkContext
    done = context.accumulator(0)
    path = str(folder.absolute())

    def write(part: Part) -> Written:
        written = write_part(part, Path(path))
        done.add(1)
        return written

    # A part a task: they are of unequal size.
    work = context.parallelize(made, len(made)).map(write)
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(work.collect)
        while not result.done():
            wait([result], _LOOK_S)
            told(done.value, len(made))
        return sum(result.result(), Written())


@dataclass(frozen=True, slots=True)
class Part:
    """A worker's share of a day."""

    scenario: Scenario
    day: int
    worker: int
    planted: tuple[Draft, ...]
    """What is planted into it."""

    def events(self) -> Iterator[tuple[str, Iterator[AuditEvent]]]:
        """Make its events: for each node the name, and what this worker of it has written down, in order."""
        drafts = sorted(self._drafts(), key=attrgetter("node", "time_ms"))
        for node, of_node in groupby(drafts, key=attrgetter("node")):
            yield f"kafka-dt-{node + 1}", self._finished(node, of_node)

    def _drafts(self) -> Iterator[Draft]:
        scenario, workloads = self.scenario, Workloads(self.scenario)
        day = Day(scenario, self.day)
        for owner in workloads.owners:
            if owner.number % scenario.workers == self.worker:
                desk = Desk(scenario, "owner", owner.number, self.day)
                lives = list(workloads.lives(owner, self.day))
                yield from record(day, owner, lives, workloads.events(owner, self.day), desk)
                yield from mishaps(day, owner, workloads, Desk(scenario, "mishaps", owner.number, self.day))
        if self.worker == 0:
            yield from administration(day, workloads.owners, Desk(scenario, "administration", self.day))
        yield from keys_changed(day, Desk(scenario, "keys", self.day, self.worker))
        yield from self.planted

    def _finished(self, node: int, drafts: Iterable[Draft]) -> Iterator[AuditEvent]:
        instance = f"{self.scenario.chance('instance', node, self.worker, self.day).getrandbits(64):016x}"
        for number, draft in enumerate(drafts, start=1):
            yield AuditEvent(
                id=f"{instance}-{number}",
                time=draft.time_ms,
                node=f"kafka-dt-{node + 1}-{self.worker}",
                client_port=draft.port,
                connection=draft.connection,
                **draft.shared,
            )


def parts(scenario: Scenario, planted: Sequence[Planted]) -> list[Part]:
    """Cut a scenario into its parts, in the order of time."""
    by_part: dict[tuple[int, int], list[Draft]] = {}
    for each in planted:
        worker = each.owner.number % scenario.workers if each.owner else 0
        for draft in each.drafts:
            day = (draft.time_ms - scenario.start_ms) // DAY_MS
            by_part.setdefault((day, worker), []).append(draft)
    return [
        Part(scenario, day, worker, tuple(by_part.get((day, worker), ())))
        for day in range(scenario.days)
        for worker in range(scenario.workers)
    ]


def write_part(part: Part, folder: Path, file_bytes: int = _FILE_BYTES) -> Written:
    """Write the events of a part; written again, its files take the place of the older ones."""
    written = Written()
    for node, events in part.events():
        numbers = count()
        first = next(events, None)
        while first is not None:
            name = FileName(node, part.worker, second(first.time), next(numbers))
            path, partial = folder / str(name), folder / str(replace(name, complete=False))
            with naming(partial), partial.open("wb") as file:
                number, last_ms, following = _fill(file, first, events, file_bytes)
            os.utime(partial, (last_ms / SECOND_MS, last_ms / SECOND_MS))
            partial.rename(path)
            written += Written(number, 1, path.stat().st_size)
            first = following
    return written


def _fill(
    file: IO[bytes], first: AuditEvent, events: Iterator[AuditEvent], file_bytes: int
) -> tuple[int, int, AuditEvent | None]:
    """Write events until a file is full; gives how many, when the last was, and the first that found no place."""
    number, size, last_ms = 0, 0, first.time
    event: AuditEvent | None = first
    while event is not None:
        line = encode(event)
        if number and size + len(line) > file_bytes:
            break
        file.write(line)
        number, size, last_ms = number + 1, size + len(line), event.time
        event = next(events, None)
    return number, last_ms, event
