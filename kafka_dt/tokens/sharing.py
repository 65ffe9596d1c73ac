"""Let concurrent requests share the store and the event loop.

`SharedRun` lets any number of callers wait for one run of the same work; `KeyedLocks` lets changes of one token follow
each other while those of other tokens go on; `in_turns` walks over many tokens without holding up other tasks.
`LongWork` shares the loop between requests about many tokens:

    long_work = LongWork(time.monotonic)
    async with long_work.share(len(tokens), "User:alice") as turns:
        async for batch in turns.take(tokens):
            ...

Work on more than `SHORT_ITEMS` items waits for the one place for such work, and work on more than `LONG_ITEMS` for
another; so between two pauses other tasks wait for two slices at most, and no task waits for much longer work than its
own. Those who ask have their turns, first come, first served, with one piece of work each at a time: who asks for ten
thousand pieces holds up others by one. A task that is cancelled leaves the queue, or its place, at its next pause. Who
has a place must not wait for anything else, such as the store. The time that one batch takes is not bounded here.

Source: docs/architecture.md#no-request-stops-a-node, docs/design.md#a-change
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from types import TracebackType
from typing import Final, TypeVar

Item = TypeVar("Item")
_Failed = tuple[Exception, TracebackType | None]
"""An exception, and where it was raised."""
ITEMS_A_TURN: Final = 1_000
"""After how many items a walk lets other tasks have their turn; about a millisecond."""
SLICE_S: Final = 0.004
"""For how long work goes on before other tasks have their turn, in seconds."""
BATCH: Final = 32
"""After how many items the clock is read."""
SHORT_ITEMS: Final = 100
"""On how many items work never waits; a tenth of a millisecond, or one where nothing has been encoded before."""
LONG_ITEMS: Final = 1_000
"""On how many items work does not wait for long work."""


class SharedRun:
    """Work of which each caller needs a run that begins after the call: one runs, and all others share the next.

    However many callers there are, the work is done one at a time; a caller waits for two runs at most. A caller that
    is cancelled does not cancel the run for the others.

    Args:
        work: what is to be done; what it raises reaches every caller of that run.
    """

    __slots__ = ("_next", "_running", "_work")

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._running: asyncio.Task[_Failed | None] | None = None
        self._next: asyncio.Task[_Failed | None] | None = None

    async def join(self) -> None:
        """Wait for the end of a run that has not begun yet."""
        if self._next is None:
            self._next = asyncio.create_task(self._run_after(self._running))
        failed = await asyncio.shield(self._next)
        if failed is not None:
            failure, traceback = failed
            # Each caller adds to the traceback of the work, not to those of other callers.
            raise failure.with_traceback(traceback)

    async def _run_after(self, previous: asyncio.Task[_Failed | None] | None) -> _Failed | None:
        """Return what the work raised: a task that raised it would be reported once its callers are all cancelled."""
        if previous is not None and not previous.done():
            await asyncio.wait([previous])
        # From here on this run may miss what a new caller wants to see, so new callers wait for another.
        self._running, self._next = self._next, None
        try:
            await self._work()
        except Exception as failure:  # noqa: BLE001 - `join` raises it
            return failure, failure.__traceback__
        return None


class KeyedLocks:
    """A lock for each key, there only while a task holds it or waits for it; first come, first served."""

    __slots__ = ("_locks",)

    def __init__(self) -> None:
        self._locks: dict[str, _CountedLock] = {}

    def __len__(self) -> int:
        return len(self._locks)

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        """Wait until no other task holds `key`, and hold it for the body."""
        lock = self._locks.setdefault(key, _CountedLock())
        lock.users += 1
        try:
            async with lock:
                yield
        finally:
            lock.users -= 1
            if not lock.users:
                del self._locks[key]


async def in_turns(items: Sequence[Item]) -> AsyncIterator[Sequence[Item]]:
    """Give out `items` in slices, and let other tasks have their turn between two of them."""
    for start in range(0, len(items), ITEMS_A_TURN):
        if start:
            await asyncio.sleep(0)
        yield items[start : start + ITEMS_A_TURN]


class _CountedLock(asyncio.Lock):
    users = 0


class Turns:
    """The turns of one piece of work.

    `clock` is the monotonic clock, in seconds.
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


class _Place:
    """A place that one piece of work has at a time; of each asker one waits for it, and the others for that one."""

    __slots__ = ("_askers", "_lock")

    def __init__(self) -> None:
        self._askers = KeyedLocks()
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def hold(self, asker: str) -> AsyncIterator[None]:
        async with self._askers.hold(asker), self._lock:
            yield


class LongWork:
    """The places of a worker for long work.

    `clock` is the monotonic clock, in seconds.
    """

    __slots__ = ("_clock", "_for_long", "_for_others")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._for_long = _Place()
        self._for_others = _Place()

    @asynccontextmanager
    async def share(self, items: int, asker: str) -> AsyncIterator[Turns]:
        """Wait for a place if the body works on many items, and hold it for the body; it works for `asker`."""
        if items <= SHORT_ITEMS:
            yield Turns(self._clock)
            return
        place = self._for_long if is_long(items) else self._for_others
        async with place.hold(asker):
            yield Turns(self._clock)


def is_long(items: int) -> bool:
    """Say whether work on so many items is long work."""
    return items > LONG_ITEMS
