"""Let concurrent requests share the store and the event loop.

`SharedRun` lets any number of callers wait for one run of the same work; `KeyedLocks` lets changes of one token follow
each other while those of other tokens go on; `in_turns` walks over many tokens without holding up other tasks.
They keep nothing when no task waits. For one event loop, without a clock.

Source: docs/architecture.md#a-token-works-on-every-node-at-once, docs/design.md#a-change
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

Item = TypeVar("Item")

ITEMS_A_TURN: Final = 1_000
"""After how many items a walk lets other tasks have their turn; about a millisecond."""


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
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Wait for the end of a run that has not begun yet."""
        if self._next is None:
            self._next = asyncio.create_task(self._run_after(self._running))
            self._next.add_done_callback(_seen)
        await asyncio.shield(self._next)

    async def _run_after(self, previous: asyncio.Task[None] | None) -> None:
        if previous is not None and not previous.done():
            await asyncio.wait([previous])
        # From here on this run may miss what a new caller wants to see, so new callers wait for another.
        self._running, self._next = self._next, None
        await self._work()


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


def _seen(task: asyncio.Task[None]) -> None:
    """Take note of a failure, so that one whose callers have all been cancelled is not reported as forgotten."""
    if not task.cancelled():
        task.exception()
