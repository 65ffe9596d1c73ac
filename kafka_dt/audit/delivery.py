"""Bring lines from the event loop to a sink: by a bounded queue, and a thread that empties it in batches.

    delivery = Delivery(sink, buffer_bytes=32 * 1024 * 1024)
    delivery.start()
    number = delivery.put(line, kind)   # on the event loop: never waits, never raises
    delivery.written >= number          # whether the sink has it
    delivery.close(5.0)             # in a thread: what is queued is written, or counted as lost

The thread offers a failing sink the same lines, in the same order, until it takes them. Meanwhile lines are queued up
to `buffer_bytes`, of which each kind of event has its share (`Budget`); further lines are lost, and counted by kind.
The log has one line when a sink fails, one when it works again, and one now and then about losses.

There is no lock: `put` belongs to one thread, the rest to the other, and each counts in numbers of its own.

Limits: lines wait in memory. A process that is killed loses those of the last `LINGER_SECONDS`, or the whole queue of a
sink that fails.

Source: docs/audit.md, "What can be lost".
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

from kafka_dt.audit.event import AuditEvent, EventType, Outcome

_LOG = logging.getLogger(__name__)

LINGER_SECONDS: Final = 0.1
"""How often lines are written, at most, unless they fill much of the queue: those that come meanwhile are gathered."""
HURRY_SHARE: Final = 0.125
"""How much of the queue that is: half of what the events with the smallest share may fill."""
RETRY_SECONDS: Final = 1.0
"""How long a sink that fails is left alone."""
LOST: Final = 0
"""The number of a line for which there was no room."""
REPORT_SECONDS: Final = 30.0
"""How often the log says that events are being lost."""
BATCH_BYTES: Final = 1024 * 1024
"""How much is given to a sink at once, unless one line is longer."""


class Budget(Enum):
    """The share of the queue that events of a kind may fill together, so that a flood of one displaces no other.

    A client without any rights can cause as many refused events as it likes, and one with a login as many logins.
    Successful changes may fill all of the queue, and find a quarter of it free whatever the others do.
    """

    CHANGES = 1.0
    """Successful changes: of tokens, ACLs, users and keys."""
    ACCESS = 0.5
    """Successful logins, and tokens that were described."""
    REFUSED = 0.25
    """Refused requests and failed logins."""


class EventKind(NamedTuple):
    """The kind of an event; losses are counted for each."""

    type: EventType
    outcome: Outcome

    def __str__(self) -> str:
        return f"{self.type} {self.outcome}"

    @classmethod
    def of(cls, event: AuditEvent) -> EventKind:
        """Return the kind of an event."""
        return cls(event.type, event.outcome)

    @property
    def budget(self) -> Budget:
        """The part of the queue that events of this kind may fill."""
        return _BUDGETS[self]


def _budget(kind: EventKind) -> Budget:
    if kind.outcome is Outcome.REFUSED:
        return Budget.REFUSED
    return Budget.ACCESS if kind.type in {EventType.LOGIN, EventType.TOKENS_DESCRIBED} else Budget.CHANGES


KINDS: Final = tuple(EventKind(type_, outcome) for type_ in EventType for outcome in Outcome)
_BUDGETS: Final = {kind: _budget(kind) for kind in KINDS}


@dataclass(eq=False)
class SinkFailed(Exception):
    """A sink cannot take lines now."""

    reason: str
    """One line for the log."""
    written: int = 0
    """How many of the lines the sink has written nevertheless, from the first one on."""

    def __str__(self) -> str:
        return self.reason


class Sink(Protocol):
    """The destination of lines. One thread calls all methods, and they may block it.

    `write` raises SinkFailed; `tend` and `open` may as well, and are called again later.
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


class _Waiting(NamedTuple):
    """A line in the queue."""

    line: bytes
    kind: EventKind


class Delivery:
    """Brings lines to one sink.

    Args:
        sink: the sink.
        buffer_bytes: how much may wait for it.
        monotonic: a clock in seconds.
        linger_seconds: how long after it has begun to write the thread gathers lines before it writes again.
        retry_seconds: how long a sink that fails is left alone.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        buffer_bytes: int,
        monotonic: Callable[[], float] = time.monotonic,
        linger_seconds: float = LINGER_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._sink = sink
        self._buffer_bytes = buffer_bytes
        self._monotonic = monotonic
        self._linger_seconds = linger_seconds
        self._retry_seconds = retry_seconds
        self._lines: deque[_Waiting] = deque()
        self._room = _Room(buffer_bytes)
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._closing = threading.Event()
        self.on_progress: Callable[[], None] = lambda: None
        """Called by the thread when the sink has written lines, or begins to fail."""
        self._thread = threading.Thread(target=self._run, name=f"audit to {sink.name}", daemon=True)
        # Of the thread that puts:
        self._put_lines = 0
        self._overflowed = dict.fromkeys(KINDS, 0)
        # Of the thread that takes:
        self.written = 0
        """The number of the last line that the sink has taken."""
        self.failing = False
        """Whether the sink could not write when it last tried."""
        self._abandoned = dict.fromkeys(KINDS, 0)
        self._taken = dict.fromkeys(KINDS, 0)
        self._reported = 0
        self._reported_at = -math.inf

    @property
    def lost(self) -> int:
        """How many lines were not delivered and will not be."""
        return sum(self._overflowed.values()) + sum(self._abandoned.values())

    def lost_by_kind(self) -> Mapping[EventKind, int]:
        """Return how many lines of each kind were lost, without kinds that lost none."""
        counts = {kind: self._overflowed[kind] + self._abandoned[kind] for kind in KINDS}
        return {kind: lost for kind, lost in counts.items() if lost}

    def written_by_kind(self) -> Mapping[EventKind, int]:
        """Return how many lines of each kind the sink has taken."""
        return self._taken

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def put(self, line: bytes, kind: EventKind) -> int:
        """Queue a line, or count it as lost where there is no room for its kind.

        Returns:
            The number of the line, from 1; `LOST` if there is no room.
        """
        if not self._room.enter(kind.budget, len(line)):
            self._overflowed[kind] += 1
            return LOST
        self._put_lines += 1
        self._lines.append(_Waiting(line, kind))
        if not self._wake.is_set():
            self._wake.set()
        if HURRY_SHARE * self._buffer_bytes < self._room.waiting_bytes and not self._hurry.is_set():
            self._hurry.set()
        return self._put_lines

    def close(self, timeout_seconds: float) -> None:
        """Deliver the queued lines, and end; blocks. Nothing may be put any more.

        Args:
            timeout_seconds: how long that may take; then the sink is abandoned.
        """
        self._closing.set()
        self._wake.set()
        self._hurry.set()
        if self._thread.ident is None:
            return
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            left = self._put_lines - self.written
            _LOG.warning("%s did not take the last audit events in time; lost: up to %d", self._sink.name, left)

    # The thread

    def _run(self) -> None:
        self._do(self._sink.open)
        due: float | None = 0.0
        begun = -math.inf
        while not self._closing.is_set():
            if self._wake.wait(due):
                self._gather(begun + self._linger_seconds)
                begun = self._monotonic()
                self._wake.clear()
                self._hurry.clear()
                self._deliver(len(self._lines))
            due = self._tend()
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
            while (written := self._write(batch)) < len(batch):
                self._done(batch[:written])
                del batch[:written]
                if self._closing.is_set():
                    self._abandon(batch)
                    return
                self._report()
                self._closing.wait(self._retry_seconds)
            self._done(batch)

    def _write(self, batch: Sequence[_Waiting]) -> int:
        """Give lines to the sink; returns how many it has taken."""
        try:
            self._sink.write([each.line for each in batch])
        except SinkFailed as error:
            self._fail(str(error))
            return error.written
        except Exception as error:  # noqa: BLE001 - the thread must live on
            self._fail_unforeseen(error)
            return 0
        if self.failing:
            self.failing = False
            _LOG.info("Audit events are written to %s again", self._sink.name)
            self._report(now=True)
        return len(batch)

    def _tend(self) -> float | None:
        due = self._do(self._sink.tend)
        self._report()
        if self._reported == self.lost:
            return due
        return REPORT_SECONDS if due is None else min(due, REPORT_SECONDS)  # so that a loss is reported

    def _do(self, work: Callable[[], float | None]) -> float | None:
        """Let the sink do other work than writing; return when it is due again."""
        try:
            return work()
        except SinkFailed as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001 - as above
            self._fail_unforeseen(error)
        return self._retry_seconds

    def _take(self, count: int) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        while len(batch) < count and size < BATCH_BYTES:
            batch.append(self._lines.popleft())
            size += len(batch[-1].line)
        return batch

    def _done(self, batch: Sequence[_Waiting]) -> None:
        self.written += len(batch)
        for each in batch:
            self._taken[each.kind] += 1
            self._room.leave(each.kind.budget, len(each.line))
        if batch:
            self.on_progress()

    def _abandon(self, batch: Sequence[_Waiting]) -> None:
        for each in (*batch, *self._lines):
            self._abandoned[each.kind] += 1
        self._lines.clear()

    def _fail(self, reason: str) -> None:
        if not self.failing:
            self.failing = True
            _LOG.warning(
                "Audit events cannot be written to %s and are kept up to %d bytes: %s",
                self._sink.name,
                self._buffer_bytes,
                reason,
            )
            self.on_progress()

    def _fail_unforeseen(self, error: Exception) -> None:
        if not self.failing:
            _LOG.error("%s fails because of an unexpected error", self._sink.name, exc_info=error)
        self._fail(type(error).__name__)

    def _report(self, *, now: bool = False) -> None:
        """Log how many events were lost, now and then, if the number has grown."""
        lost = self.lost
        if lost == self._reported or not (now or self._monotonic() - self._reported_at >= REPORT_SECONDS):
            return
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.lost_by_kind().items())
        _LOG.warning("Audit events for %s are lost: %d so far (%s)", self._sink.name, lost, kinds)
        self._reported, self._reported_at = lost, self._monotonic()


class _Room:
    """Counts the bytes that wait in a queue, for each budget.

    One thread enters and another one leaves; each counts in numbers of its own, so there is no lock.

    Args:
        limit_bytes: how much may wait in all.
    """

    __slots__ = ("_entered", "_entered_bytes", "_left", "_left_bytes", "_limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._entered = dict.fromkeys(Budget, 0)
        self._left = dict.fromkeys(Budget, 0)
        self._entered_bytes = 0
        self._left_bytes = 0

    @property
    def waiting_bytes(self) -> int:
        """How much waits."""
        return self._entered_bytes - self._left_bytes

    def enter(self, budget: Budget, size: int) -> bool:
        """Take bytes in; False if there is no room for them. A budget of which nothing waits has room for one line."""
        own = self._entered[budget] - self._left[budget]
        if self.waiting_bytes + size > self._limit_bytes or (own and own + size > budget.value * self._limit_bytes):
            return False
        self._entered[budget] += size
        self._entered_bytes += size
        return True

    def leave(self, budget: Budget, size: int) -> None:
        """Let bytes out."""
        self._left[budget] += size
        self._left_bytes += size
