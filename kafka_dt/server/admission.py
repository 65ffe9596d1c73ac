"""How many connections a worker takes: overall, and from one address.

A connection too many is closed as soon as it is accepted, before a byte of it is read, encrypted or not. The limits
hold for all listeners together, as in a broker, but each worker counts for itself: the kernel spreads connections over
the workers.

Limits: a broker that has reached `max.connections` leaves further connections in the kernel's queue, or closes an idle
one in favour of its inter-broker listener; here the new connection is refused, which tells its client at once.

Source: Kafka's SocketServer.ConnectionQuotas (`max.connections`, KIP-402; `max.connections.per.ip`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final

from kafka_dt.config import ConfigError, Settings
from kafka_dt.log import of_peer
from kafka_dt.server.addresses import client_host
from kafka_dt.server.deadlines import LoginConnection, LoginDeadlines

_LOG = logging.getLogger(__name__)

OVERRIDES_KEY: Final = "max.connections.per.ip.overrides"
KNOWN_HOSTS: Final = 1024
"""How many hosts' addresses are kept parsed: clients come again."""

_Address = str
"""An IP address in its shortest form, by which equal ones are equal; empty for every client without one."""


@dataclass(slots=True)
class Admission:
    """Counts the connections of a worker and says which one is too many."""

    maximum: int
    """`max.connections`."""
    per_ip: int
    """`max.connections.per.ip`."""
    overrides: Mapping[_Address, int]
    """What counts in place of `per_ip` for some addresses."""
    _counts: Counter[_Address] = field(default_factory=Counter)
    _total: int = 0

    @classmethod
    def from_settings(cls, settings: Settings) -> Admission:
        """Take the limits of a node; names among the overrides are looked up.

        Raises:
            ConfigError: an override cannot be used.
        """
        overrides = {
            address: count for text in settings.max_connections_per_ip_overrides for address, count in _override(text)
        }
        return cls(settings.max_connections, settings.max_connections_per_ip, overrides)

    def enter(self, peer: Any) -> str | None:
        """Count a new connection, which then has to `leave`; or say why it may not stay.

        Args:
            peer: its client's address, as sockets give it.
        """
        address = _address(peer)
        if self._total >= self.maximum:
            return f"there are {self.maximum} connections, no more are allowed (max.connections)"
        allowed = self.overrides.get(address, self.per_ip)
        if self._counts[address] >= allowed:
            return f"its address has {allowed} connections, no more are allowed (max.connections.per.ip)"
        self._counts[address] += 1
        self._total += 1
        return None

    def leave(self, peer: Any) -> None:
        """Forget a connection that has entered."""
        address = _address(peer)
        self._total -= 1
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]  # else the table would grow with every address that ever came


class AdmittedConnection(asyncio.Protocol):
    """A socket before and after its connection: lets it be made if it may stay, and tells when it is gone.

    Args:
        admission: the limits.
        deadlines: closes the connection if its login takes too long.
        new_connection: makes the connection that serves the socket.
    """

    def __init__(
        self, admission: Admission, deadlines: LoginDeadlines, new_connection: Callable[[], LoginConnection]
    ) -> None:
        self._admission = admission
        self._deadlines = deadlines
        self._new_connection = new_connection
        self._inner: LoginConnection | None = None
        self._peer: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Make the connection, or close the socket."""
        self._peer = transport.get_extra_info("peername")
        refusal = self._admission.enter(self._peer)
        if refusal is not None:
            host = client_host(self._peer)
            _LOG.info("Refusing a connection of %s: %s", host or "an unknown address", refusal, extra=of_peer(host))
            transport.abort()  # type: ignore[attr-defined]  # uvloop's transports are asyncio's in all but their class
            return
        try:
            self._inner = self._new_connection()
        except BaseException:
            self._admission.leave(self._peer)
            raise
        self._deadlines.begin(self._inner.login_overdue)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        if self._inner is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass it on."""
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on, and make room for another."""
        if self._inner is not None:
            self._admission.leave(self._peer)
            self._deadlines.forget(self._inner.login_overdue)
            self._inner.connection_lost(exc)


def _address(peer: Any) -> _Address:
    """Give a client's address; an IPv4 one that came to an IPv6 socket is the same as one that did not."""
    try:
        return _shortest(peer[0])
    except (ValueError, TypeError, IndexError):
        return ""


@lru_cache(KNOWN_HOSTS)
def _shortest(host: str) -> _Address:
    address = ip_address(host)
    return str(getattr(address, "ipv4_mapped", None) or address)


def _override(text: str) -> list[tuple[_Address, int]]:
    host, _, count = text.rpartition(":")
    host = host.strip().removeprefix("[").removesuffix("]")
    if not host or not count.strip().isdecimal():
        raise ConfigError(OVERRIDES_KEY, f"{text!r} is not of the form host:count")
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(OVERRIDES_KEY, f"{host} is no address and cannot be looked up: {error.strerror}") from None
    return [(_address(sockaddr), int(count)) for *_, sockaddr in found]
