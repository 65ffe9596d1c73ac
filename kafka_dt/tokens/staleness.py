"""Staleness: the time since the last moment until which every change is proved to be known here.

    begun = staleness.now()
    barrier = client.barrier(path)            # a write, on which a quorum has to agree
    ...                                       # read all changes that were made before it
    await barrier
    staleness.proved(begun)

Only a proof moves that moment, and it is the one at which the proof *began*: an answer that waited in a buffer while
this process stood still proves nothing about the time in between. A proof is due at a third of what is allowed, so
that one may fail or take long.

Three clocks are read, and the one on which most time has passed counts. The monotonic clock stands still while the
machine sleeps, the boot-time clock while a hypervisor holds it; the wall clock is set right after both.

Source: docs/architecture.md#revocation-is-bounded; docs/terms.md#staleness; clock_gettime(2).
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


class Staleness:
    """When it was last proved that everything was known; at first, never.

    Args:
        max_staleness_ms: the staleness at which logins by token stop, in milliseconds.
        now: reads the clocks.
    """

    __slots__ = ("_forgotten", "_proved", "interval_s", "now")

    def __init__(self, max_staleness_ms: int, now: Callable[[], Moment] = read_clocks) -> None:
        self.now = now
        self.interval_s: Final = max_staleness_ms / PROOFS / 1000
        """The time from one proof to the next, in seconds."""
        self._proved: Moment | None = None
        self._forgotten: Moment | None = None

    def proved(self, begun: Moment) -> None:
        """Take note that everything acknowledged anywhere before `begun` is known here."""
        if self._forgotten is None or begun[0] >= self._forgotten[0]:
            self._proved = begun

    def forget_proofs(self) -> None:
        """Drop all proofs; a proof that has already begun does not count either."""
        self._forgotten = self.now()
        self._proved = None

    def ms(self) -> int:
        """Return for how long changes may have gone unnoticed, in milliseconds; NEVER_MS if nothing is proved."""
        return NEVER_MS if self._proved is None else int(self._since_s(self._proved) * 1000)

    def is_proof_due(self) -> bool:
        """Whether it should be proved again."""
        return self.proof_due_in_s() == 0

    def proof_due_in_s(self) -> float:
        """Return the seconds until it should be proved again; 0 if it is due."""
        return 0.0 if self._proved is None else max(0.0, self.interval_s - self._since_s(self._proved))

    def _since_s(self, proved: Moment) -> float:
        # A wall clock that was set back tells nothing; the others never go back.
        since_s: float = max(map(sub, self.now(), proved))
        return since_s
