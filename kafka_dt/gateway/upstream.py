"""One connection of one client to a broker behind the gateway: logged in, and then nothing but bytes.

    upstream = await Upstream(config, listener).open(address, credentials)
    upstream.write(data)         # whatever comes goes to listener.upstream_data

The client's login code makes the connection; then this is the asyncio.Protocol of its transport, and no bytes are
looked at. When the session there has an end (KIP-368), the owner logs in again by `reauthenticate` before it.

Source: asyncio.Protocol; KIP-368.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from kafka_dt.client.connection import Connection, translated, transport_reason
from kafka_dt.client.login import log_in, login_due_s
from kafka_dt.clock import now_ms
from kafka_dt_protocol import frame
from kafka_dt_protocol.sasl import derive_keys

if TYPE_CHECKING:
    from kafka_dt.client.config import Address, ClientConfig, Credentials
    from kafka_dt.client.login import Channel
    from kafka_dt.client.requests import Requests
    from kafka_dt_protocol import ApiKey
    from kafka_dt_protocol.sasl.scram_client import DeriveKeys
    from kafka_dt_protocol.wire.proxy_header import Endpoint

Exchange = Callable[[int, bytes], Awaitable[bytes]]
"""Takes a correlation id and a request with it, a whole frame; sends it and returns the content of its answer."""

HUNG_UP: Final = "it closed the connection"


class UpstreamListener(Protocol):
    """Takes the events of an upstream connection; none follows `upstream_lost`, close or abort."""

    @property
    def client_addresses(self) -> tuple[Endpoint | None, Endpoint | None]:
        """The addresses of the client and of what it has connected to, where both are known."""

    def upstream_data(self, data: bytes) -> None:
        """Take bytes that have come."""

    def upstream_lost(self, reason: str) -> None:
        """Take note that the broker has closed the connection, or that it broke."""

    def upstream_full(self) -> None:
        """Write nothing more for now: what was written waits."""

    def upstream_writable(self) -> None:
        """Go on writing."""


class Upstream(asyncio.Protocol):
    """A connection to a broker, once it is open: logged in.

    Args:
        config: how the broker is spoken to.
        listener: hears of what happens, from the moment on at which `open` returns.
        now_ms: milliseconds since 1970.
        derive: makes SCRAM's keys of a password, in a thread; also of the logins to come.
        jitter: a number from 0 up to 1.
        ended: called once, when the connection that was open has ended.
    """

    server: str
    """host:port of the broker."""
    login_due_ms: int | None = None
    """When to log in again (milliseconds since 1970), a good while before the broker ends the session and not all
    connections at once; None if it does not end it."""

    def __init__(
        self,
        config: ClientConfig,
        listener: UpstreamListener,
        *,
        now_ms: Callable[[], int] = now_ms,
        derive: DeriveKeys = derive_keys,
        jitter: Callable[[], float] = random.random,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._ended = ended
        self._config = config
        self._listener: UpstreamListener | None = listener
        self._now_ms = now_ms
        self._derive = derive
        self._jitter = jitter
        self._requests: Requests
        self._transport: asyncio.Transport

    async def open(self, address: Address, credentials: Credentials | None) -> Self:
        """Connect to a broker and log in, by the credentials if it has logins by SASL.

        Raises:
            ConnectionLost: it, or one of its kinds.
            LoginFailed: the broker refused the login.
            UnsupportedByServer: the broker has no login by SASL that we know.
        """
        self.server = str(address)
        connection = await Connection.open(address, self._config)
        try:
            if credentials is not None and self._config.security_protocol.uses_sasl:
                await self._log_in(connection, credentials)
            self._transport, self._requests = connection.hand_over(self)
        except BaseException:
            connection.abort()
            raise
        return self

    def write(self, *pieces: bytes) -> None:
        """Send bytes, all at once; they are kept while the broker takes none (`upstream_full`)."""
        transport = self._transport
        if transport.is_closing():
            return
        if len(pieces) == 1:
            transport.write(pieces[0])
        else:
            transport.writelines(pieces)

    def pause_reading(self) -> None:
        """Take nothing from the broker until `resume_reading`."""
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on taking what the broker sends."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    async def reauthenticate(self, credentials: Credentials, exchange: Exchange) -> None:
        """Log in again, with whatever the same principal has now, by the mechanism of before.

        Nothing else may be outstanding. Sets `login_due_ms` anew. Raises as `open`, and what `exchange` raises; after
        each the connection is of no more use.
        """
        try:
            await self._log_in(self.channel(exchange), credentials)
        except BaseException:
            self.abort()
            raise

    def channel(self, exchange: Exchange) -> Channel:
        """Give what makes requests of the gateway's own on this connection, of which `exchange` sends one at a time."""
        return _Channel(self._requests, exchange, self._config.request_timeout_ms)

    def close(self) -> None:
        """End the connection when all was sent that was written."""
        self._listener = None
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._listener = None
        self._transport.abort()

    # asyncio.Protocol; the transport was made before, so there is no connection_made

    def data_received(self, data: bytes) -> None:
        """Pass bytes on."""
        if self._listener is not None:
            self._listener.upstream_data(data)

    def pause_writing(self) -> None:
        """Pass it on."""
        if self._listener is not None:
            self._listener.upstream_full()

    def resume_writing(self) -> None:
        """Pass it on."""
        if self._listener is not None:
            self._listener.upstream_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the listener, for the last time."""
        self._ended()
        listener, self._listener = self._listener, None
        if listener is not None:
            reason = transport_reason(exc) if isinstance(exc, OSError) else str(exc or HUNG_UP)
            listener.upstream_lost(f"{self.server}: {reason}")

    async def _log_in(self, channel: Channel, credentials: Credentials) -> None:
        asked_ms = self._now_ms()
        lifetime_ms = await log_in(channel, credentials, os.urandom, self._derive)
        self.login_due_ms = None
        if lifetime_ms:
            self.login_due_ms = asked_ms + round(1000 * login_due_s(lifetime_ms, self._jitter()))


class _Channel:
    """Carries the requests of a login over a connection that another object owns."""

    def __init__(self, requests: Requests, exchange: Exchange, timeout_ms: int) -> None:
        self.server: Final = requests.server
        self._requests = requests
        self._exchange = exchange
        self._timeout_ms = timeout_ms

    def version(self, api: ApiKey) -> int:
        return self._requests.version(api)

    async def request(self, api: ApiKey, **values: Any) -> Any:
        sent = self._requests.encode(api, **values)
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                content = await self._exchange(sent.correlation_id, frame(sent.content))
                return self._requests.decode(sent, content)
        except Exception as error:
            if (ours := translated(error, self.server, self._timeout_ms)) is None:
                raise
            raise ours from error
