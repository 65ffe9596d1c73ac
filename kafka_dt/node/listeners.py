"""The open ports of a worker, and the gateway behind them where the node is one.

ports = WorkerPorts(settings, listeners, place, shared, held=cache.held, recorder=recorder, now_ms=now_ms)
await ports.start_gateway()
await ports.open(handler, sessions, new_login)
...
await ports.drain()
"""

from __future__ import annotations

import asyncio
import resource
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Final

from kafka_dt.audit.recorder import Recorder
from kafka_dt.clock import steady_ms
from kafka_dt.config import Listener, Settings, gateway_settings
from kafka_dt.config.options.option import INT_MAX
from kafka_dt.gateway import Gateway, PortListener
from kafka_dt.identity.login.login import Login
from kafka_dt.metrics import Counts
from kafka_dt.node.shared import Shared
from kafka_dt.server.connections.connection import ClientConnection
from kafka_dt.server.connections.request_memory import RequestMemory, request_buffer_bytes
from kafka_dt.server.connections.services import ConnectionServices
from kafka_dt.server.connections.sessions import Sessions
from kafka_dt.server.handlers import Handler
from kafka_dt.server.listeners.admission import Admission, ConnectionLimits
from kafka_dt.server.listeners.deadlines import LoginConnection
from kafka_dt.server.listeners.encryption import ListenerEncryption
from kafka_dt.server.listeners.gates import FileGate, Gate, RateGate
from kafka_dt.server.listeners.listener import Lifetimes, OpenListener
from kafka_dt.server.listeners.rates import FailedLogins, Rate
from kafka_dt.server.repeated import Repeated
from kafka_dt.stores import WorkerPlace
from kafka_dt.tokens import ANONYMOUS, CachedToken, Principal
from kafka_dt.tracing import Spans
from kafka_dt_protocol import Limits

NO_LIMIT: Final = -1
"""The value of `sasl.server.max.receive.size` without a limit."""
UPSTREAM: Final = "upstream"
"""Stands for the certificate that a gateway shows to the cluster; the names of listeners are in capital letters."""


class WorkerPorts:
    """The ports of a worker.

    Args:
        settings: of the node.
        listeners: of the node, with the ports that they are bound to.
        place: which worker it is; the workers share what the node allows.
        shared: with the other workers of the node.
        held: gives a token as the worker knows it, None if it does not.
        recorder: makes audit events; None where nothing is written down.
        counts: where connections, logins and requests are counted.
        spans: of requests; None where they are not traced.
        now_ms: the wall clock, milliseconds since 1970.

    Raises:
        ConfigError: a setting cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        listeners: Sequence[Listener],
        place: WorkerPlace,
        shared: Shared,
        *,
        held: Callable[[str], CachedToken | None],
        recorder: Recorder | None,
        counts: Counts,
        spans: Spans | None = None,
        now_ms: Callable[[], int],
    ) -> None:
        self._counts = counts
        self._settings = settings
        self._listeners = listeners
        self._place = place
        self._shared = shared
        self._recorder = recorder
        self._now_ms = now_ms
        self._encryption = {
            listener.name: encryption(listener, recorder, counts, common)
            for listener, common in zip_longest(listeners, shared.tls[: len(listeners)])
        }
        self.gateway = gateway(settings, listeners, held, counts, audits=recorder is not None, spans=spans)
        self._limits = ConnectionLimits.of(settings, listeners)
        self._gates: list[Gate] = [FileGate(_file_limit), *self._rate_gates(settings.max_connection_creation_rate)]
        self._failed_logins = FailedLogins(settings.connection_failed_authentication_delay_ms, time.monotonic)
        self._memory = RequestMemory(
            request_buffer_bytes(settings) // place.workers,
            settings.request_receive_timeout_ms / 1000,
            time.monotonic,
            shared.turn,
        )
        self._memory_sweep = Repeated(self._memory.sweep_seconds, self._memory.sweep)
        self._opened: dict[str, OpenListener] = {}
        self._broker_ports: list[PortListener] = []

    async def start_gateway(self) -> None:
        """Get to know the cluster behind the gateway, if there is one.

        Raises:
            TokenClientError: it is there and cannot be used.
        """
        if self.gateway is not None:
            await self.gateway.start()

    async def open(self, handler: Handler, sessions: Sessions, new_login: Callable[[Listener], Login]) -> None:
        """Open all ports.

        Raises:
            OSError: a port cannot be had.
        """
        settings = self._settings
        self._memory_sweep.start()
        for listener in self._listeners:
            opened = OpenListener(
                listener.bind,
                backlog=settings.socket_listen_backlog_size,
                lifetimes=Lifetimes.from_settings(settings),
                admission=Admission(
                    self._limits,
                    self._shared.connections,
                    self._listeners.index(listener),
                    self._counts.connections_refused.add,
                ),
                gates=[*self._gates, *self._rate_gates(listener.max_connection_creation_rate)],
                proxy=listener.proxy,
            )
            services = ConnectionServices(
                listener=listener,
                limits=frame_limits(listener, settings),
                handler=handler,
                sessions=sessions,
                new_login=new_login,
                certified=_certified(listener, self._encryption[listener.name]),
                now_ms=self._now_ms,
                steady_ms=steady_ms,
                failed_logins=self._failed_logins,
                opened=opened.opened,
                closed=opened.closed,
                deadlines=opened.deadlines,
                memory=self._memory,
                recorder=self._recorder,
                counts=self._counts,
            )
            await self._open(opened, services)
        if self.gateway is not None:
            self.gateway.open_ports(self._broker_ports, node=self._place.node)

    def prepare(self, settings: Settings, listeners: Sequence[Listener]) -> Callable[[], None]:
        """Check new settings of the gateway, if there is one, and return what takes them over.

        Raises:
            ConfigError: a setting cannot be used.
        """
        found = gateway_settings(settings, listeners)
        if self.gateway is None or found is None:
            return lambda: None
        return self.gateway.prepare(found)

    async def refresh_certificates(self) -> None:
        """Take new certificates if their files have changed."""
        for each in filter(None, self._encryption.values()):
            await each.refresh()
        if self.gateway is not None:
            await self.gateway.refresh_certificates()

    def connections(self) -> Mapping[str, int]:
        """Return how many connections each listener has."""
        return {name: len(opened) for name, opened in self._opened.items()}

    def certificates(self) -> Mapping[str, float]:
        """Return when the certificate of each encrypted listener ends, and that of a gateway, in seconds since 1970."""
        ends = {name: each.certificate_end_s for name, each in self._encryption.items() if each is not None}
        if self.gateway is not None:
            ends[UPSTREAM] = self.gateway.certificate_end_s
        return {name: end_s for name, end_s in ends.items() if end_s is not None}

    async def drain(self) -> None:
        """Close idle connections, answer the requests under way and close theirs; then leave the upstream cluster."""
        if self.gateway is not None:
            self.gateway.close_ports()
        grace_s = self._settings.drain_timeout_ms / 1000
        await asyncio.gather(*(listener.drain(grace_s) for listener in self._opened.values()))
        self._memory_sweep.stop()
        if self.gateway is not None:
            await self.gateway.close()

    async def _open(self, opened: OpenListener, services: ConnectionServices) -> None:
        listener = services.listener
        encrypted = self._encryption[listener.name]

        def new_connection(broker_id: int | None = None) -> LoginConnection:
            behind = self.gateway
            connection = behind.new_connection(services, broker_id) if behind else ClientConnection(services)
            return encrypted.protocol(connection) if encrypted else connection

        await opened.open(new_connection)
        self._opened[listener.name] = opened
        if listener.broker_port_base is not None:
            self._broker_ports.append(PortListener(listener, opened, new_connection))

    def _rate_gates(self, per_second: int) -> list[Gate]:
        """Make the gate that holds a worker to its share of a rate, if there is one."""
        if per_second >= INT_MAX:
            return []
        return [RateGate(Rate(per_second / self._place.workers, time.monotonic))]


def frame_limits(listener: Listener, settings: Settings) -> Limits:
    """Return how long the requests of a listener's clients may be.

    Source: org.apache.kafka.common.network.NetworkReceive.
    """
    before_login_bytes = listener.sasl_server_max_receive_size
    unlimited = before_login_bytes == NO_LIMIT
    return Limits(INT_MAX if unlimited else before_login_bytes, settings.socket_request_max_bytes)


def encryption(
    listener: Listener,
    recorder: Recorder | None = None,
    counts: Counts | None = None,
    common: ssl.SSLContext | None = None,
) -> ListenerEncryption | None:
    """Make the encryption of a listener; None where it has none. Arguments are those of `ListenerEncryption`.

    Raises:
        ConfigError: a setting cannot be used.
    """
    return ListenerEncryption(listener, recorder, counts, common) if listener.tls else None


def gateway(
    settings: Settings,
    listeners: Sequence[Listener],
    held: Callable[[str], CachedToken | None],
    counts: Counts | None = None,
    *,
    audits: bool = False,
    spans: Spans | None = None,
) -> Gateway | None:
    """Make the gateway of a worker; None where the node is none. Arguments are those of `Gateway`.

    Raises:
        ConfigError: a setting cannot be used.
    """
    found = gateway_settings(settings, listeners)
    if found is None:
        return None
    return Gateway(found, listeners, held, counts or Counts.alone(), audits=audits, spans=spans)


def _certified(listener: Listener, encrypted: ListenerEncryption | None) -> Callable[[bytes | None], Principal]:
    """Return the function from a client's certificate to its principal; ANONYMOUS where it logs in by SASL."""
    if encrypted is None or listener.security_protocol.uses_sasl:
        return lambda _: ANONYMOUS
    return encrypted.principals.principal


def _file_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
