"""Where a scenario notes what it measures; all that one needs that starts its own processes.

    def run(ledger: Ledger) -> None:
        cost = run_job(command, ledger.folder / "job.log")
        ledger.record(Case("ingest", events=1_000_000), SUBJECT, 1, {"seconds": cost.seconds})

`Bench` is one with servers to compare and a generator that puts a load on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rich.console import Console

from benchmarks.plan import Plan
from benchmarks.results import Case, Measurement


class Named(Protocol):
    """Who is measured."""

    @property
    def name(self) -> str:
        """In results and tables."""


@dataclass(slots=True, kw_only=True)
class Ledger:
    """The notes of a run."""

    plan: Plan
    folder: Path
    """On the disk that is measured; receives everything."""
    console: Console
    measurements: list[Measurement] = field(default_factory=list)
    """Of the scenario under way."""

    def record(
        self,
        case: Case,
        subject: Named,
        round_number: int,
        values: Mapping[str, float],
        series: Mapping[str, list[float]] | None = None,
    ) -> None:
        """Keep what one subject did in one round; of round 0 nothing."""
        if round_number:
            self.measurements.append(Measurement(case, subject.name, round_number, values, series or {}))

    def take_measurements(self) -> list[Measurement]:
        """Give what has been recorded, and begin anew."""
        taken, self.measurements = self.measurements, []
        return taken
