"""When a worker accepts no further connection for now: its ports stay open, and clients wait in the kernel's queue.

    gate = RateGate(Rate(100, monotonic))
    gate.add(port)                    # each port of a listener, or of the worker
    gate.accepted(transport)          # after each connection; the ports are held until the next one may come

A port accepts while none of its gates is closed. What a gate looks at is known when a connection has been accepted, and
before the next one is, because uvloop accepts one in a turn.

Source: KIP-612 (a broker delays further connections and refuses none); accept(2), EMFILE.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Final, Protocol

from kafka_dt.server.rate import Rate

_LOG = logging.getLogger(__name__)

RESERVED_FILES: Final = 64
"""How many file descriptors are left for other things than clients: ZooKeeper, audit files, keys read again."""
LOOK_SECONDS: Final = 0.1
"""How often a worker at its limit looks for a free file descriptor."""
LOG_AGAIN_SECONDS: Final = 60.0
"""How often at most the log says that the limit is reached."""


class Port(Protocol):
    """What a gate holds."""

    def hold(self, gate: Gate) -> None:
        """Accept nothing until `release`; clients wait."""

    def release(self, gate: Gate) -> None:
        """Accept again, unless another gate is closed."""


class Gate:
    """Ports that accept together, or not."""

    def __init__(self) -> None:
        self._ports: set[Port] = set()
        self._closed = False

    def add(self, port: Port) -> None:
        """Let a port be held with the others."""
        self._ports.add(port)
        if self._closed:
            port.hold(self)

    def remove(self, port: Port) -> None:
        """Forget a port."""
        self._ports.discard(port)

    def accepted(self, transport: asyncio.BaseTransport) -> None:
        """Hear of a connection that has just been accepted."""
        raise NotImplementedError

    def _close(self) -> None:
        self._closed = True
        for port in self._ports:
            port.hold(self)

    def _open(self) -> None:
        self._closed = False
        for port in self._ports:
            port.release(self)


class RateGate(Gate):
    """Holds ports while connections come faster than a rate.

    Args:
        rate: of connections.
    """

    def __init__(self, rate: Rate) -> None:
        super().__init__()
        self._rate = rate

    def accepted(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection."""
        del transport  # it is one, whatever it is
        wait_s = self._rate.count()
        if wait_s > 0 and not self._closed:
            self._close()
            asyncio.get_running_loop().call_later(wait_s, self._open)


class FileGate(Gate):
    """Holds ports while nearly all file descriptors of the process are in use.

    The system gives the lowest free number, so a connection with a high one tells that all below it are taken.

    Args:
        limit: gives the number of file descriptors that the process may have.
        lowest_free: gives the lowest free number; raises OSError if there is none.
    """

    def __init__(self, limit: Callable[[], int], lowest_free: Callable[[], int] | None = None) -> None:
        super().__init__()
        self._limit = limit
        self._lowest_free = lowest_free or _lowest_free
        self._logged_at: float | None = None
        self._told = False

    def accepted(self, transport: asyncio.BaseTransport) -> None:
        """See whether the connection has one of the last file descriptors."""
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.fileno() >= self._most() and not self._closed:
            self._close()
            self._tell()
            self._look_later()

    def _most(self) -> int:
        limit = self._limit()
        return limit - min(RESERVED_FILES, limit // 8)

    def _look_later(self) -> None:
        asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        try:
            free = self._lowest_free() < self._most()
        except OSError:
            free = False
        if not free:
            self._look_later()
            return
        if self._told:
            _LOG.info("File descriptors are free: connections are accepted again")
        self._open()

    def _tell(self) -> None:
        now = asyncio.get_running_loop().time()
        self._told = self._logged_at is None or now - self._logged_at >= LOG_AGAIN_SECONDS
        if self._told:
            self._logged_at = now
            _LOG.warning(
                "%d of %d file descriptors are in use (RLIMIT_NOFILE): no connection is accepted until one is free",
                self._most(),
                self._limit(),
            )


def _lowest_free() -> int:
    found = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.close(found)
    return found
