"""Do blocking work for many waiting callers, a little of it at once: the newest request comes first.

    queue = NewestFirst(executor, keep, at_once=2, most_waiting=1_000)
    result = await queue.run(key, work)

Strangers can ask for work without end, so it is bounded. Work is done once for all callers that ask for the same key.
It is dropped when no caller waits for it any more, and the oldest is dropped when too much waits: the newest callers
have the most patience left. Work that has begun is done, and its result is kept.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class TooMuchWaits(Exception):
    """The work was dropped undone, because too much was asked for after it."""

    def __init__(self) -> None:
        super().__init__("too much work has come since")


@dataclass(slots=True, eq=False)
class _Work(Generic[Result]):
    do: Callable[[], Result]
    done: asyncio.Future[Result]
    asked_for: int = 0
    """How many wait for it."""


class NewestFirst(Generic[Key, Result]):
    """A queue of work by key; `keep` gets each key and result, whether or not a caller still waits for it."""

    def __init__(
        self, executor: Executor, keep: Callable[[Key, Result], None], *, at_once: int, most_waiting: int
    ) -> None:
        self._executor = executor
        self._keep = keep
        self._at_once = at_once
        self._most_waiting = most_waiting
        self._waiting: OrderedDict[Key, _Work[Result]] = OrderedDict()  # the newest last
        self._under_way: dict[Key, _Work[Result]] = {}

    def __len__(self) -> int:
        return len(self._waiting) + len(self._under_way)

    async def run(self, key: Key, do: Callable[[], Result]) -> Result:
        """Return the result of the work for a key, which is done in its turn unless it is under way already.

        Raises:
            TooMuchWaits: it was dropped.
        """
        work = self._under_way.get(key) or self._waiting.pop(key, None)
        if work is None:
            work = _Work(do, asyncio.get_running_loop().create_future())
        if key not in self._under_way:
            self._waiting[key] = work
            self._drop_the_oldest()
            self._begin()
        work.asked_for += 1
        try:
            return await asyncio.shield(work.done)
        finally:
            work.asked_for -= 1
            if not work.asked_for and self._waiting.get(key) is work:
                del self._waiting[key]

    def _drop_the_oldest(self) -> None:
        if len(self._waiting) > self._most_waiting:
            self._waiting.popitem(last=False)[1].done.set_exception(TooMuchWaits())

    def _begin(self) -> None:
        while self._waiting and len(self._under_way) < self._at_once:
            key, work = self._waiting.popitem()
            self._under_way[key] = work
            future = asyncio.get_running_loop().run_in_executor(self._executor, work.do)
            future.add_done_callback(partial(self._finished, key))

    def _finished(self, key: Key, future: asyncio.Future[Result]) -> None:
        work = self._under_way.pop(key)
        if future.cancelled():
            work.done.cancel()
        elif error := future.exception():
            work.done.set_exception(error)
        else:
            self._keep(key, future.result())
            work.done.set_result(future.result())
        if not future.cancelled():
            self._begin()
