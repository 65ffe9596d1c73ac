"""The rules of an ingest, and its counts.

Durations and instants are in milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The limits that the ingest keeps."""

    late_after_ms: int | None = 7 * DAY_MS
    """How far behind the newest event of the table an event may be; None = any distance."""
    future_after_ms: int = HOUR_MS
    """How far ahead of the clock of this machine an event may be."""
    compact_at: int = 16
    """How many small files of a day are merged; 0 = none are."""
    keep_replaced_ms: int = 0
    """How long merged files are kept for readers that have listed them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts of an ingest."""

    batches: int = 0
    lines: int = 0
    """Read."""
    events: int = 0
    """New in the table."""
    quarantined: int = 0
    duplicates: int = 0
    """Events that were there already, or came twice."""
    compacted_files: int = 0
    """Files that were merged into others."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})
