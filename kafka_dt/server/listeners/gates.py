"""When a worker accepts no further connection for now: its ports stay open, and clients wait in the kernel's queue.

A port accepts while none of its gates is closed. What a gate looks at is known when a connection has been accepted, and
before the next one is, because uvloop accepts one in a turn.

Source: KIP-612 (a broker delays further connections and refuses none); accept(2), EMFILE.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Final, Protocol

from kafka_dt.server.listeners.rates import Rate

_LOG = logging.getLogger(__name__)

RESERVED_FILES: Final = 64
"""How many file descriptors are left for other things than clients: ZooKeeper, audit files, keys read again."""
WITHOUT_LOOK: Final = 16
"""How many connections are accepted without a further look, after a look that has found plenty."""
PLENTY: Final = 64
"""So many free file descriptors, besides those for each port, are plenty: a gateway takes two for a connection."""
LOOK_SECONDS: Final = 0.1
"""How often a worker at its limit looks for free file descriptors."""
STAYS_OPEN_SECONDS: Final = 1.0
"""After this long without reaching the limit again, the log says that connections are accepted again."""
LOG_AGAIN_SECONDS: Final = 60.0
"""How often at most the log says that the limit is reached."""


class Port(Protocol):
    """What a gate holds."""

    def hold(self, gate: object) -> None:
        """Accept nothing until `release`; clients wait."""

    def release(self, gate: object) -> None:
        """Accept again, unless another gate is closed."""


class Gate(ABC):
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

    @abstractmethod
    def accepted(self, transport: asyncio.BaseTransport) -> None:
        """Hear of a connection that has just been accepted."""

    def _close(self) -> None:
        self._closed = True
        for port in self._ports:
            port.hold(self)

    def _open(self) -> None:
        self._closed = False
        for port in self._ports:
            port.release(self)


class RateGate(Gate):
    """Holds ports while connections come faster than a rate."""

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

    A port frees a descriptor when it is held and takes one when it accepts again. In one turn of the loop each port may
    do so and accept a connection as well. So the gate closes while two descriptors for each port are still free, and
    opens when there are three. Else every opening would give a client one of those that are reserved.

    A look takes four system calls, as many as a SCRAM login takes for its answers. So the gate looks at every
    connection only while there are few, or when the limit is another one than at its last look.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        super().__init__()
        self._limit = limit
        self._without_look = 0
        self._looked_at_limit = 0
        self._told_at: float | None = None
        self._told = False
        self._telling_open: asyncio.TimerHandle | None = None

    def accepted(self, transport: asyncio.BaseTransport) -> None:
        """See whether there are file descriptors for further connections."""
        del transport  # its number says nothing about how many higher ones are free
        if self._closed:
            return
        limit = self._limit()
        if self._without_look > 0 and limit == self._looked_at_limit:
            self._without_look -= 1
            return
        enough, below = 2 * len(self._ports), _first_reserved(limit)
        plenty = enough + PLENTY
        free = _count_highest_free(plenty, below)
        if free >= plenty:
            self._without_look, self._looked_at_limit = WITHOUT_LOOK, limit
            return
        self._without_look = 0
        if free >= enough or _lowest_are_free(enough, below):
            return
        self._close()
        if self._telling_open is not None:
            self._telling_open.cancel()
        self._tell_closed()
        self._look_later()

    def _look_later(self) -> None:
        asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        if _lowest_are_free(3 * len(self._ports), _first_reserved(self._limit())):
            self._open()
            self._telling_open = asyncio.get_running_loop().call_later(STAYS_OPEN_SECONDS, self._tell_open)
        else:
            self._tell_closed()
            self._look_later()

    def _tell_closed(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._told or (self._told_at is not None and now - self._told_at < LOG_AGAIN_SECONDS):
            return
        self._told, self._told_at = True, now
        _LOG.warning(
            "Nearly all %d file descriptors are in use (RLIMIT_NOFILE): no connection is accepted until some are free",
            self._limit(),
        )

    def _tell_open(self) -> None:
        if self._told:
            self._told = False
            _LOG.info("File descriptors are free: connections are accepted again")


def _first_reserved(limit: int) -> int:
    """Tell the first file descriptor that is not for clients."""
    return limit - min(RESERVED_FILES, limit // 8)


def _count_highest_free(count: int, below: int) -> int:
    """Count the free ones of the last file descriptors below a number; 0 where the system gives none below it."""
    if not _lowest_are_free(1, below):
        return 0
    return sum(event == select.POLLNVAL for _, event in _poll(max(0, below - count), below).poll(0))


@lru_cache(maxsize=1)
def _poll(first: int, below: int) -> select.poll:
    """Make what asks for the state of all file descriptors from one number to another."""
    poll = select.poll()
    for each in range(first, below):
        poll.register(each, 0)
    return poll


def _lowest_are_free(count: int, below: int) -> bool:
    """Whether the system gives so many below a number, by taking them."""
    found: list[int] = []
    try:
        while len(found) < count:
            found.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            if found[-1] >= below:
                return False
    except OSError:  # none is free, at whatever number
        return False
    finally:
        for each in found:
            os.close(each)
    return True
