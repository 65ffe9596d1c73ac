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


class Durability:
    """Tells when events are durable. All but the sinks' news is for one event loop."""

    def __init__(self, deliveries: Sequence[Delivery]) -> None:
        self._deliveries = deliveries
        self._waiting: list[tuple[Place, Callable[[bool], None]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        for delivery in deliveries:
            delivery.on_progress = self._notify

    def start(self) -> None:
        """Listen to the sinks; called on the event loop, before they start."""
        self._loop = asyncio.get_running_loop()

    @property
    def possible(self) -> bool:
        """Whether a sink works."""
        return not all(delivery.failing for delivery in self._deliveries)

    def then(self, place: Place, settled: Callable[[bool], None]) -> None:
        """Call `settled` from the loop when it is known whether an event is durable.

        Args:
            place: of the event.
            settled: gets whether it is; False if no sink can write it now.
        """
        self._waiting.append((place, settled))
        if self._is_known(place):
            asyncio.get_running_loop().call_soon(self._settle)

    async def of(self, place: Place) -> None:
        """Wait until an event is durable.

        Raises:
            AuditUnavailable: no sink can write it now.
        """
        known = asyncio.get_running_loop().create_future()
        self.then(place, lambda written: None if known.done() else known.set_result(written))
        if not await known:
            raise AuditUnavailable

    def _notify(self) -> None:
        """Hear in a sink's thread that it has written lines, or fails."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        waiting, self._waiting = self._waiting, []
        for place, settled in waiting:
            if self._is_known(place):
                settled(self._is_written(place))
            else:
                self._waiting.append((place, settled))

    def _is_known(self, place: Place) -> bool:
        return self._is_written(place) or not self._can_be_written(place)

    def _is_written(self, place: Place) -> bool:
        pairs = zip(place, self._deliveries, strict=True)
        return any(number != LOST and number <= delivery.written for number, delivery in pairs)

    def _can_be_written(self, place: Place) -> bool:
        return any(
            number != LOST and not delivery.failing for number, delivery in zip(place, self._deliveries, strict=True)
        )
