"""Which connections a node takes: overall, by a listener, and from one address.

A connection too many is closed as soon as it is accepted, before a byte of it is read, encrypted or not. A limit that
is not set costs nothing. The limits hold for the node: each worker counts its connections in memory that all of them
share (`ConnectionCounts`). It writes its own row and reads all rows, so no lock is needed: it counts a connection
first, looks at the sums then, and takes its count back if they are too large. Two workers that take the last place at
the same moment may both refuse it, and never both keep it. The row of a worker that was killed counts until its
successor begins with an empty one.

Limits: a broker that has reached `max.connections` leaves further connections in the kernel's queue, or closes an idle
one in favour of its inter-broker listener; here the new connection is refused, which tells its client at once. An
address stands in a row under its keyed hash, at one of `WAYS` places; if other addresses have all of them, this worker
alone counts it: with 2,000 addresses at once once in millions, with 16,000 now and then.

Source: kafka.network.ConnectionQuotas (`max.connections`, KIP-402; `max.connections.per.ip`).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import mmap
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from ipaddress import ip_address
from typing import Any, Final, Self

from kafka_dt.config import ConfigError, Listener, Settings
from kafka_dt.config.options.option import INT_MAX
from kafka_dt.log import event
from kafka_dt.server.addresses import client_host
from kafka_dt.server.listeners.deadlines import LoginConnection, LoginDeadlines

_LOG = logging.getLogger(__name__)

OVERRIDES_KEY: Final = "max.connections.per.ip.overrides"
KNOWN_HOSTS: Final = 1024
"""How many hosts' addresses are kept parsed: clients come again."""
MAX_LISTENERS: Final = 64
SETS: Final = 2048
WAYS: Final = 8
KNOWN_ADDRESSES: Final = 1024
"""How many addresses' hashes are kept."""

_WORD_BYTES: Final = 8
_TOTAL: Final = 0
_LISTENERS: Final = 1
_ADDRESSES: Final = _LISTENERS + MAX_LISTENERS
_SET_WORDS: Final = 2 * WAYS
_ROW_WORDS: Final = _ADDRESSES + SETS * _SET_WORDS

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
            overrides=dict(
                pair for text in filter(None, settings.max_connections_per_ip_overrides) for pair in _override(text)
            ),
        )


class Admission:
    """Counts the connections that come by one listener of a worker, and says which one is too many.

    `refused` is called for each of those.
    """

    def __init__(
        self,
        limits: ConnectionLimits,
        counts: ConnectionCounts,
        listener: int,
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        self._refused = refused
        self._limits = limits
        self._counts = counts
        self._listener = listener
        self._by_address = limits.per_ip < INT_MAX or bool(limits.overrides)

    def enter(self, peer: Any) -> str | None:
        """Count a new connection, which then has to `leave`; or say why it may not stay."""
        # Counted before anything is compared: two workers may both refuse the last place, but not both take it.
        self._count(peer, 1)
        reason = self._too_many(peer)
        if reason is not None:
            self._count(peer, -1)
            self._refused()
        return reason

    def leave(self, peer: Any) -> None:
        """Forget a connection that has entered."""
        self._count(peer, -1)

    def begin_wait(self) -> str | None:
        """Count a new connection whose client is still to be named, until `end_wait`; or say why it may not stay."""
        self._counts.add(self._listener, 1)
        reason = self._too_many_in_all()
        if reason is not None:
            self._counts.add(self._listener, -1)
            self._refused()
        return reason

    def end_wait(self) -> None:
        """Forget a connection that has waited: it is gone, or enters."""
        self._counts.add(self._listener, -1)

    def _count(self, peer: Any, change: int) -> None:
        self._counts.add(self._listener, change)
        if self._by_address:
            self._counts.add_address(_address(peer), change)

    def _too_many(self, peer: Any) -> str | None:
        reason = self._too_many_in_all()
        if reason is None and self._by_address:
            address = _address(peer)
            allowed = self._limits.overrides.get(address, self._limits.per_ip)
            if allowed < INT_MAX and self._counts.of_address(address) > allowed:
                return f"its address has {allowed} connections, no more are allowed (max.connections.per.ip)"
        return reason

    def _too_many_in_all(self) -> str | None:
        limits = self._limits
        if limits.maximum < INT_MAX and self._counts.total > limits.maximum:
            return f"there are {limits.maximum} connections, no more are allowed (max.connections)"
        allowed = limits.by_listener[self._listener]
        if allowed < INT_MAX and self._counts.of_listener(self._listener) > allowed:
            return f"its listener has {allowed} connections, no more are allowed (max.connections of the listener)"
        return None


class AdmittedConnection(asyncio.Protocol):
    """A socket before and after its connection: lets it be made if it may stay, and tells when it is gone."""

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
            refuse(transport, refusal)
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


def refuse(transport: asyncio.BaseTransport, reason: str) -> None:
    """Close the socket of a connection that may not stay."""
    host = client_host(transport.get_extra_info("peername"))
    about = event("connection-refuse", host=host, reason=reason)
    _LOG.info("Refusing a connection of %s: %s", host or "an unknown address", reason, extra=about)
    transport.abort()  # type: ignore[attr-defined]  # uvloop's transports are asyncio's in all but their class


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
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "this cannot be the name of a host"
        raise ConfigError(OVERRIDES_KEY, f"{host} is no address and cannot be looked up: {reason}") from None
    return [(_address(sockaddr), int(count)) for *_, sockaddr in found]


class ConnectionCounts:
    """The connections of worker `number`, and the sums of its node; the node's name keys the hashes."""

    def __init__(self, memory: bytearray | mmap.mmap, number: int, node: str) -> None:
        self._words = memoryview(memory).cast("Q")
        self._row = number * _ROW_WORDS
        self._words[self._row : self._row + _ROW_WORDS] = memoryview(bytes(row_bytes())).cast("Q")
        self._key_of = lru_cache(KNOWN_ADDRESSES)(partial(_key, node.encode()))
        self._homeless: Counter[str] = Counter()

    @classmethod
    def shared(cls, descriptor: int, number: int, node: str) -> ConnectionCounts:
        """Give the counts that an open file holds, the same file for all workers."""
        return cls(mmap.mmap(descriptor, 0), number, node)

    def add(self, listener: int, change: int) -> None:
        """Count a connection of a listener, +1 or -1."""
        self._words[self._row + _TOTAL] += change
        self._words[self._row + _LISTENERS + listener] += change

    def add_address(self, address: str, change: int) -> None:
        """Count a connection of an address, +1 or -1."""
        key = self._key_of(address)
        if not self._homeless[address] and (place := self._place(key, new=change > 0)) is not None:
            self._words[place] = key
            self._words[place + 1] += change
            return
        self._homeless[address] += change
        if not self._homeless[address]:
            del self._homeless[address]  # else the table would grow with every address that ever came

    @property
    def total(self) -> int:
        """How many connections the node has."""
        return self._sum(_TOTAL)

    def of_listener(self, listener: int) -> int:
        """Say how many of them have come by a listener."""
        return self._sum(_LISTENERS + listener)

    def of_address(self, address: str) -> int:
        """Say how many of them come from an address."""
        key = self._key_of(address)
        first = _first(key)
        found = self._homeless.get(address, 0)
        for row in range(0, len(self._words), _ROW_WORDS):
            places = self._words[row + first : row + first + _SET_WORDS].tolist()
            found += sum(places[at + 1] for at in range(0, _SET_WORDS, 2) if places[at] == key)
        return found

    def _sum(self, column: int) -> int:
        return sum(self._words[column::_ROW_WORDS].tolist())

    def _place(self, key: int, *, new: bool) -> int | None:
        """Find where a key stands in this worker's row, or could."""
        first = self._row + _first(key)
        free = None
        for place in range(first, first + _SET_WORDS, 2):
            if not self._words[place + 1]:
                free = place if free is None else free
            elif self._words[place] == key:
                return place
        return free if new else None


def _key(secret: bytes, address: str) -> int:
    return int.from_bytes(hashlib.blake2b(address.encode(), key=secret, digest_size=_WORD_BYTES).digest())


def row_bytes() -> int:
    """Say how much memory a worker's row takes."""
    return _ROW_WORDS * _WORD_BYTES


def _first(key: int) -> int:
    return _ADDRESSES + key % SETS * _SET_WORDS
