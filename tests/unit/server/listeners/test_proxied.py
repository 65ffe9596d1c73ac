"""A connection through a load balancer: which headers are believed, what is logged, and what counts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_network
from typing import Any, cast

import pytest
import uvloop

from kafka_dt.config import Endpoint, ProxyProtocol, Settings
from kafka_dt.server.listeners.listener import Lifetimes, OpenListener
from kafka_dt.server.listeners.open_port import bind
from kafka_dt_protocol.wire.proxy_header import V2_START, proxy_header
from tests.support.server.parts import admission
from tests.support.server.requests import until

HOST = "127.0.0.1"
TIMEOUT_S = 60
CLIENT, FRONT = ("192.0.2.7", 51234), ("198.51.100.1", 443)
V1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 51234 443\r\n"
V2 = proxy_header(CLIENT, FRONT)
LOCAL = proxy_header(None, None)
REQUEST = b"\x00\x00\x00\x0ca request of"
MISSING = "no PROXY header (kafka.dt.proxy.protocol=required)"
UNTRUSTED = "a PROXY header from an address outside of kafka.dt.proxy.protocol.networks"


class Inner(asyncio.Protocol):
    """What stands behind: it notes both addresses, and answers whatever comes."""

    def __init__(self) -> None:
        self.addresses: tuple[Any, Any] = (None, None)
        self.received = b""
        self.transport: asyncio.Transport
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.addresses = transport.get_extra_info("peername"), transport.get_extra_info("sockname")

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.transport.writelines([b"<", data])
        self.transport.write(b">")

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.lost = True

    def login_overdue(self) -> None:
        self.transport.close()


class World:
    def __init__(self, proxy: ProxyProtocol, settings: Settings, login_s: float) -> None:
        with bind(Endpoint("PLAINTEXT", HOST, 0)) as probe:
            self.port = int(probe.getsockname()[1])
        self.admission = admission(settings)
        self.listener = OpenListener(
            Endpoint("PLAINTEXT", HOST, self.port),
            backlog=10,
            lifetimes=Lifetimes(login_s=login_s),
            admission=self.admission,
            proxy=proxy,
        )
        self.made: list[Inner] = []
        self.writers: list[asyncio.StreamWriter] = []

    def connection(self) -> Inner:
        self.made.append(Inner())
        return self.made[-1]

    async def send(self, *pieces: bytes, answer: bytes | None = b"") -> asyncio.StreamWriter:
        """Send pieces one after the other; wait for an answer, for the end (empty), or for nothing (None)."""
        reader, writer = await asyncio.open_connection(HOST, self.port)
        self.writers.append(writer)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.002 if len(pieces) > 1 else 0)
        if answer:
            assert await reader.readexactly(len(answer)) == answer
        elif answer is not None:
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        return writer


@asynccontextmanager
async def opened(
    *, required: bool = True, networks: Sequence[str] = ("127.0.0.0/8",), login_s: float = 30, **settings: Any
) -> AsyncIterator[World]:
    proxy = ProxyProtocol(required, tuple(map(ip_network, networks)))
    world = World(proxy, Settings(**settings), login_s)
    await world.listener.open(world.connection)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield world
    finally:
        for writer in world.writers:
            writer.close()
        await world.listener.drain(0.1)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().partition(": ")[2] for record in caplog.records if "Clos" in record.msg]


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


@pytest.mark.parametrize("header", [V1, V2])
@pytest.mark.parametrize("required", [True, False])
async def test_the_connection_has_the_addresses_of_the_header(header: bytes, required: bool) -> None:
    async with opened(required=required) as world:
        writer = await world.send(header + REQUEST, answer=b"<" + REQUEST + b">")
        (inner,) = world.made
        assert (inner.addresses, inner.received) == ((CLIENT, FRONT), REQUEST)
        writer.close()


@pytest.mark.parametrize("header", [V1, V2])
async def test_a_header_that_comes_byte_by_byte_is_put_together(header: bytes) -> None:
    async with opened() as world:
        pieces = [bytes([each]) for each in header + REQUEST[:3]]
        (await world.send(*pieces, REQUEST[3:], answer=b"<")).close()
        assert world.made[0].addresses == (CLIENT, FRONT)
        assert world.made[0].received.startswith(REQUEST[:1])


@pytest.mark.parametrize("header", [LOCAL, b"PROXY UNKNOWN\r\n", V2_START + b"\x21\x00\x00\x00"])
async def test_a_header_without_addresses_leaves_those_of_the_socket(header: bytes) -> None:
    async with opened() as world:
        writer = await world.send(header + REQUEST, answer=b"<" + REQUEST + b">")
        (peer, own) = world.made[0].addresses
        assert peer == writer.get_extra_info("sockname")
        assert own == (HOST, world.port)
        writer.close()


async def test_where_it_is_optional_a_client_may_connect_directly() -> None:
    async with opened(required=False) as world:
        (await world.send(REQUEST, answer=b"<" + REQUEST + b">")).close()
        assert world.made[0].addresses[1] == (HOST, world.port)


@pytest.mark.parametrize("first", [REQUEST, b"\x16\x03\x01", b"GET / HTTP/1.1"])
async def test_a_connection_without_the_required_header_is_closed_with_one_line(
    first: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as world:
        await world.send(first)
        assert (world.made, lines(caplog)) == ([], [MISSING])


@pytest.mark.parametrize("header", [V1, V2, LOCAL])
@pytest.mark.parametrize("required", [True, False])
async def test_a_header_of_an_untrusted_address_is_refused(
    header: bytes, required: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(required=required, networks=["10.1.0.0/16", "fd00::/8"]) as world:
        await world.send(header + REQUEST)
        assert (world.made, lines(caplog)) == ([], [UNTRUSTED])


async def test_an_untrusted_address_without_a_header_is_a_client_where_it_is_optional() -> None:
    async with opened(required=False, networks=["10.1.0.0/16"]) as world:
        (await world.send(b"P", b"RO", REQUEST, answer=b"<PRO")).close()


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"PROXY TCP9 \r\n", "malformed PROXY header: its line is not of the form"),
        (V2_START + b"\x11\x11\x00\x0c", "malformed PROXY header: version 1 is unknown"),
    ],
)
async def test_a_malformed_header_closes_with_one_line(
    sent: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as world:
        await world.send(sent)
        (line,) = lines(caplog)
        assert line.startswith(reason)


async def test_half_a_header_closes_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async with opened() as world:
        writer = await world.send(V2[:20], answer=None)
        writer.write_eof()
        await until(lambda: bool(lines(caplog)))
        assert lines(caplog) == ["its PROXY header is not complete"]
        writer.close()


async def test_a_header_that_does_not_come_is_not_waited_for_longer_than_a_login(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened(login_s=0.2) as world:
        await world.send(V2[:20])
        assert lines(caplog) == ["no PROXY header within 0.2 s (kafka.dt.login.timeout.ms)"]


@pytest.mark.parametrize("sent", [b"", LOCAL, V1])
async def test_a_health_check_logs_nothing(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with opened() as world:
        writer = await world.send(sent, answer=None)
        if sent:
            await until(lambda: bool(world.made))
        writer.close()
        await writer.wait_closed()
        (await world.send(V1 + REQUEST, answer=b"<" + REQUEST + b">")).close()
        assert lines(caplog) == []


# Limits


async def test_the_limit_of_an_address_is_that_of_the_client_and_not_of_the_balancer() -> None:
    async with opened(max_connections_per_ip=1) as world:
        answer = b"<" + REQUEST + b">"
        writers = [
            await world.send(proxy_header((f"192.0.2.{last}", 1), FRONT) + REQUEST, answer=answer) for last in (1, 2, 3)
        ]
        await world.send(proxy_header(("192.0.2.2", 2), FRONT) + REQUEST)
        writers[1].close()
        await until(lambda: world.made[1].lost)
        writers.append(await world.send(proxy_header(("192.0.2.2", 3), FRONT) + REQUEST, answer=answer))
        for writer in writers:
            writer.close()


async def test_connections_whose_header_is_awaited_count_for_the_node_until_they_go() -> None:
    async with opened(max_connections=2) as world:
        waiting = [await world.send(V2[:5], answer=None) for _ in range(2)]
        await world.send(V2 + REQUEST)
        waiting[0].close()
        await waiting[0].wait_closed()
        await until(lambda: world.admission._counts.total <= 1)
        (await world.send(V2 + REQUEST, answer=b"<" + REQUEST + b">")).close()
        waiting[1].close()


def test_uvloop_passes_the_socket_on_as_well() -> None:
    async def once() -> None:
        async with opened() as world:
            writer = await world.send(V2 + REQUEST, answer=b"<" + REQUEST + b">")
            writer.write(REQUEST)
            await until(lambda: len(world.made[0].received) == 2 * len(REQUEST))
            assert world.made[0].addresses == (CLIENT, FRONT)
            writer.close()
            await until(lambda: world.made[0].lost)
            assert world.admission._counts.total == 0

    uvloop.run(once())
