"""A rate that may not be exceeded, counted without a queue.

Source: the generic cell rate algorithm (ITU-T I.371).
"""

from __future__ import annotations

from collections.abc import Callable


class Rate:
    """So many a second, and as many at once after a second of rest.

    Args:
        per_second: more than 0.
        clock: seconds; never goes back.
    """

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._interval_s = 1 / per_second
        self._burst_s = max(0.0, 1 - self._interval_s)
        self._clock = clock
        self._next = clock()

    def count(self) -> float:
        """Count one; returns for how many seconds no other may follow, 0 or less for none."""
        now = self._clock()
        self._next = max(self._next, now) + self._interval_s
        return self._next - self._burst_s - now
