"""Bring lines from the event loop to a sink: what waits, what was written, and what was lost.

    delivery = ThreadedDelivery(sink, buffer_bytes=32 * 1024 * 1024)
    delivery.start()
    number = delivery.put(line, kind)   # on the event loop: never waits, never raises
    delivery.written >= number          # whether the sink has it
    await delivery.close(5.0)           # what is queued is written, or counted as lost

A failing sink is offered the same lines, in the same order, until it takes them. Meanwhile lines are queued up to
`buffer_bytes`, of which each kind of event has its share (`Budget`); further lines are lost, and counted by kind. The
log has one line when a sink fails, one when it works again, and one now and then about losses.

`threaded.py` delivers from a thread, `synced.py` from the event loop, to files that are synced. There is no lock: `put`
belongs to the event loop, the rest to one deliverer, and each counts in numbers of its own.

Source: docs/audit.md, "What can be lost".
"""

from __future__ import annotations

import logging
import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final, NamedTuple

from kafka_dt.audit.event import AuditEvent, EventType, Outcome

_LOG = logging.getLogger(__name__)

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


class Waiting(NamedTuple):
    """A line in the queue."""

    line: bytes
    kind: EventKind


class Delivery(ABC):
    """The queue of one sink, and the account of it.

    Args:
        name: the sink's in the log.
        buffer_bytes: how much may wait for it.
        monotonic: a clock in seconds.
        retry_seconds: how long a sink that fails is left alone.
    """

    on_loop: ClassVar[bool]
    """Whether `on_progress` is called on the event loop, not in another thread."""

    def __init__(
        self,
        name: str,
        *,
        buffer_bytes: int,
        monotonic: Callable[[], float] = time.monotonic,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._name = name
        self._buffer_bytes = buffer_bytes
        self._monotonic = monotonic
        self._retry_seconds = retry_seconds
        self._lines: deque[Waiting] = deque()
        self._room = _Room(buffer_bytes)
        self.on_progress: Callable[[], None] = lambda: None
        """Called when the sink has written lines, or begins to fail."""
        # Of the event loop, which puts:
        self._put_lines = 0
        self._overflowed = dict.fromkeys(KINDS, 0)
        # Of the deliverer:
        self.written = 0
        """The number of the last line that the sink has taken."""
        self.failing = False
        """Whether the sink could not write when it last tried."""
        self._abandoned = dict.fromkeys(KINDS, 0)
        self._taken = dict.fromkeys(KINDS, 0)
        self._reported = 0
        self._reported_at = -math.inf

    @abstractmethod
    def start(self) -> None:
        """Begin to deliver; called on the event loop."""

    @abstractmethod
    async def close(self, timeout_seconds: float) -> None:
        """Deliver the queued lines, and end. Nothing may be put any more.

        Args:
            timeout_seconds: how long that may take; then the sink is abandoned.
        """

    @abstractmethod
    def _wake(self) -> None:
        """Let the deliverer know that a line waits."""

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

    def put(self, line: bytes, kind: EventKind) -> int:
        """Queue a line, or count it as lost where there is no room for its kind.

        Returns:
            The number of the line, from 1; `LOST` if there is no room.
        """
        if not self._room.enter(kind.budget, len(line)):
            self._overflowed[kind] += 1
            return LOST
        self._put_lines += 1
        self._lines.append(Waiting(line, kind))
        self._wake()
        return self._put_lines

    # The deliverer

    def _take(self, count: int) -> list[Waiting]:
        """Take lines from the queue for one batch, at most so many."""
        batch: list[Waiting] = []
        size = 0
        while len(batch) < count and size < BATCH_BYTES:
            batch.append(self._lines.popleft())
            size += len(batch[-1].line)
        return batch

    def _done(self, batch: Sequence[Waiting]) -> None:
        """Take note that lines are written."""
        self.written += len(batch)
        for each in batch:
            self._taken[each.kind] += 1
            self._room.leave(each.kind.budget, len(each.line))
        if batch:
            self.on_progress()

    def _abandon(self, batch: Sequence[Waiting]) -> None:
        """Count lines, and all that wait, as lost."""
        self._count_lost(batch)
        self._lines.clear()

    def _count_lost(self, batch: Sequence[Waiting]) -> None:
        for each in (*batch, *self._lines.copy()):
            self._abandoned[each.kind] += 1

    def _works(self) -> None:
        """Take note that the sink works."""
        if self.failing:
            self.failing = False
            _LOG.info("Audit events are written to %s again", self._name)
            self._report(now=True)

    def _fail(self, error: Exception) -> None:
        """Take note that the sink fails."""
        if self.failing:
            return
        self.failing = True
        if not isinstance(error, SinkFailed):
            _LOG.error("%s fails because of an unexpected error", self._name, exc_info=error)
        _LOG.warning(
            "Audit events cannot be written to %s and are kept up to %d bytes: %s",
            self._name,
            self._buffer_bytes,
            error if isinstance(error, SinkFailed) else type(error).__name__,
        )
        self.on_progress()

    def _report(self, *, now: bool = False) -> None:
        """Log how many events were lost, now and then, if the number has grown."""
        lost = self.lost
        if lost == self._reported or not (now or self._monotonic() - self._reported_at >= REPORT_SECONDS):
            return
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.lost_by_kind().items())
        _LOG.warning("Audit events for %s are lost: %d so far (%s)", self._name, lost, kinds)
        self._reported, self._reported_at = lost, self._monotonic()

    def _report_due(self, due: float | None) -> float | None:
        """Return the seconds until there is something to do, if it is `due` otherwise: a loss is reported in time."""
        if self._reported == self.lost:
            return due
        return REPORT_SECONDS if due is None else min(due, REPORT_SECONDS)

    def _not_taken_in_time(self, batch: Sequence[Waiting]) -> None:
        """Count a batch that the sink may still take, and all that wait, as lost at the end."""
        self._count_lost(batch)
        left = self._put_lines - self.written
        _LOG.warning("%s did not take the last audit events in time; lost: up to %d", self._name, left)


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
