"""The guard of a node's workers, a process that is replaced when it ends, and the pauses before replacements.

    async with Guard(grace_s) as guard:
        with guard.guarding(process.pid):       # until the worker has ended
            ...
    pause_s = Pauses().after(lived_s)

`guard_process.py` is the program of that process.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

_LOG = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
"""Between a process's death and its successor; one that lived longer than this starts the count anew."""
GUARD: Final = Path(__file__).with_name("guard_process.py")


class Guard:
    """The process that ends the workers if the supervisor dies, and its successors.

    A guard that ends is replaced, after a pause, and its successor gets the process id of every live worker. A
    supervisor that is killed between the two could leave behind a worker that hangs. No worker may be left at the end
    of the block.

    Args:
        grace_s: how long a worker may take to end by itself when the supervisor has died, in seconds.

    Raises:
        OSError: the first guard cannot be started.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._workers: set[int] = set()
        self._process: asyncio.subprocess.Process | None = None
        self._keeping: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        await self._start()
        self._keeping = asyncio.create_task(self._keep())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._keeping.cancel()
        with suppress(asyncio.CancelledError):
            await self._keeping

    @contextmanager
    def guarding(self, pid: int) -> Iterator[None]:
        """Have a worker guarded during the block, which ends when the worker has ended."""
        self._workers.add(pid)
        self._tell(pid)
        try:
            yield
        finally:
            self._workers.discard(pid)

    async def _start(self) -> None:
        """Start a guard of all workers that live."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(GUARD), str(self._grace_s)),
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        for pid in self._workers:
            self._tell(pid)

    async def _keep(self) -> None:
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
                    await self._start()
        finally:
            if self._process is not None:
                with suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()

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


class Pauses:
    """The pauses between the lives of one process and its successors, longer each time while they keep dying."""

    def __init__(self) -> None:
        self._last_s = 0.0

    def after(self, lived_s: float) -> float:
        """Return how many seconds to wait after a process that has lived for so many."""
        doubled_s = self._last_s * 2 if lived_s < LONGEST_PAUSE_SECONDS else 0.0
        self._last_s = min(max(doubled_s, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        return self._last_s
