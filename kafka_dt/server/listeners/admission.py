"""Which connections a node takes: overall, by a listener, and from one address.

A connection too many is closed as soon as it is accepted, before a byte of it is read, encrypted or not. The limits
hold for the node: its workers share what they count (`connection_counts.py`). A limit that is not set costs nothing.

Limits: a broker that has reached `max.connections` leaves further connections in the kernel's queue, or closes an idle
one in favour of its inter-broker listener; here the new connection is refused, which tells its client at once.

Source: kafka.network.ConnectionQuotas (`max.connections`, KIP-402; `max.connections.per.ip`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final, Self

from kafka_dt.config import ConfigError, Listener, Settings
from kafka_dt.config.options.option import INT_MAX
from kafka_dt.log import of_peer
from kafka_dt.server.addresses import client_host
from kafka_dt.server.listeners.connection_counts import MAX_LISTENERS, ConnectionCounts
from kafka_dt.server.listeners.deadlines import LoginConnection, LoginDeadlines

_LOG = logging.getLogger(__name__)

OVERRIDES_KEY: Final = "max.connections.per.ip.overrides"
KNOWN_HOSTS: Final = 1024
"""How many hosts' addresses are kept parsed: clients come again."""

_Address = str
"""An IP address in its shortest form, by which equal ones are equal; empty for every client without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How many connections a node takes."""

    maximum: int
    """`max.connections`."""
    by_listener: tuple[int, ...]
    """`listener.name.<name>.max.connections`, in the order of the listeners."""
    per_ip: int
    """`max.connections.per.ip`."""
    overrides: Mapping[_Address, int]
    """What counts in place of `per_ip` for some addresses."""

    @classmethod
    def of(cls, settings: Settings, made: Sequence[Listener]) -> Self:
        """Take the limits of a node; names among the overrides are looked up.

        Raises:
            ConfigError: an override cannot be used, or there are more listeners than can be counted.
        """
        if len(made) > MAX_LISTENERS:
            raise ConfigError("listeners", f"there are {len(made)}, no more than {MAX_LISTENERS} can be counted")
        return cls(
            maximum=settings.max_connections,
            by_listener=tuple(listener.max_connections for listener in made),
            per_ip=settings.max_connections_per_ip,
            overrides=dict(pair for text in settings.max_connections_per_ip_overrides for pair in _override(text)),
        )


class Admission:
    """Counts the connections that come by one listener of a worker, and says which one is too many.

    Args:
        limits: of the node.
        counts: shared by the listeners of a worker, and by the workers of a node.
        listener: its place among those of the node, from 0.
    """

    def __init__(self, limits: ConnectionLimits, counts: ConnectionCounts, listener: int) -> None:
        self._limits = limits
        self._counts = counts
        self._listener = listener
        self._by_address = limits.per_ip < INT_MAX or bool(limits.overrides)

    def enter(self, peer: Any) -> str | None:
        """Count a new connection, which then has to `leave`; or say why it may not stay.

        Args:
            peer: its client's address, as sockets give it.
        """
        # Counted before anything is compared: two workers may both refuse the last place, but not both take it.
        self._count(peer, 1)
        reason = self._too_many(peer)
        if reason is not None:
            self._count(peer, -1)
        return reason

    def leave(self, peer: Any) -> None:
        """Forget a connection that has entered."""
        self._count(peer, -1)

    def _count(self, peer: Any, change: int) -> None:
        self._counts.add(self._listener, change)
        if self._by_address:
            self._counts.add_address(_address(peer), change)

    def _too_many(self, peer: Any) -> str | None:
        limits = self._limits
        if limits.maximum < INT_MAX and self._counts.total > limits.maximum:
            return f"there are {limits.maximum} connections, no more are allowed (max.connections)"
        allowed = limits.by_listener[self._listener]
        if allowed < INT_MAX and self._counts.of_listener(self._listener) > allowed:
            return f"its listener has {allowed} connections, no more are allowed (max.connections of the listener)"
        if self._by_address:
            address = _address(peer)
            allowed = limits.overrides.get(address, limits.per_ip)
            if allowed < INT_MAX and self._counts.of_address(address) > allowed:
                return f"its address has {allowed} connections, no more are allowed (max.connections.per.ip)"
        return None


class AdmittedConnection(asyncio.Protocol):
    """A socket before and after its connection: lets it be made if it may stay, and tells when it is gone.

    Args:
        admission: the limits.
        accepted: told of every socket first.
        deadlines: closes the connection if its login takes too long.
        new_connection: makes the connection that serves the socket.
    """

    def __init__(
        self,
        admission: Admission,
        accepted: Callable[[asyncio.BaseTransport], None],
        deadlines: LoginDeadlines,
        new_connection: Callable[[], LoginConnection],
    ) -> None:
        self._admission = admission
        self._accepted = accepted
        self._deadlines = deadlines
        self._new_connection = new_connection
        self._inner: LoginConnection | None = None
        self._peer: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Make the connection, or close the socket."""
        self._accepted(transport)
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
