"""The pipeline from end to end without any cluster: events are made, ingested and reported on.

    shown = run_demo(spark, scenario, folder, telling)
    shown.page                  # to open in a browser
    shown.cases                 # what is on its first screen
    shown.verdicts              # the planted incidents, and how many of them the report found

In the folder are `events/` (with the truth about them), `table/` and `report/`. The demo first removes the files of an
earlier demo. It refuses a folder that has other files.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from kafka_dt.pipeline.errors import PipelineError
from kafka_dt.pipeline.generator import Generated, Scenario, generate
from kafka_dt.pipeline.ingest import FileSource, Ingest
from kafka_dt.pipeline.report.analysis import ReportSettings
from kafka_dt.pipeline.report.reporting import PARQUET, report
from kafka_dt.pipeline.report.signs import SIGNS
from kafka_dt.pipeline.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from kafka_dt.pipeline.cases import Case
    from kafka_dt.pipeline.engines import Engine
    from kafka_dt.pipeline.generator import Incident
    from kafka_dt.pipeline.ingest import Counts
    from kafka_dt.pipeline.report.reporting import Made
    from kafka_dt.pipeline.report.signs import Finding, Signs

_MARK: Final = "kafka-dt-demo"
"""A file that marks the folder as a demo's."""
_EVENTS, _TABLE, _REPORT = "events", "table", "report"


class Step(Protocol):
    """A step that is under way."""

    def tell(self, done: int, of: int | None) -> None:
        """Say how much is done, and of how much if that is known."""

    def now(self, title: str) -> None:
        """Say what is worked on now."""


class Telling(Protocol):
    """Shows the steps."""

    def step(self, title: str) -> AbstractContextManager[Step]:
        """Show a step during a block."""

    def note(self, line: str) -> None:
        """Say what has come of it."""


class FolderNotOurs(PipelineError):
    """The folder has files that no demo has made."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder} is not empty, and no demo has made it; name another folder with --to")
        self.folder = folder


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many incidents of one kind the report found."""

    kind: str
    planted: int
    found: int
    """How many of them the report has."""
    others: int
    """How many findings of this kind are about something else."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The results of a demo."""

    folder: Path
    page: Path
    document: Path
    generated: Generated
    counts: Counts
    tokens: int
    cases: tuple[Case, ...]
    verdicts: tuple[Verdict, ...]
    seconds: float


def run_demo(
    spark: SparkSession,
    on_engine: Callable[[Callable[[Engine], Made]], Made],
    scenario: Scenario,
    folder: Path,
    telling: Telling,
    *,
    now: datetime,
) -> Shown:
    """Run the whole pipeline into a folder, which is made when missing.

    Args:
        spark: makes the events and ingests them.
        on_engine: has an engine compute the report after that.
        scenario: what happens in the events; it is over by `now`.
        folder: for all that is made.
        telling: shows each step.
        now: the time, in UTC.

    Raises:
        FolderNotOurs: the folder has something else in it.
        PipelineError: a step failed.
        OSError: the folder cannot be written.
    """
    begun_s = time.monotonic()
    folder = folder.absolute()
    _take(folder)
    with telling.step("Making events") as step:
        generated = generate(scenario, folder / _EVENTS, spark=spark, told=step.tell)
    telling.note(f"{generated.written.events:,} events of {scenario.days} days in {generated.written.files:,} files")
    table = Table(str(folder / _TABLE))
    with telling.step("Ingesting them") as step:
        counts = _ingest(spark, table, generated, now, step)
    telling.note(f"{counts.events:,} events in the table, {counts.quarantined:,} in quarantine")
    with telling.step("Reporting on them") as step:
        to = folder / _REPORT
        # On a cluster the folder is mounted everywhere, or there would be no events.
        parquet = f"file://{to / PARQUET}"
        settings = ReportSettings()
        made = on_engine(
            lambda engine: report(engine, table, to, settings, progress=step.now, now=now, parquet=parquet)
        )
    contents = made.contents
    telling.note(f"{contents.tokens:,} tokens, {contents.finding_total:,} signs of theft")
    verdicts = judge(generated.truth.incidents, contents.findings, contents.signs)
    seconds = time.monotonic() - begun_s
    return Shown(
        folder=folder,
        page=made.page,
        document=made.document,
        generated=generated,
        counts=counts,
        tokens=contents.tokens,
        cases=contents.cases,
        verdicts=verdicts,
        seconds=seconds,
    )


def judge(incidents: Sequence[Incident], findings: Sequence[Finding], signs: Signs = SIGNS) -> tuple[Verdict, ...]:
    """Compare the planted incidents with the findings, kind by kind: the kinds of the signs, and all planted kinds.

    What several signs see of a use of a token is told by one of them, so any of these finds it.
    """
    kinds = dict.fromkeys((*(sign.kind for sign in signs), *(each.kind.value for each in incidents)))
    planted = {(each.kind, each.subject) for each in incidents}
    subjects = {subject for _, subject in planted}
    found = {(each.kind, each.subject) for each in findings}
    uses = {sign.kind for sign in signs if sign.about_use}
    told = found | {(kind, subject) for one, subject in found if one in uses for kind in uses}
    return tuple(
        Verdict(
            kind,
            planted=sum(one == kind for one, _ in planted),
            found=sum(one == kind for one, _ in planted & told),
            others=sum(one == kind and subject not in subjects for one, subject in found),
        )
        for kind in kinds
    )


def _ingest(spark: SparkSession, table: Table, generated: Generated, now: datetime, step: Step) -> Counts:
    now_ms = int(now.timestamp() * 1000)
    return Ingest(
        spark,
        table,
        FileSource(str(generated.folder)),
        now_ms=lambda: now_ms,
        heard=lambda counts: step.tell(counts.lines, generated.written.events),
    ).run()


def _take(folder: Path) -> None:
    """Make the folder ours and empty."""
    mark = folder / _MARK
    if folder.exists() and any(folder.iterdir()) and not mark.exists():
        raise FolderNotOurs(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    for each in (_EVENTS, _TABLE, _REPORT):
        shutil.rmtree(folder / each, ignore_errors=True)
