"""Decisions of a task about token znodes, the result of each, and the sum of the results.

A task is a function of token ids and the bytes of their znodes. It is called in threads, several at once, so it keeps
no state on which a decision depends. The `note` of a decision carries anything else that the task reports.

Source: KIP-395, "Future work" (a tool for all existing delegation tokens).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

NAMES_A_REASON: Final = 5
MAX_REASONS: Final = 50
OTHER_REASONS: Final = "other reasons"


@dataclass(frozen=True, slots=True)
class Leave:
    """Nothing is to be done."""

    note: object = None


@dataclass(frozen=True, slots=True)
class Write:
    """The znode gets other bytes."""

    data: bytes = field(repr=False)
    note: object = None


@dataclass(frozen=True, slots=True)
class Remove:
    """The znode is deleted: the token ends."""

    note: object = None
    guarded: bool = True
    """Whether it is decided anew if another process changes the znode; if not, it goes whatever is in it by then."""


@dataclass(frozen=True, slots=True)
class Fail:
    """It cannot be worked on; it is left as it is."""

    reason: str
    """Without anything of the token itself, so that equal reasons can be counted."""


Decision = Leave | Write | Remove | Fail


Found = tuple[str, bytes]
"""A token id and what its znode holds."""


class Task(Protocol):
    """Decide what is done with each znode."""

    @property
    def announces(self) -> bool:
        """Whether change znodes tell brokers and nodes of its changes."""

    def __call__(self, found: Sequence[Found]) -> list[Decision]:
        """Decide about each znode of a batch."""


class ZnodeResult(Enum):
    """The result for a znode."""

    CHANGED = "changed"
    """It was written or deleted (or would have been, in a dry run)."""
    UNCHANGED = "unchanged"
    """It was left as it is."""
    GONE = "gone"
    """Another process deleted it meanwhile."""
    FAILED = "failed"
    """It was left as it is, because something is wrong with it."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result for one znode, and its reason."""

    token_id: str
    outcome: ZnodeResult
    reason: str = ""
    """Of a failure."""
    note: object = None
    """Of the last decision."""
    version: int | None = None
    """Of the znode's data when it was last read; None if it was not."""


@dataclass(slots=True)
class Failures:
    """The znodes that failed for one reason."""

    count: int = 0
    token_ids: list[str] = field(default_factory=list)
    """The first few."""


@dataclass(slots=True)
class Summary:
    """The results so far. Its size is bounded, however many znodes fail: reasons, and names for each, are limited."""

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
