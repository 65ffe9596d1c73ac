"""Where clients reach the brokers behind the gateway: each has an address of its own here, on every listener.

    addresses = BrokerAddresses(listeners)
    addresses.advertised(listener, 2, endpoint)     # what an answer says instead of broker 2's own address
    addresses.broker_of_name("broker-2.example.com")

    ports = BrokerPorts(addresses, [PortListener(listener, opened, new_connection)], node="4711")
    brokers.on_change(ports.brokers_changed)

Either by port, `kafka.dt.gateway.broker.port.base` + id on the host of the listener, or by name,
`kafka.dt.gateway.broker.host.pattern` with the id in it on the port of the listener, where TLS tells the name (SNI).

Every worker of every node has to give a broker the same port, whichever brokers it knows. So the ports from one base
up to the next belong to one listener, and a port that is a listener's own is no broker's. A broker whose port would
be another's has none on that listener: it is advertised with port 0, which no client can connect to, rather than with
one that leads elsewhere. What lies between clients and gateway must leave the brokers' port numbers as they are.

A broker's port is listened on before `brokers_changed` returns, and so before the answer that tells of the broker is
sent. The other workers follow when they learn of it. A broker that has gone keeps its port for a while, because most
brokers come back. The gateway accepts a client that connects meanwhile and closes the connection, as a broker that
stops does.

Source: RFC 6066, 3 (server names); docs/design.md#the-gateway.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_dt.config import Endpoint, Listener
from kafka_dt.server.listeners.deadlines import LoginConnection
from kafka_dt.server.listeners.listener import OpenListener

_LOG = logging.getLogger(__name__)

NO_PORT: Final = 0
"""Advertised where a broker has no port."""
PLACE: Final = "{id}"
"""Stands for the id in a host pattern."""
GONE_SECONDS: Final = 600.0
"""How long the port of a broker stays open after the broker has gone."""
RETRY_SECONDS: Final = 5.0
"""How soon the gateway tries again to open a port."""
_LARGEST_PORT: Final = 65535
_LARGEST_ID: Final = 2**31 - 1


class BrokerAddresses:
    """The addresses of all brokers, of those that there are and of those that may come.

    Args:
        listeners: of the node, with the ports that they are bound to.
    """

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._bases = sorted(each.broker_port_base for each in listeners if each.broker_port_base is not None)
        self._own_ports = {each.bind.port for each in listeners}
        self._names = [_matcher(each.broker_host_pattern) for each in listeners if each.broker_host_pattern]

    def advertised(self, listener: Listener, broker_id: int, endpoint: Endpoint) -> tuple[str, int]:
        """Say where a client reaches a broker.

        Args:
            listener: by which the client has come.
            broker_id: of the broker.
            endpoint: where that client reaches the listener.
        """
        if listener.broker_host_pattern:
            return listener.broker_host_pattern.replace(PLACE, str(broker_id)), endpoint.port
        port = self.port(listener, broker_id)
        return endpoint.host, NO_PORT if port is None else port

    def port(self, listener: Listener, broker_id: int) -> int | None:
        """Say on which port of a listener a broker is reached; None if it has none there."""
        base = listener.broker_port_base
        if base is None or broker_id < 0:
            return None
        port = base + broker_id
        end = min((other for other in self._bases if other > base), default=_LARGEST_PORT + 1)
        return port if port < end and port not in self._own_ports else None

    def broker_of_name(self, server_name: str) -> int | None:
        """Say which broker a client means by the name that it says in TLS; None for the listener's own or any other."""
        name = server_name.removesuffix(".")
        for matcher in self._names:
            if (found := matcher.fullmatch(name)) and (broker_id := int(found["id"])) <= _LARGEST_ID:
                return broker_id
        return None


@dataclass(frozen=True, slots=True)
class PortListener:
    """A listener whose brokers have ports."""

    listener: Listener
    opened: OpenListener
    new_connection: Callable[[int], LoginConnection]
    """Makes the protocol of a new socket, for the id of a broker."""


class BrokerPorts:
    """Opens and closes the ports of brokers; connections outlive the closing of their port.

    A port that cannot be opened is one line in the log, and the gateway tries again until it can. The broker's address
    stays the same meanwhile.

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
        name = each.listener.name
        port = self._addresses.port(each.listener, broker_id)
        if port is None:
            _LOG.error(
                "Listener %s has no port for upstream broker %d: kafka.dt.gateway.broker.port.base + %d is the port of "
                "another listener or of its brokers, or no port; until that is changed, clients cannot reach it there",
                *(name, broker_id, broker_id),
            )
            return
        retrying = self._retrying.pop((name, broker_id), None)
        try:
            each.opened.open_port(port, lambda: each.new_connection(broker_id), node=self._node)
        except OSError as error:
            if retrying is None:
                _LOG.error(
                    "Port %d cannot be opened for upstream broker %d on listener %s, so clients cannot reach it there; "
                    "the gateway tries again: %s",
                    *(port, broker_id, name, error.strerror),
                )
            loop = asyncio.get_running_loop()
            self._retrying[name, broker_id] = loop.call_later(RETRY_SECONDS, self._open, each, broker_id)
        else:
            if retrying is not None:
                _LOG.info("Port %d of upstream broker %d on listener %s is open", port, broker_id, name)

    def _close(self, broker_id: int) -> None:
        del self._closing[broker_id]
        for each in self._listeners:
            if (retrying := self._retrying.pop((each.listener.name, broker_id), None)) is not None:
                retrying.cancel()
            elif (port := self._addresses.port(each.listener, broker_id)) is not None:
                each.opened.close_port(port)


def _matcher(pattern: str) -> re.Pattern[str]:
    before, _, after = pattern.partition(PLACE)
    return re.compile(rf"{re.escape(before)}(?P<id>0|[1-9][0-9]{{0,9}}){re.escape(after)}", re.ASCII | re.IGNORECASE)
