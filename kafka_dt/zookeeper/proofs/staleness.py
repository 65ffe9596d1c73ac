"""How old what is known here may be: the time since the last moment at which it is proved to have been complete.

    begun = freshness.now()
    barrier = client.barrier(path)            # a write, on which a quorum has to agree
    ...                                       # read all changes that were made before it
    await barrier
    freshness.prove(begun)

The moment that counts is that at which the proof was *begun*: an answer that waited in a buffer while this process
stood still proves nothing about the time in between. Nothing else moves it, neither a connection nor an answer to a
ping, so the staleness grows from that moment on, also while everything looks well. `is_due` says when to prove it
again: at a third of what is allowed, so that one proof may fail or take long.

A moment is read from three clocks, and the one on which most time has passed counts. The monotonic clock stands still
while the machine sleeps, the boot-time clock while a hypervisor holds it; the wall clock is set right after both. A
wall clock that is put forward for another reason costs one more proof.

Source: docs/architecture.md#revocation-is-bounded; clock_gettime(2).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from operator import sub
from typing import Final

from kafka_dt.tokens.store import NEVER_MS

PROOFS: Final = 3
"""How many proofs are asked for in the time that staleness is allowed to reach."""

Moment = tuple[float, ...]
"""One instant on several clocks, in seconds of each."""


def read_clocks() -> Moment:
    """Give this instant on the monotonic clock, the boot-time clock and the wall clock."""
    return (time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME), time.time())


class Freshness:
    """When it was last proved that everything was known; at first, never.

    Args:
        max_staleness_ms: the staleness at which logins by token stop, in milliseconds.
        now: reads the clocks.
    """

    __slots__ = ("_forgotten", "_interval_s", "_proved", "now")

    def __init__(self, max_staleness_ms: int, now: Callable[[], Moment] = read_clocks) -> None:
        self.now = now
        self._interval_s = max_staleness_ms / PROOFS / 1000
        self._proved: Moment | None = None
        self._forgotten: Moment | None = None

    def prove(self, begun: Moment) -> None:
        """Take note that everything acknowledged anywhere before `begun` is known here."""
        if self._forgotten is None or begun[0] >= self._forgotten[0]:
            self._proved = begun

    def forget(self) -> None:
        """Drop all proofs; a proof that has already begun does not count either."""
        self._forgotten = self.now()
        self._proved = None

    def staleness_ms(self) -> int:
        """Return for how long changes may have gone unnoticed, in milliseconds; NEVER_MS if nothing is proved."""
        return NEVER_MS if self._proved is None else int(self._staleness_s(self._proved) * 1000)

    def is_due(self) -> bool:
        """Whether it should be proved again."""
        return self._proved is None or self._staleness_s(self._proved) >= self._interval_s

    def due_in_s(self) -> float:
        """Return the seconds until it should be proved again; 0 if it is due."""
        return 0.0 if self._proved is None else max(0.0, self._interval_s - self._staleness_s(self._proved))

    def _staleness_s(self, proved: Moment) -> float:
        # A wall clock that was set back tells nothing; the others never go back.
        staleness_s: float = max(map(sub, self.now(), proved))
        return staleness_s
