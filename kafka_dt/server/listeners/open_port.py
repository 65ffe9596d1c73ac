"""A port that is listened on: bound, accepted from, held for a while, closed."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
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
    """A port that is listened on from the start, and accepted from as soon as the loop gets to it.

    Args:
        sock: bound.
        held: what keeps other nodes from the port, if anything does.
        new_protocol: makes what serves a socket.
        backlog: how many connections the kernel keeps waiting.
        gates: hold the port.
    """

    accepting: asyncio.Task[None]
    """Raises OSError if the port cannot be accepted from."""

    def __init__(
        self,
        sock: socket.socket,
        held: socket.socket | None,
        new_protocol: Callable[[], asyncio.Protocol],
        backlog: int,
        gates: Iterable[Gate],
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
        self.accepting = asyncio.get_running_loop().create_task(self._accept())
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
