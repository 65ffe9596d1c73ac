"""Audit events through the pipeline: generate, ingest from files and report on 1, 3 and 10 million.

Each step is the command as a user runs it (`kafka-dt pipeline generate`, `ingest --once`, `report`) with its defaults,
and its time includes the start of Spark. Events are those of a month; a larger month also has more owners and
tokens. Memory is the most that the process tree had at once, including Spark's JVM and Python workers. On disk are the
JSON lines, the table, and the report.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.jobs import PIPELINE, JobCost, run_job
from benchmarks.ledger import Ledger
from benchmarks.metrics import PEAK, RATE
from benchmarks.results import Case

TITLE: Final = "Audit events through the pipeline"
COMPARED: Final = RATE
AXIS: Final = "events a second"
ALONE: Final = True
"""There is no server in it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One of the commands."""

    name: str


GENERATE, INGEST, REPORT = Step("generate"), Step("ingest"), Step("report")


def run(ledger: Ledger) -> None:
    """Make events of each size once, and ingest and report them in each round."""
    for size in ledger.plan.event_sizes:
        folder = ledger.folder / f"events-{size}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            _measure(ledger, size, folder)
        finally:
            shutil.rmtree(folder)


def _measure(ledger: Ledger, size: int, folder: Path) -> None:
    events, table, report = folder / "events", folder / "table", folder / "report"
    make = ("--to", str(events), "--events", str(size), "--output", "json")
    cost = _run(ledger, GENERATE, size, make, folder)
    made = _made(_log(folder, GENERATE))
    _record(ledger, GENERATE, (size, 1), (made, cost, events))
    for round_number in range(1, ledger.plan.pipeline_rounds + 1):
        for each in (table, report):
            shutil.rmtree(each, ignore_errors=True)
        cost = _run(ledger, INGEST, size, ("--once", "--from", str(events), "--table", str(table)), folder)
        _record(ledger, INGEST, (size, round_number), (made, cost, table))
        cost = _run(ledger, REPORT, size, ("--table", str(table), "--to", str(report)), folder)
        _record(ledger, REPORT, (size, round_number), (made, cost, report))


def _run(ledger: Ledger, step: Step, size: int, arguments: Sequence[str], folder: Path) -> JobCost:
    with ledger.console.status(f"{step.name} {size:,} events"):
        return run_job([*PIPELINE, step.name, *arguments], _log(folder, step))


def _record(ledger: Ledger, step: Step, which: tuple[int, int], what: tuple[int, JobCost, Path]) -> None:
    (size, round_number), (events, cost, made) = which, what
    values = {
        RATE: events / cost.seconds,
        "seconds": cost.seconds,
        "cpu_s": cost.cpu_seconds,
        PEAK: cost.peak_pss_mib,
        "disk_mib": sum(path.stat().st_size for path in made.rglob("*") if path.is_file()) / 2**20,
    }
    ledger.record(Case("a month", events=size), step, round_number, values)


def _log(folder: Path, step: Step) -> Path:
    return folder / f"{step.name}.log"


def _made(log: Path) -> int:
    """Read how many events were made; before the JSON there may be lines of progress."""
    text = log.read_text()
    return int(json.loads(text[text.index("{") :])["events"])
