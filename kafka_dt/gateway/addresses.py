"""Where clients reach the brokers behind the gateway: each has an address of its own here, on every listener.

    addresses = BrokerAddresses(listeners)
    addresses.advertised(listener, 2, endpoint)     # what an answer says instead of broker 2's own address
    addresses.port(listener, 2)                     # where to listen for it
    addresses.broker_of_name("broker-2.example.com")

Either by port, `kafka.dt.gateway.broker.port.base` + id on the host of the listener, or by name,
`kafka.dt.gateway.broker.host.pattern` with the id in it on the port of the listener, where TLS tells the name (SNI).

Every worker of every node has to give a broker the same port, whichever brokers it knows. So the ports from one base
up to the next belong to one listener, and a port that is a listener's own is no broker's. A broker whose port would
be another's has none on that listener: it is advertised with port 0, which no client can connect to, rather than with
one that leads elsewhere. What lies between clients and gateway must leave the brokers' port numbers as they are.

Source: RFC 6066, 3 (server names); docs/design.md#the-gateway.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kafka_dt.config import Endpoint, Listener

NO_PORT: Final = 0
"""Advertised where a broker has no port."""
PLACE: Final = "{id}"
"""Stands for the id in a host pattern."""
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


def _matcher(pattern: str) -> re.Pattern[str]:
    before, _, after = pattern.partition(PLACE)
    return re.compile(rf"{re.escape(before)}(?P<id>0|[1-9][0-9]{{0,9}}){re.escape(after)}", re.ASCII | re.IGNORECASE)
