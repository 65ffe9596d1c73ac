"""Deliver lines by a thread that empties the queue in batches, for sinks that block.

    delivery = ThreadedDelivery(sink, buffer_bytes=32 * 1024 * 1024)

Limits: lines wait in memory. A process that is killed loses those of the last `LINGER_SECONDS`, or the whole queue of a
sink that fails.

Source: docs/audit.md, "What can be lost".
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Protocol

from kafka_dt.audit.delivery import RETRY_SECONDS, Delivery, SinkFailed, Waiting

LINGER_SECONDS: Final = 0.1
"""How often lines are written, at most, unless they fill much of the queue: those that come meanwhile are gathered."""
HURRY_SHARE: Final = 0.125
"""How much of the queue that is: half of what the events with the smallest share may fill."""


class Sink(Protocol):
    """The destination of lines. One thread calls all methods, and they may block it.

    `write`, `tend` and `open` raise SinkFailed. The first two are called again later, and then also do what `open` has
    failed to do.
    """

    @property
    def name(self) -> str:
        """The sink's name in the log."""

    def open(self) -> None:
        """Prepare; called once, before all other methods."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Take lines, each with its line feed."""

    def tend(self) -> float | None:
        """Do the work that is due without lines; return the seconds until more is due, None for never."""

    def close(self) -> None:
        """Complete the output."""


class ThreadedDelivery(Delivery):
    """Brings lines to one sink in a thread.

    Args:
        sink: the sink.
        buffer_bytes: how much may wait for it.
        monotonic: a clock in seconds.
        linger_seconds: how long after it has begun to write the thread gathers lines before it writes again.
        retry_seconds: how long a sink that fails is left alone.
    """

    on_loop: ClassVar[bool] = False

    def __init__(
        self,
        sink: Sink,
        *,
        buffer_bytes: int,
        monotonic: Callable[[], float] = time.monotonic,
        linger_seconds: float = LINGER_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        super().__init__(sink.name, buffer_bytes=buffer_bytes, monotonic=monotonic, retry_seconds=retry_seconds)
        self._sink = sink
        self._linger_seconds = linger_seconds
        self._come = threading.Event()
        self._hurry = threading.Event()
        self._closing = threading.Event()
        self._batch: Sequence[Waiting] = ()  # what the sink has been offered
        self._thread = threading.Thread(target=self._run, name=f"audit to {sink.name}", daemon=True)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    async def close(self, timeout_seconds: float) -> None:
        """Deliver the queued lines, and end."""
        await asyncio.to_thread(self.join, timeout_seconds)

    def join(self, timeout_seconds: float) -> None:
        """Do as `close`; blocks."""
        self._closing.set()
        self._come.set()
        self._hurry.set()
        if self._thread.ident is None:
            return
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            self._not_taken_in_time(self._batch)

    def _wake(self) -> None:
        if not self._come.is_set():
            self._come.set()
        if HURRY_SHARE * self._buffer_bytes < self._room.waiting_bytes and not self._hurry.is_set():
            self._hurry.set()

    # The thread

    def _run(self) -> None:
        self._do(self._sink.open)
        due: float | None = 0.0
        begun = -math.inf
        while not self._closing.is_set():
            if self._come.wait(due):
                self._gather(begun + self._linger_seconds)
                begun = self._monotonic()
                self._come.clear()
                self._hurry.clear()
                self._deliver(len(self._lines))
            due = self._do(self._sink.tend)
            self._report()
            due = self._report_due(due)
        self._deliver(len(self._lines))
        self._do(self._sink.close)
        self._report(now=True)

    def _gather(self, until: float) -> None:
        """Let further lines come until a moment, or until they fill much of the queue."""
        left = until - self._monotonic()
        if left > 0:
            self._hurry.wait(left)

    def _deliver(self, count: int) -> None:
        """Deliver the queued lines, however long it takes; give up only when closing."""
        while count and (batch := self._take(count)):
            count -= len(batch)
            self._batch = batch
            while (written := self._write(batch)) < len(batch):
                self._done(batch[:written])
                del batch[:written]
                if self._closing.is_set():
                    self._batch = ()
                    self._abandon(batch)
                    return
                self._report()
                self._closing.wait(self._retry_seconds)
            self._batch = ()
            self._done(batch)

    def _write(self, batch: Sequence[Waiting]) -> int:
        """Give lines to the sink; returns how many it has taken."""
        try:
            self._sink.write([each.line for each in batch])
        except Exception as error:  # noqa: BLE001 - the thread must live on
            self._fail(error)
            return error.written if isinstance(error, SinkFailed) else 0
        self._works()
        return len(batch)

    def _do(self, work: Callable[[], float | None]) -> float | None:
        """Let the sink do other work than writing; return when it is due again."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(error)
            return self._retry_seconds
