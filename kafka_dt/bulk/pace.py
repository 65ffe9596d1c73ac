"""Limit how fast a run may change znodes, and its share of ZooKeeper where several runs work at the same time.

    await process(client, names, task, ..., portion=Portion(runs=4, changes_a_second=1_000))

Each of four runs makes at most 250 changes a second then. A change has its turn only after the time that it costs, so
runs that follow each other keep the rate as one would.

Source: kafka_dt.bulk.writes (what brokers take in).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Portion:
    """One run's share of a ZooKeeper."""

    runs: int = 1
    """How many runs work at the same time, this one among them; each may use as much as the others."""
    changes_a_second: float | None = None
    """Of all runs together; None = as many as they can."""
    hand_over: Callable[[Sequence[str]], None] | None = None
    """Gets the change znodes that are left at the end, to purge them later; None = nodes and brokers will."""

    @property
    def own_changes_a_second(self) -> float | None:
        """The changes a second of this run; None = as many as it can."""
        return None if self.changes_a_second is None else self.changes_a_second / self.runs

    def batch(self, wanted: int) -> int:
        """Return how many znodes to change together: no more than a second's worth."""
        own = self.own_changes_a_second
        return wanted if own is None else max(1, min(wanted, int(own)))


WHOLE: Final = Portion()
"""Of the only run there is."""


class WriteTurns:
    """Gives turns to changes, one after the other, each after the time that it costs."""

    __slots__ = ("next_s",)

    def __init__(self) -> None:
        self.next_s = 0.0
        """When the last turn that was given away begins, in seconds of `time.monotonic`."""

    async def take(self, cost_s: float) -> None:
        """Wait for a turn.

        Args:
            cost_s: for how long before it no other change has a turn.
        """
        now_s = time.monotonic()
        self.next_s = max(now_s, self.next_s) + cost_s
        await asyncio.sleep(self.next_s - now_s)
