"""Simulated time: processes that sleep and wake, in the order of their instants.

    def job(timeline):
        yield timeline.now_ms + HOUR_MS       # sleep until then
        ...                                   # do something now

    timeline.start(job(timeline))
    timeline.run(until_ms)

A process is a generator that yields the instant at which it wants to continue. A run takes the memory of its processes,
however much time passes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import Final

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

Process = Iterator[int]
"""Yields instants, in milliseconds since 1970."""


class Timeline:
    """Runs processes one after the other.

    Args:
        start_ms: the first instant.
    """

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.now_ms = start_ms
        self._order = count()
        self._sleeping: list[tuple[int, int, Process]] = []

    def start(self, process: Process, at_ms: int | None = None) -> None:
        """Let a process begin now, or at a later instant."""
        self._sleep(process, self.now_ms if at_ms is None else at_ms)

    def run(self, until_ms: int) -> None:
        """Let all processes continue until an instant."""
        while self._sleeping and self._sleeping[0][0] < until_ms:
            self.now_ms, _, process = heapq.heappop(self._sleeping)
            wake_ms = next(process, None)
            if wake_ms is not None:
                self._sleep(process, wake_ms)
        self.now_ms = until_ms

    def _sleep(self, process: Process, until_ms: int) -> None:
        heapq.heappush(self._sleeping, (max(until_ms, self.now_ms), next(self._order), process))
