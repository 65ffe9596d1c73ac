"""Short pieces of work on threads, handed over many at a time.

    batches = Batches(executor, threads=2)
    result = await batches.submit(work)

Handing something to a thread and hearing of its end costs the event loop about a tenth of a millisecond, which is much
beside work of half a millisecond. So what is submitted in one turn of the loop goes to the threads together, in equal
shares, and while all threads are busy the next batches fill up. Nothing waits for a batch to be full: a single
piece goes to a thread in the next turn. Work begins in the order in which it was submitted.

The work runs in other threads: it must not touch what belongs to the event loop, and only pays if it releases the
interpreter's lock. For one event loop.

Source: concurrent.futures (one future an item); PEP 703 "Motivation" for what the lock leaves to threads.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from math import ceil
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

LARGEST: Final = 16
"""How many pieces a thread gets at once: of half a millisecond each, so that what comes later soon has its turn."""
BATCHES_A_THREAD: Final = 2
"""One at work, and the next one, so that a thread need not wait for the event loop."""

_Outcome = tuple[Any, Exception | None]


class Batches:
    """Runs work on threads.

    Args:
        executor: has the threads, perhaps not for us alone.
        threads: how many of them can be at work at the same time.
    """

    __slots__ = ("_executor", "_most", "_scheduled", "_under_way", "_waiting")

    def __init__(self, executor: Executor, threads: int) -> None:
        self._executor = executor
        self._most = threads * BATCHES_A_THREAD
        self._under_way = 0
        self._waiting: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self._scheduled = False

    def submit(self, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Have `work` called in a thread; what it returns or raises is the outcome of the future."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((work, future))
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._hand_over_soon)
        return future

    def _hand_over_soon(self) -> None:
        self._scheduled = False
        self._hand_over()

    def _hand_over(self) -> None:
        """Give the waiting work to the free threads, in equal shares."""
        while self._waiting and self._under_way < self._most:
            share = min(LARGEST, ceil(len(self._waiting) / (self._most - self._under_way)))
            # Work whose caller has gone is not begun.
            batch = [each for each in (self._waiting.popleft() for _ in range(share)) if not each[1].done()]
            futures = [future for _, future in batch]
            try:
                done = asyncio.get_running_loop().run_in_executor(self._executor, _run, [work for work, _ in batch])
            except RuntimeError as closed:  # the executor has been shut down
                _tell(futures, [(None, closed)] * len(futures))
                continue
            self._under_way += 1
            done.add_done_callback(partial(self._finished, futures))

    def _finished(self, futures: Sequence[asyncio.Future[Any]], done: asyncio.Future[list[_Outcome]]) -> None:
        self._under_way -= 1
        self._hand_over()  # first of all, so that no thread waits
        if done.cancelled():  # the executor was shut down before it began
            _tell(futures, [(None, RuntimeError("the threads have been stopped"))] * len(futures))
        else:
            _tell(futures, done.result())


def _run(batch: Sequence[Callable[[], Any]]) -> list[_Outcome]:
    return [_outcome(work) for work in batch]


def _outcome(work: Callable[[], Any]) -> _Outcome:
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the caller that submitted the work
        return None, error


def _tell(futures: Sequence[asyncio.Future[Any]], outcomes: Sequence[_Outcome]) -> None:
    for future, (value, error) in zip(futures, outcomes, strict=True):
        if future.done():  # the task that waited has been cancelled
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
