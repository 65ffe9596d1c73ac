"""Deliver lines from the event loop to files that are synced, one batch after the other (group commit).

    delivery = SyncedDelivery(ChainedFiles(...), buffer_bytes=32 * 1024 * 1024)

A batch begins as soon as the batch before it is durable. It has all lines that have come meanwhile, so the more
clients wait, the more of them one sync serves. The loop writes a batch to the system's memory, which takes
microseconds, and the system syncs it beside the loop (`kafka_dt.audit.syncing`). Callbacks do this, without a task that
wakes for each batch. Whatever can take long is a task's: it has a thread find and complete files, and make room for the
next lines.

A sink that hangs, as the folder of a server that is away does, counts as one that fails after a while: clients that
wait are refused until its next batch is durable. The work under way goes on, and its lines are written first.

There is no thread for each batch: a thread that syncs needs the interpreter before and after, and the event loop has it
(docs/decisions/0049-syncs-beside-the-loop.md).

Source: docs/audit.md, "Evidence".
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import ClassVar, Final, Protocol

from kafka_dt.audit.delivery import RETRY_SECONDS, Delivery, SinkFailed, Waiting
from kafka_dt.audit.syncing import Syncing
from kafka_dt.blocking import in_own_thread

PATIENCE_SECONDS: Final = 5.0
"""A sink that has taken nothing for so long, while lines wait, hangs; it is found out after twice this time at most. A
disk that is only slow takes less. Clients wait longer for an answer (30 s by default), so they hear of it."""
LONGEST_SLEEP_S: Final = 3_600.0
"""How long a sink is left alone that needs nothing."""

_OtherWork = Callable[[], Awaitable[None]]
"""What must be done before the loop can write on."""


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
        self._tend_at_s = 0.0
        self._syncing: Syncing | None = None
        self._stopped: asyncio.Future[_OtherWork | None] | None = None  # while callbacks write: what ends that
        self._interrupted = False  # whether they end when the batch under way is durable
        self._idle = False  # whether they wait for a line
        self._batch: Sequence[Waiting] = ()  # what is written and not durable yet
        self._watch: asyncio.TimerHandle | None = None  # while lines wait

    def start(self) -> None:
        """Begin to deliver."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"audit to {self._name}")

    async def close(self, timeout_seconds: float) -> None:
        """Deliver the queued lines, and end."""
        self._end.set()
        if self._task is None:
            return
        self._interrupt()
        done, _ = await asyncio.wait({self._task}, timeout=timeout_seconds)
        if not done:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._not_taken_in_time(self._batch)

    # The task

    async def _run(self) -> None:
        self._syncing = Syncing(self._synced)
        try:
            await self._do(self._sink.open)
            while self._lines or not self._end.is_set():
                if other_work := await self._write_on(asyncio.get_running_loop()):
                    await other_work()
                if self._monotonic() >= self._tend_at_s:
                    await self._tend()
            await self._do(self._sink.close)
            self._report(now=True)
        finally:
            self._syncing.close()
            if self._watch is not None:
                self._watch.cancel()

    async def _write_on(self, loop: asyncio.AbstractEventLoop) -> _OtherWork | None:
        """Let callbacks write, until other work must be done: return it, None if it is time to look what is due."""
        self._stopped = loop.create_future()
        self._interrupted = False
        timer = loop.call_later(max(0.0, self._tend_at_s - self._monotonic()), self._interrupt)
        self._begin()
        try:
            return await self._stopped
        finally:
            timer.cancel()
            self._stopped = None

    async def _make_room(self, lines: Sequence[bytes]) -> None:
        self._tend_at_s = 0.0  # what is due next may be another file
        try:
            await in_own_thread(partial(self._sink.make_room, lines), "audit files")
        except Exception as error:  # noqa: BLE001 - the task must live on
            await self._recover(error)

    async def _recover(self, error: Exception) -> None:
        """Leave a sink that fails alone for a while; give up only at the end."""
        self._fail(error)
        await self._do(self._sink.take_back)
        if self._end.is_set():
            self._abandon(())
            return
        self._report()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._end.wait(), self._retry_seconds)

    async def _tend(self) -> None:
        due = await self._do(self._sink.tend)
        self._report()
        due = self._report_due(due)
        self._tend_at_s = self._monotonic() + (LONGEST_SLEEP_S if due is None else due)

    async def _do(self, work: Callable[[], float | None]) -> float | None:
        """Let the sink do other work than writing, in a thread; return when it is due again."""
        try:
            return await in_own_thread(work, "audit files")
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(error)
            return self._retry_seconds

    # The callbacks

    def _wake(self) -> None:
        if self._watch is None:
            self._watch_from(self.written)
        if self._idle:
            self._idle = False
            asyncio.get_running_loop().call_soon(self._begin)

    def _watch_from(self, written: int) -> None:
        """Look in a while whether the sink has taken more than so many lines."""
        self._watch = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._look, written)

    def _look(self, written: int) -> None:
        self._watch = None
        if not self._lines and not self._batch:
            return
        if self.written == written:
            self._fail(SinkFailed(f"it has not answered for {PATIENCE_SECONDS:g} s"))
        self._watch_from(self.written)

    def _interrupt(self) -> None:
        """Let the task look what is due, as soon as no batch is under way."""
        self._interrupted = True
        if not self._batch:
            self._stop(None)

    def _stop(self, other_work: _OtherWork | None) -> None:
        """Write no more before the task says so."""
        self._idle = False
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(other_work)

    def _begin(self) -> None:
        """Write the next batch, and have it synced."""
        if self._stopped is None or self._stopped.done() or self._syncing is None or self._batch:
            return
        if not self._lines:
            if self._end.is_set():
                self._stop(None)
            else:
                self._idle = True
            return
        self._batch = self._take(len(self._lines))
        lines = [each.line for each in self._batch]
        try:
            if self._sink.has_room(lines):
                self._syncing.begin(self._sink.write(lines))
            else:
                self._put_back(partial(self._make_room, lines))
        except Exception as error:  # noqa: BLE001 - the loop must live on
            self._put_back(partial(self._recover, error))

    def _synced(self, error: SinkFailed | None) -> None:
        """Take note that the batch under way is durable, or cannot be made so."""
        if error is not None:
            self._put_back(partial(self._recover, error))
            return
        try:
            self._sink.confirm()
        except Exception as unexpected:  # noqa: BLE001 - as above
            self._put_back(partial(self._recover, unexpected))
            return
        batch, self._batch = self._batch, ()
        self._works()
        self._done(batch)
        if self._interrupted:
            self._stop(None)
        else:
            self._begin()

    def _put_back(self, other_work: _OtherWork) -> None:
        """Put the batch under way before the lines that wait, until other work is done."""
        self._lines.extendleft(reversed(self._batch))
        self._batch = ()
        self._stop(other_work)
