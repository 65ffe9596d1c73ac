"""Keep the guard of a node's workers alive: the process that ends them if the supervisor dies (`guard.py`).

    async with guarded(grace_s) as guard:
        with guard.guarding(pid):     # a worker, as long as it lives
            ...

A guard that ends is replaced, after a pause, and its successor gets the process id of every live worker. A supervisor
that is killed between the two could leave behind a worker that hangs.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from kafka_dt.processes.pauses import Pauses

_LOG = logging.getLogger(__name__)

GUARD: Final = Path(__file__).with_name("guard.py")


@asynccontextmanager
async def guarded(grace_s: float) -> AsyncIterator[Guard]:
    """Have the workers of this process guarded during the block; no worker may be left at its end.

    Args:
        grace_s: how long a worker may take to end by itself when the supervisor has died, in seconds.

    Raises:
        OSError: the first guard cannot be started.
    """
    guard = Guard(grace_s)
    await guard.start()
    keeping = asyncio.create_task(guard.keep())
    try:
        yield guard
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


class Guard:
    """The guard that lives, and its successors.

    Args:
        grace_s: as for `guarded`.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._workers: set[int] = set()
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start a guard of all workers that live.

        Raises:
            OSError: it cannot be started.
        """
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(GUARD), str(self._grace_s)),
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        for pid in self._workers:
            self._tell(pid)

    async def keep(self) -> None:
        """Replace the guard whenever it ends; when cancelled, end it."""
        pauses, loop = Pauses(), asyncio.get_running_loop()
        try:
            while True:
                started_s = loop.time()
                reason = await self._end()
                pause_s = pauses.after(loop.time() - started_s)
                _LOG.error("The guard of the workers %s; it is replaced in %.1f s", reason, pause_s)
                await asyncio.sleep(pause_s)
                with suppress(OSError):  # `_end` says that there is none
                    await self.start()
        finally:
            if self._process is not None:
                with suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()

    @contextmanager
    def guarding(self, pid: int) -> Iterator[None]:
        """Have a worker guarded during the block, which ends when the worker has ended."""
        self._workers.add(pid)
        self._tell(pid)
        try:
            yield
        finally:
            self._workers.discard(pid)

    async def _end(self) -> str:
        """Wait for the end of the guard; returns how it ended."""
        if self._process is None:
            return "cannot be started"
        status = await self._process.wait()
        self._process = None
        return f"ended with status {status}"

    def _tell(self, pid: int) -> None:
        """Name a worker to the guard; if the guard has just ended, its successor hears of the worker."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(b"%d\n" % pid)
