"""Lanes: the same work several times at once, off one iterator that all of them take from.

    left = iter(names)

    async def lane() -> None:
        for name in left: ...

    await run_lanes(lane, 8, raises=ZooKeeperError)

The lanes end together: when the iterator is empty, or at the first error of one of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


async def run_lanes(lane: Callable[[], Coroutine[Any, Any, None]], count: int, *, raises: type[Exception]) -> None:
    """Run a lane several times at once; the first error ends all of them.

    Args:
        lane: makes one.
        count: how many.
        raises: the errors that are raised as themselves, the first of them; anything else comes in its group.
    """
    try:
        async with asyncio.TaskGroup() as lanes:
            for _ in range(count):
                lanes.create_task(lane())
    except ExceptionGroup as failed:
        # Not except*: before Python 3.11.4 it makes a group of what is raised there.
        foreseen, others = failed.split(raises)
        if foreseen is None or others is not None:
            raise
        raise foreseen.exceptions[0] from None
