"""Add up the results of a run: how many znodes were changed, how many not, and the reasons of the failures.

The size of a summary is bounded, however many znodes fail: a number of reasons, and a number of names for each.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kafka_dt.bulk.decisions import ZnodeResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.bulk.decisions import Result

NAMES_A_REASON: Final = 5
MAX_REASONS: Final = 50
OTHER_REASONS: Final = "other reasons"


@dataclass(slots=True)
class Failures:
    """The znodes that failed for one reason."""

    count: int = 0
    token_ids: list[str] = field(default_factory=list)
    """The first few."""


@dataclass(slots=True)
class Summary:
    """The results for the znodes so far."""

    counts: Counter[ZnodeResult] = field(default_factory=Counter)
    failures: dict[str, Failures] = field(default_factory=dict)
    """By reason."""

    @property
    def total(self) -> int:
        """How many znodes are done."""
        return self.counts.total()

    @property
    def failed(self) -> int:
        """How many of them failed."""
        return self.counts[ZnodeResult.FAILED]

    def add(self, results: Sequence[Result]) -> None:
        """Count results."""
        self.counts.update(result.outcome for result in results)
        for result in results:
            if result.outcome is ZnodeResult.FAILED:
                self._add_failures(result.reason, 1, [result.token_id])

    def merge(self, other: Summary) -> None:
        """Add the counts of another summary."""
        self.counts.update(other.counts)
        for reason, failed in other.failures.items():
            self._add_failures(reason, failed.count, failed.token_ids)

    def _add_failures(self, reason: str, count: int, token_ids: Sequence[str]) -> None:
        known = reason in self.failures or len(self.failures) < MAX_REASONS
        failures = self.failures.setdefault(reason if known else OTHER_REASONS, Failures())
        failures.count += count
        failures.token_ids += token_ids[: NAMES_A_REASON - len(failures.token_ids)]
