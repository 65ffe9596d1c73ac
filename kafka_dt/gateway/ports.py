"""A port for each broker behind the gateway, on every listener that has a port base; of one worker.

    ports = BrokerPorts(addresses, [PortListener(listener, opened, new_connection)], node="4711")
    brokers.on_change(ports.brokers_changed)
    ...
    ports.close()

A broker's port is listened on before `brokers_changed` returns, and so before the answer that tells of the broker is
sent. The other workers follow when they learn of it; until then the worker that knows takes all connections.

A broker that has gone keeps its port for a while, because most brokers come back. The gateway accepts a client that
connects meanwhile and closes the connection, as a broker that stops does. Connections outlive the closing of their
port.

A port that cannot be opened is one line in the log, and the gateway tries again until it can. The broker's address
stays the same, so its clients cannot connect, or reach the program that has the port; other brokers are served.

Source: docs/design.md#the-gateway.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_dt.config import Listener
from kafka_dt.gateway.addresses import BrokerAddresses
from kafka_dt.server.listeners.deadlines import LoginConnection
from kafka_dt.server.listeners.listener import OpenListener

_LOG = logging.getLogger(__name__)

GONE_SECONDS: Final = 600.0
"""How long the port of a broker stays open after the broker has gone."""
RETRY_SECONDS: Final = 5.0
"""How soon the gateway tries again to open a port."""


@dataclass(frozen=True, slots=True)
class PortListener:
    """A listener whose brokers have ports."""

    listener: Listener
    opened: OpenListener
    new_connection: Callable[[int], LoginConnection]
    """Makes the protocol of a new socket, for the id of a broker."""


class BrokerPorts:
    """Opens and closes the ports of brokers.

    Args:
        addresses: say which ports.
        listeners: those that have a port base.
        node: what the workers of this node call it, and no other node of the machine is called; they share ports.
    """

    def __init__(self, addresses: BrokerAddresses, listeners: Sequence[PortListener], *, node: str) -> None:
        self._addresses = addresses
        self._listeners = listeners
        self._node = node
        self._closing: dict[int, asyncio.TimerHandle] = {}
        self._retrying: dict[tuple[str, int], asyncio.TimerHandle] = {}
        self._closed = False

    def brokers_changed(self, came: frozenset[int], went: frozenset[int]) -> None:
        """Open the ports of the brokers that came, and later close those of the brokers that went."""
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        for broker_id in came:
            if (closing := self._closing.pop(broker_id, None)) is not None:
                closing.cancel()
                continue
            for each in self._listeners:
                self._open(each, broker_id)
        for broker_id in went:
            self._closing[broker_id] = loop.call_later(GONE_SECONDS, self._close, broker_id)

    def close(self) -> None:
        """Open and close no more; open ports are closed with their listeners."""
        self._closed = True
        for timer in (*self._closing.values(), *self._retrying.values()):
            timer.cancel()
        self._closing.clear()
        self._retrying.clear()

    def _open(self, each: PortListener, broker_id: int) -> None:
        port = self._addresses.port(each.listener, broker_id)
        if port is None:
            _LOG.error(
                "Listener %s has no port for upstream broker %d: kafka.dt.gateway.broker.port.base + %d is the port of "
                "another listener or of its brokers, or no port; until that is changed, clients cannot reach it there",
                each.listener.name,
                broker_id,
                broker_id,
            )
            return
        try:
            each.opened.open_port(port, lambda: each.new_connection(broker_id), node=self._node)
        except OSError as error:
            self._open_later(each, broker_id, port, error)
        else:
            if self._retrying.pop((each.listener.name, broker_id), None) is not None:
                _LOG.info("Port %d of upstream broker %d on listener %s is open", port, broker_id, each.listener.name)

    def _open_later(self, each: PortListener, broker_id: int, port: int, error: OSError) -> None:
        key = (each.listener.name, broker_id)
        if key not in self._retrying:
            _LOG.error(
                "Port %d cannot be opened for upstream broker %d on listener %s, so clients cannot reach it there; the "
                "gateway tries again: %s",
                port,
                broker_id,
                each.listener.name,
                error.strerror,
            )
        loop = asyncio.get_running_loop()
        self._retrying[key] = loop.call_later(RETRY_SECONDS, self._open, each, broker_id)

    def _close(self, broker_id: int) -> None:
        del self._closing[broker_id]
        for each in self._listeners:
            if (retrying := self._retrying.pop((each.listener.name, broker_id), None)) is not None:
                retrying.cancel()
            elif (port := self._addresses.port(each.listener, broker_id)) is not None:
                each.opened.close_port(port)
