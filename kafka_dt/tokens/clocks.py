"""Compares the clock of this machine with that of the store, before anything is deleted for its age.

    clocks = await compare_clocks(store.time_ms, now_ms)
    clocks.past_ms            # has passed by both clocks
    clocks.differ_too_much    # neither clock can be trusted then

The time of the store is that of a write which it makes for this. The write falls somewhere between asking and the
answer, so a slow store looks like no difference, never like a large one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

NOTICED_MS: Final = 5_000
"""A difference beyond this is worth a warning."""
TRUSTED_MS: Final = 60_000
"""With a difference beyond this nothing is deleted for its age."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """What two clocks showed at one moment, in milliseconds since 1970 in UTC."""

    asked_ms: int
    """The clock of this machine before the store was asked."""
    store_ms: int
    """The clock of the store when it was asked."""
    answered_ms: int
    """The clock of this machine when the store had answered."""

    @property
    def ahead_ms(self) -> int:
        """How far the clock of this machine is ahead at least; negative if it is behind."""
        return max(self.asked_ms - self.store_ms, 0) + min(self.answered_ms - self.store_ms, 0)

    @property
    def past_ms(self) -> int:
        """An instant that has passed by both clocks."""
        return min(self.asked_ms, self.store_ms)

    @property
    def differ(self) -> bool:
        """Whether the difference is worth a warning."""
        return abs(self.ahead_ms) > NOTICED_MS

    @property
    def differ_too_much(self) -> bool:
        """Whether the difference is so large that one of the clocks is wrong."""
        return abs(self.ahead_ms) > TRUSTED_MS

    def __str__(self) -> str:
        """Return the difference, as a clause."""
        direction = "ahead of" if self.ahead_ms > 0 else "behind"
        return f"the clock of this machine is {abs(self.ahead_ms) / 1000:.1f} s {direction} that of ZooKeeper"


async def compare_clocks(store_time_ms: Callable[[], Awaitable[int]], now_ms: Callable[[], int]) -> Clocks:
    """Ask the store for its time.

    Args:
        store_time_ms: has the store make a write, and returns the time of it.
        now_ms: the clock of this machine, in milliseconds since 1970 in UTC.
    """
    asked_ms = now_ms()
    store_ms = await store_time_ms()
    return Clocks(asked_ms, store_ms, now_ms())
