"""The audit log: what the rest of a node writes events to, and what stands behind it.

    log = QueuedLog([EventFiles(...), EventTopic(...)], buffer_bytes=32 * 1024 * 1024)
    log.start()
    log.record(event)               # on the event loop; never waits, never raises
    await log.close()               # what is queued gets to the sinks

An event is encoded once, at once, which takes some microseconds, so that what waits is bytes and its bound is one of
memory. Every sink has a queue and a thread of its own: one that fails costs the others nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from kafka_dt.audit.budgets import EventKind
from kafka_dt.audit.delivery import Delivery, Sink
from kafka_dt.audit.encoding import encode
from kafka_dt.audit.event import AuditEvent

CLOSE_SECONDS: Final = 5.0
"""How long the end waits for sinks to take what is queued."""


class AuditLog(Protocol):
    """Takes events."""

    def record(self, event: AuditEvent) -> None:
        """Write down an event; never blocks, never raises."""


class NoAudit:
    """Writes nothing down."""

    def record(self, event: AuditEvent) -> None:
        """Do nothing."""


NO_AUDIT: Final = NoAudit()


class QueuedLog:
    """An `AuditLog` with sinks.

    Args:
        sinks: where events go, each of them.
        buffer_bytes: how much may wait for one sink.
        close_seconds: how long the end may take.
    """

    def __init__(self, sinks: Sequence[Sink], *, buffer_bytes: int, close_seconds: float = CLOSE_SECONDS) -> None:
        self._deliveries = tuple(Delivery(sink, buffer_bytes=buffer_bytes) for sink in sinks)
        self._close_seconds = close_seconds
        self._started = False

    @property
    def lost(self) -> int:
        """How many events at least one sink has lost."""
        return sum(delivery.lost for delivery in self._deliveries)

    def start(self) -> None:
        """Begin to deliver."""
        self._started = True
        for delivery in self._deliveries:
            delivery.start()

    def record(self, event: AuditEvent) -> None:
        """Queue an event for every sink."""
        line, kind = encode(event), EventKind.of(event)
        for delivery in self._deliveries:
            delivery.put(line, kind)

    async def close(self) -> None:
        """Deliver what is queued, and end; nothing may be recorded any more."""
        if self._started:
            self._started = False
            ends = (asyncio.to_thread(delivery.close, self._close_seconds) for delivery in self._deliveries)
            await asyncio.gather(*ends)
