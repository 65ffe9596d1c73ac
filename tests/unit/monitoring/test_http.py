"""The HTTP server of the metrics listener, with real sockets: what it answers, and what hostile clients can do."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import pytest

from kafka_dt.monitoring import http
from kafka_dt.monitoring.http import HttpAnswer, HttpRequest, HttpServer
from tests.support.identity.tls_listeners import TlsListeners

TIMEOUT_S = 20.0
LONG_BYTES = 64 * 1024 * 1024
GET = b"GET /page?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Server:
    """A server that answers with the path."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def ask(self, *pieces: bytes) -> bytes:
        """Send pieces, and return all that comes back until the server closes."""
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                return await reader.read()
            finally:
                writer.close()


def shown(request: HttpRequest) -> HttpAnswer:
    if request.path == "/broken":
        raise RuntimeError("a bug")
    if request.path == "/long":
        return HttpAnswer(bytes(LONG_BYTES))
    return HttpAnswer(f"this is {request.path}\n".encode())


@asynccontextmanager
async def running(context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = HttpServer(listening, shown, None if context is None else lambda: context)
    server.listen()
    serving = asyncio.create_task(server.serve())
    try:
        yield Server(listening.getsockname()[1])
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        listening.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with running() as made:
        yield made


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


async def test_a_request_is_answered_and_the_connection_is_closed(server: Server) -> None:
    head, body = (await server.ask(GET)).split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"content-length: 14" in head.lower()
    assert b"connection: close" in head.lower()
    assert body == b"this is /page\n"


async def test_a_request_may_come_byte_by_byte(server: Server) -> None:
    assert (await server.ask(*(bytes([byte]) for byte in GET))).endswith(b"this is /page\n")


async def test_head_gets_the_headers_alone(server: Server) -> None:
    answer = await server.ask(GET.replace(b"GET", b"HEAD"))
    assert status(answer) == HTTPStatus.OK
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"DELETE", b"OPTIONS"])
async def test_other_methods_are_refused(server: Server, method: bytes) -> None:
    assert status(await server.ask(GET.replace(b"GET", method))) == HTTPStatus.METHOD_NOT_ALLOWED


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 64 + b"\r\n",
    ],
)
async def test_what_is_no_http_gets_an_error(server: Server, nonsense: bytes) -> None:
    assert status(await server.ask(nonsense)) == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize("sent", [b"", b"GET /page HTTP/1.1\r\nHost: x\r\n"])
async def test_a_client_that_leaves_early_is_forgotten(server: Server, sent: bytes) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(sent)
    writer.close()
    assert status(await server.ask(GET)) == HTTPStatus.OK


async def test_a_request_that_is_too_long_is_refused_before_it_is_whole(server: Server) -> None:
    endless = b"GET /page HTTP/1.1\r\nHost: x\r\n" + b"X-Long: " + b"x" * (http.REQUEST_BYTES + 1)
    assert status(await server.ask(endless)) == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


async def test_a_body_is_not_waited_for(server: Server) -> None:
    request = GET.replace(b"\r\n\r\n", b"\r\nContent-Length: 1000000000\r\n\r\n")
    assert (await server.ask(request)).endswith(b"this is /page\n")


async def test_a_slow_client_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_S", 0.2)
    async with running() as server:
        assert await server.ask(b"GET /page HTTP/1.1\r\n") == b""


async def test_a_client_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_S", 0.3)
    async with running() as server, asyncio.timeout(TIMEOUT_S):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(GET.replace(b"/page", b"/long"))
            await asyncio.sleep(1.0)
            # The system still has what the server could hand over to it, and then the end.
            received = 0
            while piece := client.recv(1 << 20):
                received += len(piece)
            assert received < LONG_BYTES / 2


async def test_many_silent_connections_keep_nobody_out(server: Server) -> None:
    silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3 * http.CONNECTIONS)]
    try:
        assert (await server.ask(GET)).endswith(b"this is /page\n")
        async with asyncio.timeout(TIMEOUT_S):
            ended = await asyncio.gather(*(reader.read() for reader, _ in silent[: http.CONNECTIONS]))
        assert set(ended) == {b""}
    finally:
        for _, writer in silent:
            writer.close()


async def test_an_error_of_ours_is_logged_and_ends_one_connection(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        assert await server.ask(GET.replace(b"/page", b"/broken")) == b""
    assert "A request to the metrics listener failed" in caplog.text
    assert status(await server.ask(GET)) == HTTPStatus.OK


async def test_it_serves_over_tls_and_cuts_off_what_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_S", 2.0)
    tls = TlsListeners.make(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.key_store)
    async with running(context) as server, asyncio.timeout(TIMEOUT_S):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, ssl=tls.context(), server_hostname="localhost"
        )
        writer.write(GET)
        assert (await reader.read()).endswith(b"this is /page\n")
        writer.close()
        assert await server.ask(GET) == b""


async def test_a_burst_of_more_connections_than_there_may_be_is_served() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    server = HttpServer(listening, shown)
    server.listen()
    clients = [socket.create_connection(listening.getsockname()) for _ in range(http.CONNECTIONS + 16)]
    for client in clients:
        client.settimeout(TIMEOUT_S)
        client.sendall(GET)
    serving = asyncio.create_task(server.serve())
    try:
        answers = [await asyncio.to_thread(client.recv, http.READ_BYTES) for client in clients]
        assert {status(answer) for answer in answers} == {HTTPStatus.OK}
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        for each in (*clients, listening):
            each.close()
