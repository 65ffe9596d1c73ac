"""Long work that shares the event loop: it pauses after each slice of time, and little of it is under way at once.

    long_work = LongWork(time.monotonic)
    async with long_work.share(len(tokens)) as turns:
        async for batch in turns.take(tokens):
            ...

A slice is `SLICE_S`, so between two pauses other tasks wait for at most `AT_ONCE` slices. Work on more than
`SHORT_ITEMS` items waits for one of `AT_ONCE` places, first come, first served; shorter work never waits. A task that
is cancelled leaves the queue, or its place, at its next pause.

The time that one batch takes is not bounded here: an item is never interrupted.

Source: DESIGN "No request stops a node".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

Item = TypeVar("Item")

SLICE_S: Final = 0.004
"""For how long work goes on before other tasks have their turn, in seconds."""
BATCH: Final = 16
"""After how many items the clock is read."""
SHORT_ITEMS: Final = 1_000
"""How many items make no long work; a millisecond, or ten where nothing has been encoded before."""
AT_ONCE: Final = 2
"""How many pieces of long work are under way at once."""


class Turns:
    """The turns of one piece of work.

    Args:
        clock: the monotonic clock, in seconds.
    """

    __slots__ = ("_clock", "_until")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until = clock() + SLICE_S

    async def take(self, items: Sequence[Item]) -> AsyncIterator[Sequence[Item]]:
        """Give out `items` in batches, and let other tasks have their turn when a slice of time is over."""
        for start in range(0, len(items), BATCH):
            if self._clock() >= self._until:
                await asyncio.sleep(0)
                self._until = self._clock() + SLICE_S
            yield items[start : start + BATCH]


class LongWork:
    """The places of a worker for long work.

    Args:
        clock: the monotonic clock, in seconds.
    """

    __slots__ = ("_clock", "_places")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._places = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def share(self, items: int) -> AsyncIterator[Turns]:
        """Wait for a place if there are many items, and hold it for the body.

        Args:
            items: on about how many items the body works.
        """
        if is_short(items):
            yield Turns(self._clock)
            return
        async with self._places:
            yield Turns(self._clock)


def is_short(items: int) -> bool:
    """Say whether work on so many items needs no place."""
    return items <= SHORT_ITEMS
