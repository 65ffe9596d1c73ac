"""Wait until an event is durable: written by at least one sink, whatever the others do (`kafka.dt.audit.mode=strict`).

    durability = Durability(deliveries)
    durability.start()                  # on the event loop
    place = tuple(delivery.put(line, kind) for delivery in deliveries)
    await durability.of(place)          # raises AuditUnavailable if no sink can write it

Events that come while a sink writes are its next batch, so that a write serves all clients that wait (group commit).
No client waits for a sink that fails: if no other works, those that wait are refused at once.

Source: HashiCorp Vault's audit devices; docs/audit.md, "Evidence".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from kafka_dt.audit.delivery import LOST, Delivery

Place = tuple[int, ...]
"""Where an event is in the queue of each sink: a number that grows, or `LOST`."""


class AuditUnavailable(Exception):
    """No sink can write audit events now."""

    def __init__(self) -> None:
        super().__init__("audit events cannot be written, and kafka.dt.audit.mode=strict allows nothing without them")


Settled = Callable[[AuditUnavailable | None], None]
"""Gets None when an event is durable, and the error if no sink can write it now."""


class Durability:
    """Tells when events are durable. All but the sinks' news is for one event loop."""

    def __init__(self, deliveries: Sequence[Delivery]) -> None:
        self._deliveries = deliveries
        self._waiting: list[tuple[Place, Settled]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        for delivery in deliveries:
            delivery.on_progress = self._settle if delivery.on_loop else self._notify

    def start(self) -> None:
        """Listen to the sinks; called on the event loop, before they start."""
        self._loop = asyncio.get_running_loop()

    @property
    def possible(self) -> bool:
        """Whether a sink works."""
        return not all(delivery.failing for delivery in self._deliveries)

    def then(self, place: Place, settled: Settled) -> None:
        """Call `settled` from the loop when it is known whether an event is durable."""
        self._waiting.append((place, settled))
        if self._is_durable(place) is not None:
            asyncio.get_running_loop().call_soon(self._settle)

    async def of(self, place: Place) -> None:
        """Wait until an event is durable.

        Raises:
            AuditUnavailable: no sink can write it now.
        """
        known: asyncio.Future[AuditUnavailable | None] = asyncio.get_running_loop().create_future()
        self.then(place, lambda error: None if known.done() else known.set_result(error))
        if error := await known:
            raise error

    def _notify(self) -> None:
        """Hear in a sink's thread that it has written lines, or fails."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        loop = asyncio.get_running_loop()
        waiting, self._waiting = self._waiting, []
        for place, settled in waiting:
            durable = self._is_durable(place)
            if durable is None:
                self._waiting.append((place, settled))
            else:  # a turn for each, so that an error of one keeps no other waiting
                loop.call_soon(settled, None if durable else AuditUnavailable())

    def _is_durable(self, place: Place) -> bool | None:
        """Say whether a sink has written an event; None while a sink that works still may."""
        may_be = False
        for number, delivery in zip(place, self._deliveries, strict=True):
            if number == LOST:
                continue
            if number <= delivery.written:
                return True
            may_be = may_be or not delivery.failing
        return None if may_be else False
