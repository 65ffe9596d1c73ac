"""Connections that come through a load balancer, which says whose they are: the PROXY protocol.

A `ProxiedConnection` reads the header, and then gives its socket to an `AdmittedConnection`, whose transport has the
addresses of the header. So limits, logs, audit events and ACLs see the client, and the header costs nothing later.
Until the header has come, the connection counts for the node and its listener, and for no address.

A balancer that opens a connection and closes it, or that says that it speaks for itself (LOCAL), checks our health:
nothing is logged.

Limits: the time for the header is that of a login, which has its own time afterwards.

Source: The PROXY protocol, versions 1 & 2, 2 (who may be believed; timeouts).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Any, Final, cast

from kafka_dt.config import ProxyProtocol
from kafka_dt.log import event
from kafka_dt.server.addresses import address_text, client_host
from kafka_dt.server.connections.over_transport import OverTransport
from kafka_dt.server.listeners.admission import Admission, AdmittedConnection, refuse
from kafka_dt.server.listeners.deadlines import LoginDeadlines
from kafka_dt_protocol import RemoteProtocolError
from kafka_dt_protocol.wire.proxy_header import (
    V1_START,
    V2_START,
    ProxyHeader,
    may_be_proxy_header,
    parse_proxy_header,
)

_LOG = logging.getLogger(__name__)

_MISSING: Final = "no PROXY header (kafka.dt.proxy.protocol=required)"
_UNTRUSTED: Final = "a PROXY header from an address outside of kafka.dt.proxy.protocol.networks"


class ProxiedConnection(asyncio.Protocol):
    """A socket until its header has come.

    Args:
        admission: how many connections may be open.
        accepted: told of each socket.
        deadlines: ends those that take too long.
        new_admitted: makes what follows.
        listener: the name of the listener.
        proxy: which headers the listener needs and believes.
    """

    def __init__(
        self,
        admission: Admission,
        accepted: Callable[[asyncio.BaseTransport], None],
        deadlines: LoginDeadlines,
        new_admitted: Callable[[], AdmittedConnection],
        *,
        listener: str,
        proxy: ProxyProtocol,
    ) -> None:
        self._listener = listener
        self._proxy = proxy
        self._admission = admission
        self._accepted = accepted
        self._deadlines = deadlines
        self._new_admitted = new_admitted
        self._transport: asyncio.Transport
        self._received = b""
        self._waits = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the header, or close the socket."""
        self._accepted(transport)
        refusal = self._admission.begin_wait()
        if refusal is not None:
            refuse(transport, refusal)
            return
        self._waits = True
        # uvloop's transports are asyncio's in all but their class.
        self._transport = cast("asyncio.Transport", transport)
        self._deadlines.begin(self._overdue)

    def data_received(self, data: bytes) -> None:
        """Take bytes until they are a header, or cannot become one."""
        if not self._waits:
            return
        self._received += data
        try:
            self._look()
        except RemoteProtocolError as error:
            self._close(str(error))

    def eof_received(self) -> bool:
        """Close; half a header is an error."""
        if self._received:
            self._close("its PROXY header is not complete")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for another."""
        del exc  # that a client is gone is nothing to report
        self._end_wait()

    def _look(self) -> None:
        received = self._received
        if not may_be_proxy_header(received):
            if self._proxy.required:
                self._close(_MISSING)
            else:
                self._go_on(self._transport, received)
        elif _believes(self._proxy, self._peer):
            header = parse_proxy_header(received)
            if header is not None:
                self._go_on(_transport(self._transport, header), received[header.size :])
        elif received.startswith((V1_START, V2_START)):
            self._close(_UNTRUSTED)

    def _go_on(self, transport: asyncio.Transport, received: bytes) -> None:
        self._end_wait()
        admitted = self._new_admitted()
        self._transport.set_protocol(admitted)
        admitted.connection_made(transport)
        if received:
            admitted.data_received(received)

    def _overdue(self) -> None:
        self._close(f"no PROXY header within {self._deadlines.timeout_s:g} s (kafka.dt.login.timeout.ms)")

    def _close(self, reason: str) -> None:
        if self._waits:
            peer = self._peer
            about = event("connection-close", host=client_host(peer), listener=self._listener, reason=reason)
            text = "Closing the connection of %s on listener %s: %s"
            _LOG.info(text, address_text(peer), self._listener, reason, extra=about)
            self._end_wait()
            self._transport.abort()

    def _end_wait(self) -> None:
        if self._waits:
            self._waits = False
            self._admission.end_wait()
            self._deadlines.forget(self._overdue)

    @property
    def _peer(self) -> Any:
        return self._transport.get_extra_info("peername")


def _transport(transport: asyncio.Transport, header: ProxyHeader) -> asyncio.Transport:
    """Give the transport the addresses of a header, if it has any."""
    if header.source is None:
        return transport
    return OverTransport(transport, {"peername": header.source, "sockname": header.destination})


def _believes(proxy: ProxyProtocol, peer: Any) -> bool:
    """Say whether a header of that socket's other end is believed."""
    try:
        address = ip_address(peer[0])
    except (ValueError, TypeError, IndexError):
        return False
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return any(address in network for network in proxy.networks)
