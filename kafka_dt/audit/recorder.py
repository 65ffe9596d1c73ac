"""Make events, and queue them for every sink.

    log = QueuedLog([EventFiles(...), EventTopic(...)], buffer_bytes=32 * 1024 * 1024)
    log.start()
    recorder = Recorder(log, node="kdt1-0", instance=secrets.token_hex(8), now_ms=now_ms)
    recorder.record(EventType.TOKEN_CREATED, Outcome.OK, origin, token_id=..., owner=...)
    await log.close()               # the sinks get what is queued

`record` runs on the event loop; it never waits and never raises. It encodes the event at once, which takes some
microseconds, so that the queues hold bytes and their bound is one of memory. Every sink has a queue and a delivery of
its own: one that fails costs the others nothing.

In strict mode a caller waits before it tells its client: `await recorder.durable(place)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final, Protocol, TypedDict, Unpack

from kafka_dt.audit.chained_files import ChainedFiles
from kafka_dt.audit.delivery import Delivery, EventKind
from kafka_dt.audit.durability import AuditUnavailable, Durability, Place, Settled
from kafka_dt.audit.encoding import encode
from kafka_dt.audit.event import AuditEvent, EventType, Outcome
from kafka_dt.audit.synced import SyncedDelivery
from kafka_dt.audit.threaded import LINGER_SECONDS, Sink, ThreadedDelivery

STRICT_LINGER_SECONDS: Final = 0.003
"""How often a thread writes events in strict mode, at most, while clients wait."""
CLOSE_SECONDS: Final = 5.0
"""How long the end waits for sinks to take what is queued."""


class Facts(TypedDict, total=False):
    """The fields of an event that tell what it is about."""

    reason: str | None
    token_id: str | None
    owner: str | None
    requester: str | None
    renewers: tuple[str, ...] | None
    issue_time: int | None
    expiry_time: int | None
    max_time: int | None
    key_id: str | None
    count: int | None
    acl: str | None
    user: str | None
    keys: tuple[str, ...] | None
    entries: tuple[str, ...] | None
    limit: str | None


class Origin(TypedDict, total=False):
    """The fields of an event that tell which client is at the other end; their meaning is that of `AuditEvent`."""

    listener: str | None
    mechanism: str | None
    principal: str | None
    by_token: bool | None
    session_token_id: str | None
    client_id: str | None
    client_software: str | None
    client_software_version: str | None
    client_address: str | None
    client_port: int | None
    connection: str | None


NOBODY: Final = Origin()
"""The origin of an event that the node causes by itself."""


class AuditLog(Protocol):
    """Takes events."""

    def record(self, event: AuditEvent) -> Place:
        """Write down an event; never blocks, never raises."""


class Recorder:
    """Makes events and writes them to a log.

    Args:
        log: the log.
        node: the names of the node and of the worker.
        instance: text that no other start of any worker has.
        now_ms: the wall clock, milliseconds since the epoch.
        durability: tells when the log's events are durable; None where no client waits for that.
    """

    def __init__(
        self,
        log: AuditLog,
        *,
        node: str,
        instance: str,
        now_ms: Callable[[], int],
        durability: Durability | None = None,
    ) -> None:
        self._log = log
        self._durability = durability
        self._node = node
        self._instance = instance
        self._now_ms = now_ms
        self._events = count(1)
        self._connections = count(1)

    def connection(self) -> str:
        """Name a new connection."""
        return f"{self._instance}-c{next(self._connections)}"

    def now_ms(self) -> int:
        """Return the time, for an event that is recorded later."""
        return self._now_ms()

    @property
    def strict(self) -> bool:
        """Whether a client hears of a success only when its event is durable."""
        return self._durability is not None

    def require(self) -> None:
        """See that events can be written, if they must be.

        Raises:
            AuditUnavailable: they cannot.
        """
        if self._durability is not None and not self._durability.possible:
            raise AuditUnavailable

    def when_durable(self, place: Place, settled: Settled) -> bool:
        """Call `settled` later, when it is known whether an event is durable.

        Returns:
            Whether `settled` will be called: False in buffered mode, in which no client waits for an event.
        """
        if self._durability is None:
            return False
        self._durability.then(place, settled)
        return True

    async def durable(self, place: Place) -> None:
        """Wait until an event is durable; in buffered mode it need not be.

        Raises:
            AuditUnavailable: it cannot be written now.
        """
        if self._durability is not None:
            await self._durability.of(place)

    def record(
        self,
        kind: EventType,
        outcome: Outcome,
        origin: Origin = NOBODY,
        *,
        time_ms: int | None = None,
        **facts: Unpack[Facts],
    ) -> Place:
        """Record that something has happened, now unless a time is given."""
        return self._log.record(
            AuditEvent(
                id=f"{self._instance}-{next(self._events)}",
                time=self._now_ms() if time_ms is None else time_ms,
                node=self._node,
                type=kind,
                outcome=outcome,
                **origin,
                **facts,
            )
        )


class QueuedLog:
    """An `AuditLog` with sinks.

    Args:
        sinks: each gets every event.
        buffer_bytes: how much may wait for one sink.
        strict: whether `durability` tells when events are durable; lines are then gathered for milliseconds only.
        close_seconds: how long `close` may take.
    """

    durability: Durability | None
    """Tells when events are durable, None unless strict."""

    def __init__(
        self,
        sinks: Sequence[Sink | ChainedFiles],
        *,
        buffer_bytes: int,
        strict: bool = False,
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        linger_seconds = STRICT_LINGER_SECONDS if strict else LINGER_SECONDS
        self.deliveries: Final[tuple[Delivery, ...]] = tuple(
            SyncedDelivery(sink, buffer_bytes=buffer_bytes)
            if isinstance(sink, ChainedFiles)
            else ThreadedDelivery(sink, buffer_bytes=buffer_bytes, linger_seconds=linger_seconds)
            for sink in sinks
        )
        self.durability = Durability(self.deliveries) if strict else None
        self._close_seconds = close_seconds
        self._started = False

    @property
    def lost(self) -> int:
        """How many events at least one sink has lost."""
        return sum(delivery.lost for delivery in self.deliveries)

    def start(self) -> None:
        """Begin to deliver."""
        self._started = True
        if self.durability is not None:
            self.durability.start()
        for delivery in self.deliveries:
            delivery.start()

    def record(self, event: AuditEvent) -> Place:
        """Queue an event for every sink."""
        line, kind = encode(event), EventKind.of(event)
        return tuple([delivery.put(line, kind) for delivery in self.deliveries])

    async def close(self) -> None:
        """Deliver the queued events, and end; nothing may be recorded any more."""
        if self._started:
            self._started = False
            await asyncio.gather(*(delivery.close(self._close_seconds) for delivery in self.deliveries))
