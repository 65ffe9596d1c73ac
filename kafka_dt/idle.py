"""Work that can wait, done in a thread while the event loop and the processors have nothing else to do.

    idle = IdleTime(executor)
    async with idle.turn():
        derived = await idle.run(partial(derive, password))     # a few milliseconds at most

Before the work comes a look: for a moment no such work is done, so the CPU time that the event loop's thread uses
meanwhile belongs to requests. If that is more than `MOST_BUSY` of the moment, the next look takes twice as long. After
a look that finds less, the work goes on for `SLICE_S`. A piece of work that takes far more time than CPU time has
waited for a processor, because another process uses it. That ends the slice, too.

One piece is done at a time, and several callers take turns. A caller chooses its work when its turn has come, because
it may have waited for long. A thread of low priority would be simpler, but the kernel could stop it while it holds the
interpreter's lock, and the event loop would wait for the lock.

All methods belong to the event loop's thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import Final, TypeVar

Result = TypeVar("Result")

SHORTEST_LOOK_S: Final = 0.01
LONGEST_LOOK_S: Final = 0.16
SLICE_S: Final = 0.05
"""How long a look is believed. A burst of requests shares the processors with the work for so long."""
MOST_BUSY: Final = 0.1
"""The part of a processor that the event loop of an idle worker uses at most."""
MOST_WAITED: Final = 2
"""How many times its CPU time a piece of work takes at most if a processor is free."""


class IdleTime:
    """The idle time of one worker.

    Args:
        executor: threads for the work, not for it alone.
        clock: seconds.
        loop_cpu: the CPU time of the thread that calls it, in seconds.
        sleep: `asyncio.sleep`.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        clock: Callable[[], float] = time.perf_counter,
        loop_cpu: Callable[[], float] = time.thread_time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._executor = executor
        self._clock = clock
        self._cpu = loop_cpu
        self._sleep = sleep
        self._turn = asyncio.Lock()
        self._look_s = SHORTEST_LOOK_S
        self._believed_until = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until nothing else is to be done; the next turn begins when this one has ended."""
        async with self._turn:
            while self._clock() >= self._believed_until:
                await self._look()
            yield

    async def run(self, work: Callable[[], Result]) -> Result:
        """Return the result of `work`, which is called in a thread; for the caller whose turn it is."""
        result, has_waited = await asyncio.get_running_loop().run_in_executor(self._executor, self._timed, work)
        if has_waited:
            self._look_longer()
        else:
            self._look_s = SHORTEST_LOOK_S
        return result

    async def _look(self) -> None:
        began_s, used_s = self._clock(), self._cpu()
        await self._sleep(self._look_s)
        ended_s = self._clock()
        if self._cpu() - used_s > MOST_BUSY * (ended_s - began_s):
            self._look_longer()
        else:
            self._believed_until = ended_s + SLICE_S

    def _look_longer(self) -> None:
        self._believed_until = 0.0
        self._look_s = min(2 * self._look_s, LONGEST_LOOK_S)

    def _timed(self, work: Callable[[], Result]) -> tuple[Result, bool]:
        """Do work in a thread, and say whether it has waited for a processor."""
        began_s, used_s = self._clock(), self._cpu()
        result = work()
        return result, self._clock() - began_s > MOST_WAITED * (self._cpu() - used_s)
