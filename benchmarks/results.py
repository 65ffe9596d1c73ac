"""What was measured, as it is stored: one JSON file, scenario by scenario, round by round.

A scenario carries the run in which it was measured, so a file can be brought up to date scenario by scenario
(`Results.merge`). The committed `results/reference.json` is what `docs/performance.md` is made of.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

FOLDER: Final = Path(__file__).parent / "results"
REFERENCE: Final = FOLDER / "reference.json"
LATEST: Final = FOLDER / "latest.json"


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """What exactly was done; what is 0 does not matter in its scenario."""

    operation: str
    connections: int = 0
    tokens: int = 0
    events: int = 0

    @property
    def label(self) -> str:
        """The case in words."""
        words = [self.operation]
        if self.connections:
            words.append(f"{self.connections:,} connection{'s'[: self.connections != 1]}")
        if self.tokens:
            words.append(f"{self.tokens:,} tokens")
        if self.events:
            words.append(f"{self.events:,} events")
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one subject did in one round."""

    case: Case
    subject: str
    round: int
    """From 1 on."""
    values: Mapping[str, float]
    """By the names in `metrics.py`."""
    series: Mapping[str, list[float]] = field(default_factory=dict)
    """The same second by second, where that is asked for."""


@dataclass(slots=True)
class ScenarioResults:
    """The measurements of one scenario, and what they were made with."""

    run: Mapping[str, Any]
    """When, on what machine, with which versions."""
    measurements: list[Measurement] = field(default_factory=list)

    def cases(self) -> list[Case]:
        """List what was done, in the order in which it was first done."""
        return list(dict.fromkeys(each.case for each in self.measurements))

    @property
    def rounds(self) -> int:
        """How often each subject had its turn."""
        return max((each.round for each in self.measurements), default=0)

    def subjects(self, case: Case) -> list[str]:
        """List who did it, in the order of the turns."""
        return list(dict.fromkeys(each.subject for each in self.measurements if each.case == case))

    def by_round(self, case: Case, subject: str, metric: str) -> dict[int, float]:
        """Round -> value; empty where it was not measured."""
        return {
            each.round: each.values[metric]
            for each in self.measurements
            if each.case == case and each.subject == subject and metric in each.values
        }


@dataclass(slots=True)
class Results:
    """Scenarios by name."""

    scenarios: dict[str, ScenarioResults] = field(default_factory=dict)

    def merge(self, newer: Results) -> None:
        """Replace the scenarios that `newer` also has by those of `newer`."""
        self.scenarios.update(newer.scenarios)

    def save(self, path: Path) -> None:
        """Write the file; its folder is made when missing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {
            name: {"run": dict(scenario.run), "measurements": [_row(each) for each in scenario.measurements]}
            for name, scenario in self.scenarios.items()
        }
        # A measurement a line: readable, and small in a diff.
        text = json.dumps(document, indent=None, separators=(",", ":"))
        path.write_text(text.replace('{"case"', '\n{"case"').replace("]},", "]},\n") + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file that `save` wrote; an absent one holds nothing."""
        if not path.exists():
            return cls()
        document = json.loads(path.read_text(encoding="utf-8"))
        return cls({name: ScenarioResults(each["run"], _rows(each["measurements"])) for name, each in document.items()})


def _row(measurement: Measurement) -> dict[str, Any]:
    row = asdict(measurement)
    if not row["case"]["events"]:  # most scenarios have none
        del row["case"]["events"]
    row["values"] = {name: _short(value) for name, value in row["values"].items()}
    row["series"] = {name: [_short(value) for value in values] for name, values in row["series"].items()}
    return row if row["series"] else {name: value for name, value in row.items() if name != "series"}


def _rows(rows: Iterable[Mapping[str, Any]]) -> list[Measurement]:
    return [Measurement(**{**row, "case": Case(**row["case"])}) for row in rows]


def _short(value: float) -> float:
    """Round to six digits, which is finer than any measurement."""
    return float(f"{value:.6g}")
