"""A port that is listened on: bound, kept from other nodes, accepted from, held for a while, closed.

Workers of one user may share a port (SO_REUSEPORT), and a port that is bound but not listened on yet can be bound
again. So two nodes that start at the same time could both get it, and each would have half of the connections. The
supervisor therefore holds a name for each of its ports as well (`hold_port`): an abstract Unix socket, which ends with
its process. A port that workers open by themselves is held by each of them, in the name of the node.

Limits: only Linux has abstract sockets, elsewhere nothing is held. A process of another user can take the name, as it
can take the port.

Source: unix(7), "Abstract sockets"; proc(5), /proc/net/unix.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import Final

from kafka_dt.config import Endpoint
from kafka_dt.server.listeners.gates import Gate

_LOG = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
"""After this long a port that could not be accepted from again is tried anew."""


def bind(endpoint: Endpoint, *, shared: bool = True) -> socket.socket:
    """Bind a TCP socket without listening on it.

    Args:
        endpoint: host (empty for every address, IPv4 and IPv6) and port (0 for a free one).
        shared: whether other sockets that ask for it may share the port (SO_REUSEPORT).

    Raises:
        OSError: the address is not ours, or taken by a process that does not share it.
    """
    host = endpoint.host or "::"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not endpoint.host and not socket.has_dualstack_ipv6():
        host, family = "0.0.0.0", socket.AF_INET  # noqa: S104 - an empty host in `listeners` says so
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # for the sockets that it accepts
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if host == "::" else 1)
        made.bind((host, endpoint.port))
    except OSError:
        made.close()
        raise
    return made


class OpenPort:
    """A port that is listened on from the start, and accepted from as soon as the loop gets to it."""

    accepting: asyncio.Task[None]
    """Raises OSError if the port cannot be accepted from, unless that is tried again."""

    def __init__(
        self,
        sock: socket.socket,
        held: socket.socket | None,
        new_protocol: Callable[[], asyncio.Protocol],
        backlog: int,
        gates: Iterable[Gate],
        *,
        tries_again: bool = False,
    ) -> None:
        try:
            sock.listen(backlog)
        except OSError:
            sock.close()
            if held is not None:
                held.close()
            raise
        self._sock = sock
        self._held = held
        self._new_protocol = new_protocol
        self._backlog = backlog
        self._gates = tuple(gates)
        self._closed_gates: set[object] = set()
        self._server: asyncio.Server | None = None
        self._closed = False
        self.accepting = asyncio.get_running_loop().create_task(self._resume() if tries_again else self._accept())
        for gate in self._gates:
            gate.add(self)

    def close(self) -> None:
        """Listen no more."""
        self._closed = True
        for gate in self._gates:
            gate.remove(self)
        self.accepting.cancel()
        self._stop_accepting()
        self._sock.close()
        if self._held is not None:
            self._held.close()

    def hold(self, gate: object) -> None:
        """Accept nothing until `release`; clients wait in the kernel's queue."""
        self._closed_gates.add(gate)
        self._stop_accepting()

    def release(self, gate: object) -> None:
        """Accept again, unless another gate is closed."""
        self._closed_gates.discard(gate)
        self._accept_again()

    def _accept_again(self) -> None:
        if not (self._closed or self._closed_gates) and self._server is None and self.accepting.done():
            self.accepting = asyncio.get_running_loop().create_task(self._resume())

    async def _resume(self) -> None:
        try:
            await self._accept()
        except OSError as error:
            _LOG.error("A port cannot accept connections; the node tries again: %s", error)
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._accept_again)

    async def _accept(self) -> None:
        # The server closes its socket when it stops; that would close the queue of those who wait as well.
        server = await asyncio.get_running_loop().create_server(
            self._new_protocol, sock=self._sock.dup(), backlog=self._backlog
        )
        self._server = server
        if self._closed or self._closed_gates:
            self._stop_accepting()

    def _stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


_NAMES: Final = Path("/proc/net/unix")
_ANY_IPV4: Final = "0.0.0.0"  # noqa: S104 - compared with, not bound to
_ANY: Final = "::"


def hold_port(bound: socket.socket, *, node: str = "") -> socket.socket | None:
    """Take the port of a bound socket for this process alone, or for it and others of its node.

    Args:
        bound: a TCP socket with its address.
        node: what the processes that share the port call themselves, in letters and digits; empty for one alone.

    Returns:
        What holds the port until it is closed; None where this system has nothing to hold it by.

    Raises:
        OSError: another process holds the port, on this address or on one that takes it in.
    """
    if sys.platform != "linux":
        return None
    host, port = bound.getsockname()[:2]
    family = f"kafka-dt/{port}/"
    own = f"{host}/{node}/{os.getpid()}" if node else host
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        lock.bind(f"\0{family}{own}")
    except OSError as error:
        lock.close()
        if error.errno == errno.EADDRINUSE:
            raise _taken() from None
        return None
    # The own name comes first: of two that take overlapping addresses at the same time, at least one sees the other.
    if any(_excludes(other, host, node) for other in _names(family) if other != own):
        lock.close()
        raise _taken()
    return lock


def _taken() -> OSError:
    return OSError(errno.EADDRINUSE, "another node of this machine has the port")


def _names(family: str) -> Iterator[str]:
    try:
        text = _NAMES.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        _, _, name = line.rpartition(" @")
        if name.startswith(family):
            yield name.removeprefix(family)


def _excludes(name: str, host: str, node: str) -> bool:
    """Say whether another process's name for a port keeps a node from having that port on its own host."""
    other_host, _, rest = name.partition("/")
    other_node = rest.partition("/")[0]
    return not (node and node == other_node) and _overlap(host, other_host)


def _overlap(one: str, other: str) -> bool:
    """Say whether two addresses overlap: an empty host in `listeners` takes in both families."""
    hosts = {one, other}
    return (
        one == other
        or _ANY in hosts
        or (_ANY_IPV4 in hosts and all(isinstance(ip_address(host), IPv4Address) for host in hosts))
    )
