"""The open ports of one worker: accepts connections, closes idle ones, drains them at the end.

Workers share a port by SO_REUSEPORT; the kernel spreads the connections over them. A listener has the port of its
endpoint, which its node holds for all workers, and may have others beside it that come and go.

Source: kafka.network.Acceptor, org.apache.kafka.common.network.Selector (`connections.max.idle.ms`).
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

from kafka_dt.config import Endpoint, ProxyProtocol, Settings
from kafka_dt.server.connections.connection import ClientConnection
from kafka_dt.server.listeners.admission import Admission, AdmittedConnection
from kafka_dt.server.listeners.deadlines import LoginConnection, LoginDeadlines
from kafka_dt.server.listeners.gates import Gate
from kafka_dt.server.listeners.open_port import OpenPort, bind, hold_port
from kafka_dt.server.listeners.proxied import ProxiedConnection
from kafka_dt.server.repeated import Repeated

_LOG = logging.getLogger(__name__)

MAX_SWEEP_SECONDS: Final = 30.0
"""Idle connections are looked for at least this often."""
LOGIN_SWEEP_SECONDS: Final = 1.0
"""Overdue logins are looked for at least this often."""
CLOSINGS_PER_SECOND: Final = 200
"""How many connections of clients at work a worker closes in a second when it stops, since they log in elsewhere."""
SILENT_SECONDS: Final = 5.0
"""How long nothing has come from a client whose connections a worker that stops closes at once."""
AGE_JITTER: Final = 0.1
"""By which part of it `kafka.dt.connections.max.age.ms` is longer or shorter for a connection."""
LEAST_BACKLOG: Final = 1024
"""How many connections the kernel is asked to keep waiting at least.

A worker takes one between the requests that it serves, where a broker has a thread for it. A connection that finds no
room is tried again by its kernel after a second; with a broker's 50, one login of a hundred took that second when 128
clients came at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """How long the connections of a listener may live, in seconds."""

    login_s: float
    """`kafka.dt.login.timeout.ms`."""
    max_idle_s: float | None = None
    """`connections.max.idle.ms`; None for never."""
    max_age_s: float | None = None
    """`kafka.dt.connections.max.age.ms`; None for never."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Take the times that the settings say."""
        return cls(
            login_s=settings.login_timeout_ms / 1000,
            max_idle_s=_seconds(settings.connections_max_idle_ms),
            max_age_s=_seconds(settings.connections_max_age_ms),
        )


class OpenListener:
    """One listener of one worker.

    Args:
        endpoint: what to listen on; the port is known by now.
        backlog: `socket.listen.backlog.size`; no less than `LEAST_BACKLOG` is asked for.
        lifetimes: how long connections may live without a login and without a request.
        admission: how many connections may be open.
        gates: when further connections have to wait; some are shared with the other listeners of the worker.
        proxy: the load balancers in front of it that say whose connections they forward; None where clients connect
            directly.
        jitter: a number from 0 up to 1, so that connections of the same age are not closed at the same moment.
    """

    deadlines: LoginDeadlines
    """Closes the connections whose login takes too long; re-authentications begin here as well."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        backlog: int,
        lifetimes: Lifetimes,
        admission: Admission,
        gates: Sequence[Gate] = (),
        proxy: ProxyProtocol | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._endpoint = endpoint
        self._backlog = max(backlog, LEAST_BACKLOG)
        self._admission = admission
        self._gates = gates
        self._proxy = proxy
        self._max_age_s = lifetimes.max_age_s
        self._jitter = jitter
        self._retirements: dict[ClientConnection, asyncio.TimerHandle] = {}
        self._connections: set[ClientConnection] = set()
        self._ports: dict[int, OpenPort] = {}
        self.deadlines = LoginDeadlines(lifetimes.login_s, asyncio.get_running_loop().time)
        self._sweeps = [Repeated(min(LOGIN_SWEEP_SECONDS, lifetimes.login_s / 4), self.deadlines.sweep)]
        if lifetimes.max_idle_s is not None:
            every = min(MAX_SWEEP_SECONDS, max(lifetimes.max_idle_s / 2, 0.01))
            self._sweeps.append(Repeated(every, partial(self._close_idle, lifetimes.max_idle_s)))
        self._all_closed = asyncio.Event()
        self._draining = False

    def __len__(self) -> int:
        return len(self._connections)

    def opened(self, connection: ClientConnection) -> None:
        """Note a new connection."""
        self._connections.add(connection)
        if self._max_age_s is not None:
            age_s = self._max_age_s * (1 + AGE_JITTER * (2 * self._jitter() - 1))
            self._retirements[connection] = asyncio.get_running_loop().call_later(age_s, connection.retire)

    def closed(self, connection: ClientConnection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)
        if (retirement := self._retirements.pop(connection, None)) is not None:
            retirement.cancel()
        if not self._connections:
            self._all_closed.set()

    async def open(self, new_connection: Callable[[], LoginConnection]) -> None:
        """Accept connections from now on.

        Raises:
            OSError: the port cannot be had.
        """
        await self._listen(bind(self._endpoint), new_connection).accepting
        for sweep in self._sweeps:
            sweep.start()

    def open_port(self, port: int, new_connection: Callable[[], LoginConnection], *, node: str) -> None:
        """Accept connections on one more port of the same host; clients can connect as soon as this returns.

        A listener that drains opens no port any more.

        Raises:
            OSError: the port cannot be had.
        """
        if self._draining or port in self._ports:
            return
        sock = bind(Endpoint(self._endpoint.name, self._endpoint.host, port))
        try:
            held = hold_port(sock, node=node)
        except OSError:
            sock.close()
            raise
        self._listen(sock, new_connection, held, tries_again=True)

    def close_port(self, port: int) -> None:
        """Accept no more on a port that `open_port` has opened; connections that have come by it stay."""
        opened = self._ports.pop(port, None)
        if opened is not None:
            opened.close()

    async def drain(self, grace_seconds: float) -> None:
        """Accept no more, and close every connection when what is under way there has been answered.

        Clients that are idle come first. The others follow in the first half of the time, so that they do not all log
        in elsewhere at the same moment. All connections of a client close together, on all workers: it looks for
        another node only when it has none left at this one.

        Args:
            grace_seconds: after which connections that are still there are cut off.
        """
        self._draining = True
        for port in tuple(self._ports):
            self.close_port(port)
        for sweep in self._sweeps:
            sweep.stop()
        self._all_closed.clear()
        loop = asyncio.get_running_loop()
        heard_since = loop.time() - SILENT_SECONDS
        at_work = {each.client_name for each in self._connections if each.last_received > heard_since}
        later = []
        for connection in tuple(self._connections):
            if connection.client_name in at_work:
                later.append(connection)
            else:
                connection.finish()
        seconds = min(len(later) / CLOSINGS_PER_SECOND, grace_seconds / 2)
        for connection in later:
            loop.call_later(seconds * _place(connection.client_name), self._finish, connection)
        if self._connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_closed.wait(), grace_seconds)
        for connection in tuple(self._connections):
            connection.abort()

    def _finish(self, connection: ClientConnection) -> None:
        if connection in self._connections:
            connection.finish()

    def _listen(
        self,
        sock: socket.socket,
        new_connection: Callable[[], LoginConnection],
        held: socket.socket | None = None,
        *,
        tries_again: bool = False,
    ) -> OpenPort:
        protocol = self._new_protocol(new_connection)
        opened = OpenPort(sock, held, protocol, self._backlog, self._gates, tries_again=tries_again)
        self._ports[sock.getsockname()[1]] = opened
        return opened

    def _new_protocol(self, new_connection: Callable[[], LoginConnection]) -> Callable[[], asyncio.Protocol]:
        shared = self._admission, self._accepted, self.deadlines
        if self._proxy is None:
            return partial(AdmittedConnection, *shared, new_connection)
        # The gates have heard of the socket when its header comes.
        named = partial(AdmittedConnection, self._admission, lambda _: None, self.deadlines, new_connection)
        return partial(ProxiedConnection, *shared, named, listener=self._endpoint.name, proxy=self._proxy)

    def _accepted(self, transport: asyncio.BaseTransport) -> None:
        for gate in self._gates:
            gate.accepted(transport)

    def _close_idle(self, max_idle_s: float) -> None:
        oldest = asyncio.get_running_loop().time() - max_idle_s
        for connection in tuple(self._connections):
            if connection.last_received < oldest and not connection.busy:
                _close_idle(connection)


def _place(name: str) -> float:
    """Give the place of a client among all, from 0 up to 1, the same on every worker."""
    return zlib.crc32(name.encode()) / 2**32


def _seconds(ms: int) -> float | None:
    return None if ms < 0 else ms / 1000


def _close_idle(connection: ClientConnection) -> None:
    try:
        if connection.closing:
            # It was closed before and is still here: its client does not read what is left for it.
            connection.abort()
        else:
            connection.close()
    except Exception:  # noqa: BLE001 - it must not keep the others open
        _LOG.exception("An idle connection could not be closed and is cut off")
        connection.abort()
