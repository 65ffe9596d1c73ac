"""Decisions of a task about a token znode, and the result of each.

A task is a function of token ids and the bytes of their znodes. It is called in threads, several at once, so it keeps
no state on which a decision depends. The `note` of a decision carries anything else that the task reports.

Source: KIP-395, "Future work" (a tool for all existing delegation tokens).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol


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
