"""Deliver lines from the event loop to files that are synced, one batch after the other (group commit).

    delivery = SyncedDelivery(ChainedFiles(...), buffer_bytes=32 * 1024 * 1024)

A batch begins as soon as the batch before it is durable. It has all lines that have come meanwhile, so the more
clients wait, the more of them one sync serves. The loop writes a batch to the system's memory, which takes
microseconds, and the system syncs it beside the loop (`kafka_dt.audit.syncing`). Whatever can take long is done in a
thread: finding and completing files, and making room for the next lines.

There is no thread for each batch: a thread that syncs needs the interpreter before and after, and the event loop has it
(docs/decisions/0033-strict-audit.md).

Source: docs/audit.md, "Evidence".
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import ClassVar, Final, Protocol

from kafka_dt.audit.blocking import in_own_thread
from kafka_dt.audit.delivery import RETRY_SECONDS, Delivery, Waiting
from kafka_dt.audit.syncing import Syncing

LONGEST_SLEEP_S: Final = 3_600.0
"""How long a sink is left alone that needs nothing."""


class SyncedSink(Protocol):
    """Files that take lines at once and are synced by others. All methods raise SinkFailed, and may be called again.

    The event loop calls those for each batch. The others may block: a thread calls them, never two of them at a time,
    and never beside one of the loop's.
    """

    @property
    def name(self) -> str:
        """The sink's name in the log."""

    # In a thread

    def open(self) -> None:
        """Prepare; called once, before all other methods."""

    def make_room(self, lines: Sequence[bytes]) -> None:
        """See that `write` can take lines without a wait for the disk."""

    def take_back(self) -> None:
        """Remove what was written of the last batch, which is not durable."""

    def tend(self) -> float | None:
        """Do the work that is due without lines; return the seconds until more is due, None for never."""

    def close(self) -> None:
        """Complete the output."""

    # On the event loop

    def has_room(self, lines: Sequence[bytes]) -> bool:
        """Whether `write` can take lines."""

    def write(self, lines: Sequence[bytes]) -> int:
        """Write a batch to the system's memory; return the descriptor of the file that must be synced."""

    def confirm(self) -> None:
        """Take note that the last batch is durable."""


class SyncedDelivery(Delivery):
    """Brings lines to one sink, and syncs them.

    Args:
        sink: the sink.
        buffer_bytes: how much may wait for it.
        monotonic: a clock in seconds.
        retry_seconds: how long a sink that fails is left alone.
    """

    on_loop: ClassVar[bool] = True

    def __init__(
        self,
        sink: SyncedSink,
        *,
        buffer_bytes: int,
        monotonic: Callable[[], float] = time.monotonic,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        super().__init__(sink.name, buffer_bytes=buffer_bytes, monotonic=monotonic, retry_seconds=retry_seconds)
        self._sink = sink
        self._task: asyncio.Task[None] | None = None
        self._end = asyncio.Event()
        self._lines_come: asyncio.Future[None] | None = None
        self._tend_at_s = 0.0

    def start(self) -> None:
        """Begin to deliver."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"audit to {self._name}")

    async def close(self, timeout_seconds: float) -> None:
        """Deliver the queued lines, and end."""
        self._end.set()
        if self._task is None:
            return
        self._wake()
        done, _ = await asyncio.wait({self._task}, timeout=timeout_seconds)
        if not done:
            self._not_taken_in_time()
            self._task.cancel()
            await asyncio.wait({self._task})

    def _wake(self) -> None:
        if self._lines_come is not None and not self._lines_come.done():
            self._lines_come.set_result(None)

    # The task

    async def _run(self) -> None:
        syncing = Syncing()
        try:
            await self._do(self._sink.open)
            while self._lines or not self._end.is_set():
                if not self._lines:
                    await self._sleep()
                if self._lines:
                    await self._deliver(self._take(len(self._lines)), syncing)
                if self._monotonic() >= self._tend_at_s:
                    await self._tend()
            await self._do(self._sink.close)
            self._report(now=True)
        finally:
            syncing.close()

    async def _sleep(self) -> None:
        """Wait until lines come, the end is near or the sink is to be tended."""
        loop = asyncio.get_running_loop()
        self._lines_come = loop.create_future()
        timer = loop.call_later(max(0.0, self._tend_at_s - self._monotonic()), self._wake)
        await self._lines_come
        timer.cancel()

    async def _deliver(self, batch: Sequence[Waiting], syncing: Syncing) -> None:
        """Deliver lines, however long it takes; give up only at the end."""
        while not await self._write([each.line for each in batch], syncing):
            if self._end.is_set():
                self._abandon(batch)
                return
            self._report()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._end.wait(), self._retry_seconds)
        self._done(batch)

    async def _write(self, lines: Sequence[bytes], syncing: Syncing) -> bool:
        """Write lines and wait until they are durable; return whether they are."""
        try:
            if not self._sink.has_room(lines):
                self._tend_at_s = 0.0  # what is due next may be another file
                await in_own_thread(partial(self._sink.make_room, lines))
            await syncing.sync(self._sink.write(lines))
            self._sink.confirm()
        except Exception as error:  # noqa: BLE001 - the task must live on
            self._fail(error)
            await self._do(self._sink.take_back)
            return False
        self._works()
        return True

    async def _tend(self) -> None:
        due = await self._do(self._sink.tend)
        self._report()
        due = self._report_due(due)
        self._tend_at_s = self._monotonic() + (LONGEST_SLEEP_S if due is None else due)

    async def _do(self, work: Callable[[], float | None]) -> float | None:
        """Let the sink do other work than writing, in a thread; return when it is due again."""
        try:
            return await in_own_thread(work)
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(error)
            return self._retry_seconds
