"""A small HTTP server for a few short answers: one request a connection, and everything bounded.

    server = HttpServer(sock, answer, tls=lambda: context)
    await server.serve()                # until cancelled

A client that reaches the port may send anything, so a connection has `REQUEST_S` for its handshake, its request and its
answer; a request has at most `REQUEST_BYTES`, without a body; and there are at most `CONNECTIONS` connections. One more
takes the place of the oldest: a client that sends its request at once is served in a flood of those that do not.

Source: RFC 9110, RFC 9112; h11 reads and writes the messages.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import h11

_LOG = logging.getLogger(__name__)

REQUEST_S: Final = 10.0
"""How long a connection may take, from its first packet to the last byte of the answer."""
REQUEST_BYTES: Final = 16 * 1024
"""How long a request with its headers may be."""
CONNECTIONS: Final = 64
BACKLOG: Final = 128
ACCEPT_RETRY_S: Final = 0.5
"""How long no connection is accepted after the system has refused one, as without a free file descriptor."""
READ_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request without a body."""

    path: str
    """Without the query."""
    headers: Mapping[bytes, bytes] = field(repr=False)
    """By name in lower case; of several with the same name the last."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


class HttpServer:
    """Answers GET and HEAD.

    Args:
        listening: a socket that is bound.
        answer: gives the answer to a request.
        tls: gives the TLS context for the next connection; None where it is not encrypted.
    """

    def __init__(
        self,
        listening: socket.socket,
        answer: Callable[[HttpRequest], HttpAnswer],
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._listening = listening
        self._answer = answer
        self._tls = tls
        self._open: dict[asyncio.Task[None], None] = {}
        """The oldest first."""

    def listen(self) -> None:
        """Have the system take connections from now on."""
        self._listening.setblocking(False)
        self._listening.listen(BACKLOG)

    async def serve(self) -> None:
        """Answer until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    sock, _ = await loop.sock_accept(self._listening)
                except OSError as error:
                    _LOG.warning("The metrics listener accepts no connection for a moment: %s", error.strerror)
                    await asyncio.sleep(ACCEPT_RETRY_S)
                else:
                    self._begin(sock)
                    # A waiting connection is accepted without a pause: in a burst no request would be read meanwhile.
                    await asyncio.sleep(0)
        finally:
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    def _begin(self, sock: socket.socket) -> None:
        if len(self._open) >= CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.cancel()
        task = asyncio.get_running_loop().create_task(self._serve(sock))
        self._open[task] = None
        task.add_done_callback(lambda done: self._open.pop(done, None))

    async def _serve(self, sock: socket.socket) -> None:
        """Serve one connection to its end; what goes wrong is the client's loss."""
        transport: asyncio.WriteTransport | None = None
        try:
            async with asyncio.timeout(REQUEST_S):
                reader, writer = await self._opened(sock)
                transport = writer.transport
                connection = h11.Connection(h11.SERVER, max_incomplete_event_size=REQUEST_BYTES)
                answer, has_body = await self._answered(connection, reader)
                writer.write(_written(connection, answer, has_body=has_body))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
                transport = None
        except (OSError, TimeoutError, EOFError):
            return
        except Exception:  # noqa: BLE001 - it must not reach the other connections
            _LOG.exception("A request to the metrics listener failed")
        finally:
            if transport is not None:
                transport.abort()
            sock.close()

    async def _opened(self, sock: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=REQUEST_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        encryption: dict[str, Any] = {}
        if self._tls is not None:
            encryption = {"ssl": self._tls(), "ssl_handshake_timeout": REQUEST_S}
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock, **encryption)
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def _answered(self, connection: h11.Connection, reader: asyncio.StreamReader) -> tuple[HttpAnswer, bool]:
        """Read a request; returns its answer, and whether the client is to get its body."""
        try:
            request = await _next_request(connection, reader)
        except h11.RemoteProtocolError as error:
            status = HTTPStatus(error.error_status_hint)
            return HttpAnswer(f"{status.phrase}\n".encode(), status), True
        method = request.method
        if method not in {b"GET", b"HEAD"}:
            return HttpAnswer(
                b"Only GET and HEAD\n", HTTPStatus.METHOD_NOT_ALLOWED, headers=(("Allow", "GET, HEAD"),)
            ), True
        path = request.target.partition(b"?")[0].decode("ascii")
        return self._answer(HttpRequest(path, dict(request.headers))), method == b"GET"


async def _next_request(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request:
    """Read a request up to the end of its headers; a body is not read.

    Raises:
        h11.RemoteProtocolError: it is none.
        EOFError: the client has gone.
    """
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            raise EOFError
        connection.receive_data(await reader.read(READ_BYTES))


def _written(connection: h11.Connection, answer: HttpAnswer, *, has_body: bool) -> bytes:
    """Write an answer, after which the connection is closed."""
    headers = [
        ("Content-Type", answer.content_type),
        ("Content-Length", str(len(answer.body))),
        ("Cache-Control", "no-store"),
        ("Connection", "close"),
        *answer.headers,
    ]
    pieces = [connection.send(h11.Response(status_code=answer.status, headers=headers, reason=answer.status.phrase))]
    if has_body:
        pieces.append(connection.send(h11.Data(data=answer.body)))
    return b"".join(filter(None, pieces))
