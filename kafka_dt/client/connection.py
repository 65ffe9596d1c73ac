"""One connection of a client: a request out, its answer in, one after the other.

`Connection.open` connects (TLS included) and agrees on API versions; `request` sends one request in the highest
version that both sides know and returns the answer's entity. A failure or a cancellation ends the connection, so that
a late answer can never be taken for the next one's. Logged in, a connection can be handed over to an asyncio.Protocol
of the caller, such as one that passes bytes on without looking at them.

`Link` is the stream below: whole frames in, bytes out.

Source: org.apache.kafka.clients.NetworkClient; asyncio.Protocol.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, Final, Self, cast

from kafka_dt.client.config import Address, ClientConfig
from kafka_dt.client.errors import ConnectionLost, RequestTimedOut, UnexpectedAnswer
from kafka_dt.client.requests import Requests, Sent
from kafka_dt_protocol.errors import InvalidFrameLength, RemoteProtocolError
from kafka_dt_protocol.wire.frames import FrameSplitter, frame

MAX_ANSWER_BYTES: Final = 100 * 1024 * 1024
"""Longer answers are refused; 100,000 described tokens fit."""
SHORT_BYTES: Final = 65_536
"""An answer as short as this is decoded at once, a longer one in a thread."""

_UNASKED_BYTES: Final = 64 * 1024
"""How many bytes may arrive that no task waits for; then reading stops."""
_CLOSE_TIMEOUT_S: Final = 2
_CORRELATION_ID_BYTES: Final = 4
_TLS_RECORDS: Final = range(0x14030000, 0x17040000)


class Connection:
    """A connection to one server; made by `open`."""

    def __init__(self, requests: Requests, link: Link, *, request_timeout_ms: int) -> None:
        self.server: Final = requests.server
        self._requests = requests
        self._link = link
        self._request_timeout_ms = request_timeout_ms
        self._ended = False

    @classmethod
    async def open(cls, address: Address, config: ClientConfig) -> Self:
        """Connect to a server as a configuration says, and ask for its API versions.

        Raises ConnectionLost or one of its kinds.
        """
        link = await _connect(address, config)
        requests = Requests(str(address), config.client_id)
        connection = cls(requests, link, request_timeout_ms=config.request_timeout_ms)
        try:
            await connection._requests.ask_versions(connection._exchange)
        except BaseException as error:
            connection.abort()
            if type(error) is not ConnectionLost:
                raise
            raise ConnectionLost(error.server, f"{error.reason}; does security.protocol fit that listener?") from error
        return connection

    @property
    def usable(self) -> bool:
        """Whether a request may be tried: nothing went wrong so far and the server has not closed the connection."""
        return not self._ended and self._link.usable

    @property
    def api_versions(self) -> Any:
        """What the server answered when it was asked for its API versions, features included."""
        return self._requests.api_versions

    def version(self, api: IntEnum) -> int:
        """Return the version of an API in which `request` will speak.

        Raises UnsupportedByServer when there is none.
        """
        return self._requests.version(api)

    async def ask_versions(self) -> Any:
        """Ask for the API versions and features again, and return the answer.

        Raises ConnectionLost or one of its kinds.
        """
        await self._requests.ask_versions(self._exchange)
        return self.api_versions

    async def request(self, api: IntEnum, **values: Any) -> Any:
        """Send a request and return the answer's entity.

        values: the fields of the request by name, of any version; those that the version at hand has not are left
        out, so check `version` first where that matters.
        Raises ConnectionLost or one of its kinds, or UnsupportedByServer.
        """
        return await self._exchange(self._requests.encode(api, **values))

    async def request_undecoded(self, api: IntEnum, **values: Any) -> bytes:
        """Do as `request`, and return the bytes after the correlation id: the same for the same answer."""
        content = await self._content(self._requests.encode(api, **values))
        return content[_CORRELATION_ID_BYTES:]

    def abort(self) -> None:
        """End the connection at once."""
        self._ended = True
        self._link.abort()

    async def close(self) -> None:
        """End the connection; returns when that is done, and quietly."""
        self._ended = True
        # A server that is gone, or slow to say goodbye over TLS, is none of our business any more.
        await self._link.close(_CLOSE_TIMEOUT_S)

    def hand_over(self, protocol: asyncio.Protocol) -> tuple[asyncio.Transport, Requests]:
        """Give the connection away as it is, to a protocol that deals in bytes; do not use it here any more.

        Returns the transport, whose protocol is now the given one, and what makes and reads requests of this server.
        Raises ConnectionLost when it has ended.
        """
        self._ended = True
        try:
            return self._link.hand_over(protocol), self._requests
        except EOFError as error:
            raise ConnectionLost(self.server, "the server closed the connection after the login") from error

    async def _exchange(self, sent: Sent) -> Any:
        with self._ended_by_errors():
            content = await self._content(sent)
            if len(content) <= SHORT_BYTES:
                return self._requests.decode(sent, content)
            # Other tasks go on meanwhile: the tokens of one owner may be a hundred thousand, which take seconds.
            return await asyncio.to_thread(self._requests.decode, sent, content)

    async def _content(self, sent: Sent) -> bytes:
        with self._ended_by_errors():
            async with asyncio.timeout(self._request_timeout_ms / 1000):
                self._link.write(frame(sent.content))
                await self._link.drain()
                return await self._link.next_frame()

    @contextmanager
    def _ended_by_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.abort()
            if (ours := translated(error, self.server, self._request_timeout_ms)) is None:
                raise
            raise ours from error


async def _connect(address: Address, config: ClientConfig) -> Link:
    timeout_ms = config.setup_timeout_ms
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            link = await _linked(address, config.tls, config.preamble)
            # As Kafka's clients do; it is the only word from a server whose machine has gone while nothing is sent.
            link.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return link
    except TimeoutError as error:
        reason = f"no connection within {timeout_ms} ms (socket.connection.setup.timeout.ms)"
        raise ConnectionLost(str(address), reason) from error
    except OSError as error:
        raise ConnectionLost(str(address), transport_reason(error, connecting=True)) from error
    except UnicodeError as error:
        raise ConnectionLost(str(address), "this cannot be the name of a host") from error


async def _linked(address: Address, tls: ssl.SSLContext | None, preamble: bytes) -> Link:
    loop = asyncio.get_running_loop()
    at_once = None if preamble else tls
    _, link = await loop.create_connection(lambda: Link(MAX_ANSWER_BYTES), address.host, address.port, ssl=at_once)
    if not preamble:
        return link
    try:
        link.write(preamble)
        if tls is not None:
            await _encrypt(link, tls, address.host)
    except BaseException:
        link.abort()
        raise
    return link


async def _encrypt(link: Link, tls: ssl.SSLContext, host: str) -> None:
    """Begin TLS on a connection on which something was sent."""
    loop = asyncio.get_running_loop()
    encrypted = await loop.start_tls(link.transport, link, tls, server_hostname=host)
    if encrypted is None:
        raise ConnectionResetError
    link.connection_made(encrypted)


def translated(error: BaseException, server: str, timeout_ms: int) -> ConnectionLost | None:
    """Return what went wrong with a request in the client's terms; None for what is not the connection's failure."""
    match error:
        case TimeoutError():
            return RequestTimedOut(server, timeout_ms)
        case EOFError():
            return ConnectionLost(server, "the server closed the connection instead of answering")
        case OSError():
            return ConnectionLost(server, transport_reason(error))
        case InvalidFrameLength(length=length) if length in _TLS_RECORDS:
            return UnexpectedAnswer(server, "the server speaks TLS; set security.protocol to SSL or SASL_SSL")
        case RemoteProtocolError():
            return UnexpectedAnswer(server, f"this is not Kafka's protocol: {error}")
        case _:
            return None


def transport_reason(error: OSError, *, connecting: bool = False) -> str:
    """Say what broke a connection; `connecting`: while it was made."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message} (see ssl.truststore.location)"
        case ssl.SSLError():
            return f"TLS failed: {error.reason or error}; does security.protocol fit that listener?"
        case ConnectionResetError() if connecting:
            return "it hung up during the TLS handshake; does security.protocol fit that listener?"
        case socket.gaierror():
            return f"the name does not resolve ({error.strerror})"
        case _ if error.errno:
            # asyncio words a refused connection with the address only.
            return os.strerror(error.errno)
        case _:
            return str(error) or type(error).__name__


class Link(asyncio.Protocol):
    """A connection's bytes, for one task at a time.

    max_bytes: the longest frame that is taken
    """

    def __init__(self, max_bytes: int) -> None:
        self._splitter = FrameSplitter(max_bytes)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._paused = False
        self._full = False
        self._eof = False
        self._error: Exception | None = None
        self._lost = asyncio.Event()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        # uvloop's transports are asyncio's in all but their class.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Keep bytes for `next_frame`."""
        self._splitter.receive_data(data)
        if self._reader is None and self._splitter.buffered > _UNASKED_BYTES:
            self._paused = True
            self.transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> None:
        """Let the transport close: a server that has closed its side answers no more."""
        self._eof = True
        _wake(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake every task that waits: the connection has ended."""
        self._eof = True
        self._error = exc
        self._lost.set()
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        """Let `drain` wait."""
        self._full = True

    def resume_writing(self) -> None:
        """Let `drain` go on."""
        self._full = False
        _wake(self._writer)

    # For the client

    @property
    def transport(self) -> asyncio.Transport:
        """What the bytes go through."""
        assert self._transport is not None  # noqa: S101 - a link is made by a connection
        return self._transport

    @property
    def usable(self) -> bool:
        """Whether neither side has closed the connection."""
        return not (self._eof or self.transport.is_closing())

    def write(self, data: bytes) -> None:
        """Send bytes; `drain` next. Raises OSError or EOFError when the connection has ended."""
        if self.transport.is_closing():
            self._raise_if_lost()
            raise EOFError
        self.transport.write(data)

    async def drain(self) -> None:
        """Wait until little of what was written is still here.

        Raises OSError or EOFError when the connection breaks.
        """
        while self._full:
            self._raise_if_lost()
            self._writer = self._loop.create_future()
            try:
                await self._writer
            finally:
                self._writer = None

    async def next_frame(self) -> bytes:
        """Return the content of the next frame.

        Raises OSError or EOFError when the connection ends before, RemoteProtocolError for a length that cannot be.
        """
        while (content := self._splitter.next_frame()) is None:
            self._raise_if_lost()
            if self._paused:
                self._paused = False
                self.transport.resume_reading()
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return content

    async def close(self, timeout_s: float) -> None:
        """End the connection in good order, or when the time is up without."""
        self.transport.close()
        try:
            async with asyncio.timeout(timeout_s):
                await self._lost.wait()
        except TimeoutError:
            self.transport.abort()

    def abort(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    def hand_over(self, protocol: asyncio.Protocol) -> asyncio.Transport:
        """Give the transport to another protocol, which is called from now on.

        Its `connection_made` is not called. Raises EOFError when it is too late: the connection has ended, or bytes
        have come that no request had asked for.
        """
        if not self.usable or self._splitter.buffered:
            self.abort()
            raise EOFError
        transport = self.transport
        transport.set_protocol(protocol)
        if self._paused:
            transport.resume_reading()
        return transport

    def _raise_if_lost(self) -> None:
        if self._error is not None:
            raise self._error
        if self._eof:
            raise EOFError


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
