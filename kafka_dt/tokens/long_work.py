"""Long work that shares the event loop: it pauses after each slice of time, and little of it is under way at once.

    long_work = LongWork(time.monotonic)
    async with long_work.share(len(tokens)) as turns:
        async for batch in turns.take(tokens):
            ...

A slice is `SLICE_S`. Work on more than `SHORT_ITEMS` items waits for the one place for such work, and work on more than
`LONG_ITEMS` for another, first come, first served; so between two pauses other tasks wait for two slices at most, and
no task waits for much longer work than its own. Shorter work never waits. A task that is cancelled leaves the queue, or
its place, at its next pause.

The time that one batch takes is not bounded here: an item is never interrupted. Who has a place must not wait for
anything else, such as the store.

Source: docs/architecture.md#no-request-stops-a-node.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import islice
from typing import Final, TypeVar

Item = TypeVar("Item")

SLICE_S: Final = 0.004
"""For how long work goes on before other tasks have their turn, in seconds."""
BATCH: Final = 16
"""After how many items the clock is read."""
SHORT_ITEMS: Final = 100
"""On how many items work never waits; a tenth of a millisecond, or one where nothing has been encoded before."""
LONG_ITEMS: Final = 1_000
"""On how many items work does not wait for long work."""


class Turns:
    """The turns of one piece of work.

    Args:
        clock: the monotonic clock, in seconds.
    """

    __slots__ = ("_clock", "_until")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until = clock() + SLICE_S

    async def take(self, items: Iterable[Item]) -> AsyncIterator[tuple[Item, ...]]:
        """Give out `items`, which must not change, in batches; let others have their turn when a slice is over."""
        left = iter(items)
        while batch := tuple(islice(left, BATCH)):
            if self._clock() >= self._until:
                await asyncio.sleep(0)
                self._until = self._clock() + SLICE_S
            yield batch


class LongWork:
    """The places of a worker for long work.

    Args:
        clock: the monotonic clock, in seconds.
    """

    __slots__ = ("_clock", "_for_long", "_for_others")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._for_long = asyncio.Lock()
        self._for_others = asyncio.Lock()

    @asynccontextmanager
    async def share(self, items: int) -> AsyncIterator[Turns]:
        """Wait for a place if there are many items, and hold it for the body.

        Args:
            items: on about how many items the body works.
        """
        if items <= SHORT_ITEMS:
            yield Turns(self._clock)
            return
        async with self._for_long if is_long(items) else self._for_others:
            yield Turns(self._clock)


def is_long(items: int) -> bool:
    """Say whether work on so many items is long work."""
    return items > LONG_ITEMS
