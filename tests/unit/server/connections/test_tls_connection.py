"""TLS between a socket and a connection, over real sockets, with a scripted protocol inside."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kafka_dt.server.connections.tls import TlsConnection, TlsServices
from kafka_dt.tls import client_context, server_context
from tests.support.identity.tls_material import Identity, authority, leaf

ROOT = authority("Root")
SERVER = leaf("localhost", ROOT)
CLIENT = leaf("client", ROOT)
WITHIN_S = 60.0
LARGE = bytes(range(256)) * 40_000


def closing(transport: asyncio.Transport) -> bool:
    transport.close()
    return True


def inline(identity: Identity) -> dict[str, str]:
    return {"ssl.keystore.key": identity.key_pem(), "ssl.keystore.certificate.chain": identity.chain_pem}


def trust() -> dict[str, str]:
    return {"ssl.truststore.certificates": ROOT.certificate_pem}


@dataclass
class Inside(asyncio.Protocol):
    """Notes what happens to it and answers as it is told."""

    on_data: Callable[[asyncio.Transport, bytes], None] = lambda transport, data: transport.write(data)
    on_eof: Callable[[asyncio.Transport], bool] = lambda _transport: False
    events: list[str] = field(default_factory=list)
    received: bytes = b""
    transport: asyncio.Transport | None = None
    lost: asyncio.Event = field(default_factory=asyncio.Event)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.events.append("made")
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        self.received += data
        self.on_data(self.transport, data)

    def eof_received(self) -> bool:
        assert self.transport is not None
        self.events.append("eof")
        return self.on_eof(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.events.append("lost")
        self.lost.set()

    def login_overdue(self) -> None:
        self.events.append("overdue")

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")


@dataclass
class Server:
    port: int
    inside: Inside
    failures: list[str]
    connections: list[TlsConnection]

    async def connect(self, context: ssl.SSLContext | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.wait_for(
            asyncio.open_connection("127.0.0.1", self.port, ssl=context or client_context(trust())), WITHIN_S
        )

    async def echoes(self, context: ssl.SSLContext | None = None) -> None:
        """Connect and have a byte sent back: with TLS 1.3 a client learns only then that it was refused."""
        reader, writer = await self.connect(context)
        writer.write(b"x")
        await asyncio.wait_for(reader.readexactly(1), WITHIN_S)
        writer.close()


@asynccontextmanager
async def serving(
    inside: Inside | None = None, settings: dict[str, str] | None = None, *, server_names: bool = False
) -> AsyncIterator[Server]:
    made = Inside() if inside is None else inside
    failures: list[str] = []
    context = server_context(inline(SERVER) | trust() | (settings or {}))

    def note(peer: Any, reason: str) -> None:
        assert peer[0] == "127.0.0.1"
        failures.append(reason)

    services = TlsServices(context=lambda: context, failed=note, server_names=server_names)
    connections: list[TlsConnection] = []

    def connection() -> TlsConnection:
        connections.append(TlsConnection(services, made))
        return connections[-1]

    server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
    try:
        yield Server(server.sockets[0].getsockname()[1], made, failures, connections)
    finally:
        server.close()
        await server.wait_closed()


async def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def blocking_client(port: int, context: ssl.SSLContext) -> bytes:
    """Send a byte and read to the end, with OpenSSL on the socket itself: asyncio's clients send no alerts, and
    uvloop's lose what they have not read when the end comes."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False) as encrypted,
    ):
        encrypted.sendall(b"x")
        received = b""
        while part := encrypted.recv(1 << 20):
            received += part
        return received


async def keep_writing(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"more")
        await writer.drain()
        await asyncio.sleep(0.01)


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Read to the end."""
    return await asyncio.wait_for(reader.read(), WITHIN_S)


async def test_what_is_sent_arrives_in_both_directions() -> None:
    async with serving() as server:
        reader, writer = await server.connect()
        writer.write(LARGE)
        assert await asyncio.wait_for(reader.readexactly(len(LARGE)), WITHIN_S) == LARGE
        writer.close()
        await asyncio.wait_for(server.inside.lost.wait(), WITHIN_S)
        assert server.inside.events[0] == "made"
        assert server.inside.events[-1] == "lost"
        assert server.failures == []


async def test_the_clients_certificate_is_known_inside() -> None:
    async with serving(settings={"ssl.client.auth": "required"}) as server:
        reader, writer = await server.connect(client_context(trust() | inline(CLIENT)))
        writer.write(b"x")
        await asyncio.wait_for(reader.readexactly(1), WITHIN_S)
        assert server.inside.transport is not None
        shown = server.inside.transport.get_extra_info("ssl_object").getpeercert()
        assert shown["subject"] == ((("commonName", "client"),),)
        assert server.inside.transport.get_extra_info("peername")[0] == "127.0.0.1"
        assert server.inside.transport.get_extra_info("nothing", "default") == "default"
        writer.close()


def asked_for(server: Server) -> object:
    assert server.inside.transport is not None
    return server.inside.transport.get_extra_info("server_name")


async def say_name(server: Server, name: str | None) -> None:
    """Connect with a name in the hello, or without one."""
    context = client_context(trust() | {"ssl.endpoint.identification.algorithm": ""})
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", server.port, ssl=context, server_hostname="" if name is None else name
    )
    writer.write(b"x")
    await asyncio.wait_for(reader.readexactly(1), WITHIN_S)
    writer.close()


@pytest.mark.parametrize("name", ["broker-7.example.com", "BROKER-7.Example.com", "a_b", None])
async def test_the_name_that_the_client_asks_for_is_known_inside(name: str | None) -> None:
    async with serving(server_names=True) as server:
        await say_name(server, name)
        assert asked_for(server) == name


async def test_the_name_is_not_looked_at_where_nobody_wants_it() -> None:
    async with serving() as server:
        await say_name(server, "broker-7.example.com")
        assert asked_for(server) is None


async def test_connections_of_the_same_moment_and_of_renewed_contexts_have_their_own_names() -> None:
    contexts = [server_context(inline(SERVER)), server_context(inline(SERVER))]
    services = TlsServices(
        context=lambda: contexts[len(made) % 2], failed=lambda _peer, reason: pytest.fail(reason), server_names=True
    )
    made: list[Inside] = []

    def connection() -> TlsConnection:
        made.append(Inside())
        return TlsConnection(services, made[-1])

    server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
    client = client_context(trust() | {"ssl.endpoint.identification.algorithm": ""})
    names = [f"broker-{number}.example.com" for number in range(20)]
    port = server.sockets[0].getsockname()[1]
    streams = await asyncio.gather(
        *(asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=name) for name in names)
    )
    for name, (_, writer) in zip(names, streams, strict=True):
        writer.write(name.encode())
    await until(lambda: all(inside.received for inside in made))
    for inside in made:
        assert inside.transport is not None
        assert inside.transport.get_extra_info("server_name") == inside.received.decode()
    for _, writer in streams:
        writer.close()
    server.close()
    await until(lambda: all(inside.lost.is_set() for inside in made))


async def test_a_name_that_no_client_may_send_is_a_failed_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.unraisablehook", lambda _: None)  # Python has a word to say about it
    async with serving(server_names=True) as server:
        to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = client_context(trust()).wrap_bio(to_client, to_server, server_hostname="broker-7.example.com")
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(to_server.read().replace(b"broker-7", b"br\xc3\xb6ker7"))
        await ended(reader)
        assert server.failures == ["callback failed"]
        writer.close()


async def test_bytes_one_by_one_are_the_same_conversation() -> None:
    async with serving() as server:
        raw_reader, raw_writer = await asyncio.open_connection("127.0.0.1", server.port)
        to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = client_context(trust()).wrap_bio(to_client, to_server, server_hostname="localhost")

        async def step(act: Callable[[], Any]) -> Any:
            while True:
                try:
                    result = act()
                except ssl.SSLWantReadError:
                    result = None
                for octet in to_server.read():
                    raw_writer.write(bytes([octet]))
                    await raw_writer.drain()
                if result is not None:
                    return result
                to_client.write(await asyncio.wait_for(raw_reader.read(1), WITHIN_S))

        def shake_hands() -> bool:
            client.do_handshake()
            return True

        await step(shake_hands)
        client.write(b"slowly")
        assert await step(lambda: client.read(100)) == b"slowly"
        raw_writer.close()


@pytest.mark.parametrize(("parts", "times", "stays"), [((1,), 5_000, False), ((4, 30), 5_000, True)])
async def test_a_client_whose_records_carry_hardly_any_data_is_closed(
    parts: tuple[int, ...], times: int, stays: bool
) -> None:
    async with serving(Inside(on_data=lambda _transport, _data: None)) as server:
        _, writer = await server.connect()
        for _ in range(times):
            for size in parts:
                writer.write(bytes(size))  # a record
        if stays:
            await until(lambda: len(server.inside.received) == times * sum(parts))
            assert server.inside.events == ["made"]
        else:
            await asyncio.wait_for(server.inside.lost.wait(), WITHIN_S)
            assert len(server.inside.received) < times
        writer.close()


async def test_a_large_record_that_arrives_in_pieces_is_no_lack_of_data() -> None:
    async with serving(Inside(on_data=lambda _transport, _data: None)) as server:
        _, writer = await server.connect()
        writer.write(LARGE)
        await until(lambda: server.inside.received == LARGE)
        assert server.inside.events == ["made"]
        writer.close()


async def test_closing_inside_sends_all_that_was_written_and_says_goodbye() -> None:
    def answer(transport: asyncio.Transport, _data: bytes) -> None:
        transport.write(LARGE)
        transport.close()
        assert transport.is_closing()
        transport.write(b"nothing of this")
        transport.close()

    async with serving(Inside(on_data=answer)) as server:
        assert await asyncio.to_thread(blocking_client, server.port, client_context(trust())) == LARGE
        await asyncio.wait_for(server.inside.lost.wait(), WITHIN_S)


async def test_aborting_inside_ends_the_connection() -> None:
    async with serving(Inside(on_data=lambda transport, _: transport.abort())) as server:
        reader, writer = await server.connect()
        writer.write(b"x")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError, ssl.SSLError)):
            await asyncio.wait_for(reader.readexactly(1), WITHIN_S)
        await asyncio.wait_for(server.inside.lost.wait(), WITHIN_S)
        writer.close()


async def test_a_client_that_will_say_no_more_still_gets_its_answer() -> None:
    def answer(transport: asyncio.Transport) -> bool:
        transport.write(b"the answer")
        transport.close()
        return True

    inside = Inside(on_data=lambda _transport, _data: None, on_eof=answer)
    async with serving(inside) as server:
        raw_reader, raw_writer = await asyncio.open_connection("127.0.0.1", server.port)
        to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = client_context(trust()).wrap_bio(to_client, to_server, server_hostname="localhost")
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                raw_writer.write(to_server.read())
                to_client.write(await asyncio.wait_for(raw_reader.read(65536), WITHIN_S))
        client.write(b"a question")
        raw_writer.write(to_server.read())
        raw_writer.write_eof()
        to_client.write(await ended(raw_reader))
        assert client.read(100) == b"the answer"
        assert inside.received == b"a question"
        raw_writer.close()


async def test_a_goodbye_of_the_client_is_the_end_of_what_it_says() -> None:
    async with serving(Inside(on_eof=closing)) as server:
        _, writer = await server.connect()
        writer.write(b"x")
        writer.close()
        await asyncio.wait_for(server.inside.lost.wait(), WITHIN_S)
        assert server.inside.events == ["made", "eof", "lost"]


async def test_inside_is_told_when_the_client_does_not_read() -> None:
    async with serving(Inside(on_data=lambda transport, _: transport.write(LARGE * 4))) as server:
        reader, writer = await server.connect()
        writer.write(b"x")
        await until(lambda: "pause" in server.inside.events)
        await asyncio.wait_for(reader.readexactly(4 * len(LARGE)), WITHIN_S)
        await until(lambda: "resume" in server.inside.events)
        writer.close()


async def test_reading_can_be_paused_inside() -> None:
    def pause(transport: asyncio.Transport, _data: bytes) -> None:
        transport.pause_reading()

    async with serving(Inside(on_data=pause)) as server:
        _, writer = await server.connect()
        for _ in range(64):
            writer.write(LARGE[:65536])
        await until(lambda: server.inside.received)
        assert len(server.inside.received) < 64 * 65536
        assert server.inside.transport is not None
        server.inside.on_data = lambda _transport, _data: None
        server.inside.transport.resume_reading()
        await until(lambda: len(server.inside.received) == 64 * 65536)
        writer.close()


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "http request"),
        (struct.pack(">ihhih", 10, 18, 0, 1, -1), "wrong version number"),
        (b"\x16\x03\x01\x00\x02\x01\x00", None),
    ],
)
async def test_a_client_that_speaks_no_tls_is_told_so_and_closed(sent: bytes, reason: str | None) -> None:
    async with serving() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(sent)
        if reason is None:
            writer.write_eof()
        answer = await ended(reader)
        assert not answer or answer[0] == 0x15
        assert server.failures == [reason or "the client closed the connection"]
        assert server.inside.events == []
        writer.close()


async def test_a_certificate_is_required_where_it_is() -> None:
    async with serving(settings={"ssl.client.auth": "required"}) as server:
        with pytest.raises(ssl.SSLError, match=r"(?i)certificate[ _]required"):
            await server.echoes()
        assert server.failures == ["peer did not return a certificate"]


async def test_a_certificate_of_a_stranger_is_refused_with_the_reason() -> None:
    stranger = client_context(trust() | inline(leaf("stranger", authority("Other"))))
    async with serving(settings={"ssl.client.auth": "requested"}) as server:
        with pytest.raises(ssl.SSLError, match=r"(?i)unknown[ _]ca"):
            await server.echoes(stranger)
        assert server.failures == ["the client's certificate is refused: self-signed certificate in certificate chain"]


async def test_a_client_that_does_not_trust_the_server_is_a_failed_handshake() -> None:
    async with serving() as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(blocking_client, server.port, client_context({}))
        await until(lambda: server.failures)
        assert "unknown ca" in server.failures[0]


async def test_a_port_that_is_only_tried_is_not_worth_a_line() -> None:
    async with serving() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write_eof()
        assert await ended(reader) == b""
        assert server.failures == []
        writer.close()


async def test_a_client_that_does_not_close_after_a_failed_handshake_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_dt.server.connections.tls.LINGER_SECONDS", 0.05)
    async with serving() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await ended(reader)
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(keep_writing(writer), WITHIN_S)
        assert server.failures == ["http request"]
        writer.close()


async def test_a_handshake_that_is_overdue_is_given_up_with_a_line() -> None:
    async with serving() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        while not server.connections:  # noqa: ASYNC110 - a server sends no events
            await asyncio.sleep(0.001)
        server.connections[-1].login_overdue()
        assert await ended(reader) == b""
        assert server.failures == ["it took too long (kafka.dt.login.timeout.ms)"]
        server.connections[-1].login_overdue()
        writer.close()


async def test_after_the_handshake_it_is_the_connection_inside_whose_login_is_overdue() -> None:
    async with serving() as server:
        _, writer = await server.connect()
        server.connections[-1].login_overdue()
        assert server.inside.events == ["made", "overdue"]
        writer.close()


async def test_bytes_that_are_no_tls_after_the_handshake_end_the_connection() -> None:
    async with serving(Inside(on_eof=closing)) as server:
        _, writer = await server.connect()
        writer.write(b"x")
        await writer.drain()
        sock = writer.get_extra_info("socket")
        plain = sock.dup()
        plain.setblocking(True)
        plain.sendall(b"\x17\x03\x03\x00\x04oops")
        plain.close()
        await asyncio.wait_for(server.inside.lost.wait(), WITHIN_S)
        writer.transport.abort()
