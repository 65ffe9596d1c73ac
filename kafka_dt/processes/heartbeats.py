"""Tell a worker that hangs from one that works: a worker beats from its event loop, and the supervisor counts.

    await beat(sys.stdout.fileno(), every_s)   # in the worker, as long as it lives

    watch = Watch(timeout_s)                   # in the supervisor
    watch.heard()                              # at each line of the worker
    await watch.silence()                      # returns when the worker has been silent for too long

The supervisor counts its own looks and asks no clock. A pause of the whole machine or container is therefore one look,
however long it was, and each worker has its whole time again afterwards.
"""

from __future__ import annotations

import asyncio
import os
import select
from contextlib import suppress
from typing import Final

ALIVE: Final = "alive"
"""The line that a worker writes again and again."""
BEATS: Final = 10
"""How many beats fit at least into the time after which a silent worker is taken to hang."""
LONGEST_PAUSE_S: Final = 1.0
"""The most between two beats."""
START_S: Final = 120.0
"""How long a worker may take to its first beat; until then it loads its program. It reads the tokens afterwards, and
beats meanwhile."""


def beat_seconds(timeout_s: float) -> float:
    """Say how many seconds lie between two beats, for the time after which a silent worker is taken to hang."""
    return min(LONGEST_PAUSE_S, timeout_s / BEATS)


async def beat(descriptor: int, every_s: float) -> None:
    """Beat for ever.

    Args:
        descriptor: a pipe to the supervisor.
        every_s: seconds between two beats, as `beat_seconds` says.
    """
    while True:
        beat_once(descriptor)
        await asyncio.sleep(every_s)


def beat_once(descriptor: int) -> None:
    """Beat, unless the supervisor does not read: a worker must not wait for a supervisor that was stopped."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    if poll.poll(0):
        with suppress(BrokenPipeError):  # the supervisor has ended, which stops the worker soon
            os.write(descriptor, f"{ALIVE}\n".encode())


class Watch:
    """Counts how often in a row a worker was silent from one look to the next.

    Args:
        timeout_s: how long it may be silent, in seconds.
    """

    def __init__(self, timeout_s: float) -> None:
        self._every_s = beat_seconds(timeout_s)
        self._timeout_s = timeout_s
        self._silent_looks = 0
        self._has_begun = False

    def heard(self) -> None:
        """Take note that the worker has written something."""
        self._silent_looks = 0
        self._has_begun = True

    async def silence(self) -> None:
        """Return when the worker has been silent for too long."""
        while self._silent_looks * self._every_s < self._patience_s():
            await asyncio.sleep(self._every_s)
            self._silent_looks += 1

    def _patience_s(self) -> float:
        return self._timeout_s if self._has_begun else max(self._timeout_s, START_S)
