"""What a client asks of the gateway goes upstream or is served here, in order, and the answers come back in it."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import LoginFailed
from kafka_dt.gateway.forwarding import MAX_OUTSTANDING, STEPS_IN_A_ROW
from kafka_dt.gateway.upstream import Exchange
from kafka_dt.server.handlers import RequestContext
from kafka_dt_protocol import ApiKey, frame, refusal
from tests.support.server.fake_gateway import JOIN_GROUP, GatewayShell, answer, produce, request
from tests.support.server.fake_transport import NOW, FakeTransport, turns

VERSIONS = request(ApiKey.API_VERSIONS, 7, version=0)
METADATA = 3


def answered(shell: GatewayShell) -> list[int]:
    """The correlation ids of the answers that the client has got."""
    ids, data = [], bytes(shell.transport.written)
    while data:
        length, correlation_id = struct.unpack_from(">ii", data)
        ids.append(correlation_id)
        data = data[4 + length :]
    return ids


async def test_a_request_goes_upstream_as_it_came_and_its_answer_comes_back_as_it_came() -> None:
    shell = GatewayShell()
    shell.send(request(JOIN_GROUP, 1, b"body"))
    upstream = await shell.upstream()
    assert upstream.written == request(JOIN_GROUP, 1, b"body")
    upstream.answer(1, b"content")
    assert shell.transport.written == answer(1, b"content")


async def test_a_long_request_goes_on_while_it_still_arrives() -> None:
    shell = GatewayShell()
    whole = request(JOIN_GROUP, 1, bytes(1000))
    shell.send(whole[:300])
    upstream = await shell.upstream()
    assert upstream.written == whole[:300]
    shell.send(whole[300:])
    assert upstream.written == whole


async def test_nothing_is_read_of_a_client_while_its_way_upstream_is_looked_for() -> None:
    shell = GatewayShell()
    shell.connector.open.clear()
    shell.send(request(JOIN_GROUP, 1))
    await turns()
    assert not shell.transport.reading
    shell.connector.open.set()
    await turns()
    assert shell.transport.reading


async def test_what_is_served_here_waits_for_the_answers_that_come_first() -> None:
    shell = GatewayShell()
    shell.send(request(JOIN_GROUP, 1) + VERSIONS + request(JOIN_GROUP, 2))
    upstream = await shell.upstream()
    assert upstream.written == request(JOIN_GROUP, 1)
    upstream.answer(1)
    await turns()
    assert answered(shell) == [1, 7]
    assert upstream.written == request(JOIN_GROUP, 1) + request(JOIN_GROUP, 2)


async def test_nothing_is_forwarded_while_a_request_is_served_here() -> None:
    served = asyncio.Event()

    async def handler(context: RequestContext, body: Any) -> Any:
        await served.wait()
        return refusal(context.header, body, ErrorCode.invalid_request)

    shell = GatewayShell(handler)
    shell.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, owners=None)
    shell.send(request(JOIN_GROUP, 2))
    await turns()
    assert shell.connector.asked == 0
    served.set()
    upstream = await shell.upstream()
    assert upstream.written == request(JOIN_GROUP, 2)
    assert answered(shell) == [1]


async def test_a_produce_with_acks_0_is_followed_at_once_by_what_is_served_here() -> None:
    shell = GatewayShell()
    shell.send(produce(1, acks=0) + VERSIONS)
    assert (await shell.upstream()).written == produce(1, acks=0)
    await turns()
    assert answered(shell) == [7]


async def test_reading_stops_at_either_side_while_the_other_is_full() -> None:
    shell = GatewayShell(high_water=10)
    shell.send(request(JOIN_GROUP, 1))
    upstream = await shell.upstream()
    upstream.listener.upstream_full()
    assert not shell.transport.reading
    upstream.listener.upstream_writable()
    assert shell.transport.reading
    upstream.answer(1, b"more than ten bytes")
    assert not upstream.reading
    shell.transport.read_by_client()
    assert upstream.reading


async def test_nothing_is_read_of_an_upstream_that_comes_while_the_client_does_not_read() -> None:
    shell = GatewayShell()
    shell.connector.open.clear()
    shell.send(request(JOIN_GROUP, 1))
    await turns()
    shell.connection.pause_writing()
    shell.connector.open.set()
    upstream = await shell.upstream()
    assert not upstream.reading
    shell.connection.resume_writing()
    assert upstream.reading


async def test_a_client_that_writes_ahead_is_held_up_after_so_many_requests() -> None:
    shell = GatewayShell()
    shell.send(b"".join(request(JOIN_GROUP, each) for each in range(MAX_OUTSTANDING + 1)))
    upstream = await shell.upstream()
    await turns(MAX_OUTSTANDING // STEPS_IN_A_ROW + 5)
    length = len(request(JOIN_GROUP, 0))
    assert len(upstream.written) == MAX_OUTSTANDING * length
    assert not shell.transport.reading
    upstream.answer(0)
    assert len(upstream.written) == (MAX_OUTSTANDING + 1) * length


async def test_a_version_whose_answer_could_not_be_rewritten_is_not_forwarded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    shell = GatewayShell()
    shell.send(request(METADATA, 1, version=99))
    await turns()
    assert shell.transport.closed
    assert not any(upstream.written for upstream in shell.connector.made)
    assert "API key 3 has no version 99" in caplog.text


async def test_a_login_upstream_that_is_refused_closes_the_connection_and_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    shell = GatewayShell()
    shell.connector.failures.append(LoginFailed("broker:9092", "SCRAM-SHA-256", "no such user"))
    shell.send(request(JOIN_GROUP, 1))
    await turns()
    assert shell.transport.closed
    assert "no connection to the upstream cluster" in caplog.text
    assert "no such user" in caplog.text


async def test_what_nobody_foresaw_on_the_way_upstream_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    shell = GatewayShell()
    shell.connector.failures.append(RuntimeError("an unforeseen error"))
    shell.send(request(JOIN_GROUP, 1))
    await turns()
    assert shell.transport.aborted
    assert "an unforeseen error" in caplog.text


async def test_a_login_upstream_that_is_called_off_is_not_begun_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    shell = GatewayShell()
    shell.connector.failures.append(asyncio.CancelledError())
    shell.send(request(JOIN_GROUP, 1))
    await turns()
    assert shell.connector.asked == 1
    assert shell.transport.closed
    assert "no connection to the upstream cluster: the login was cancelled" in caplog.text


async def test_the_name_that_a_client_came_by_says_which_broker_it_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeTransport, "server_name", "b7.example")
    shell = GatewayShell()
    shell.send(request(JOIN_GROUP, 1))
    await shell.upstream()
    assert shell.connector.addresses == 7


async def test_addresses_in_answers_lead_back_to_the_gateway_and_are_learned() -> None:
    shell = GatewayShell()
    shell.send(request(METADATA, 1, version=0))
    upstream = await shell.upstream()
    broker = struct.pack(">iih8si", 1, 3, 8, b"internal", 19092)
    upstream.answer(1, broker + struct.pack(">i", 0))
    advertised = struct.pack(">iih10si", 1, 3, 10, b"b3.example", 9003)
    assert shell.transport.written == answer(1, advertised + struct.pack(">i", 0))
    assert shell.brokers.learned == [(3, "internal", 19092)]


async def test_what_nobody_foresaw_ends_both_sides_of_that_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shell = GatewayShell()
    shell.send(request(METADATA, 1, version=0))
    upstream = await shell.upstream()
    monkeypatch.setattr(shell.brokers, "learn", None)
    upstream.answer(1, struct.pack(">iih8sii", 1, 3, 8, b"internal", 19092, 0))
    assert shell.transport.aborted
    assert upstream.aborted
    assert "because of an unexpected error" in caplog.text


async def test_a_clock_that_fails_ends_both_sides_of_that_connection(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> int:
        raise OSError("no clock")

    shell = GatewayShell(now_ms=broken)
    shell.send(request(JOIN_GROUP, 1))
    assert shell.transport.aborted
    assert "no clock" in caplog.text


async def test_an_upstream_that_answers_what_nobody_asked_ends_the_connection() -> None:
    shell = GatewayShell()
    shell.send(request(JOIN_GROUP, 1))
    (await shell.upstream()).answer(2)
    assert shell.transport.closed
    assert shell.transport.written == b""


async def test_a_login_that_is_due_waits_for_the_answers_and_what_follows_waits_for_it() -> None:
    shell = GatewayShell()
    shell.connector.login_due_ms = NOW

    async def relogin(exchange: Exchange) -> None:
        assert await exchange(99, frame(b"login")) == struct.pack(">i", 99) + b"welcome"

    shell.connector.relogin = relogin
    shell.send(request(JOIN_GROUP, 1))
    upstream = await shell.upstream()
    await asyncio.sleep(0.005)
    shell.send(request(JOIN_GROUP, 2))
    assert upstream.written == request(JOIN_GROUP, 1)
    upstream.answer(1)
    await turns()
    assert upstream.written == request(JOIN_GROUP, 1) + frame(b"login")
    upstream.answer(99, b"welcome")
    await turns()
    assert upstream.written == request(JOIN_GROUP, 1) + frame(b"login") + request(JOIN_GROUP, 2)
    assert answered(shell) == [1]


async def test_a_login_that_is_due_in_some_days_waits_for_them() -> None:
    days_ms = 5 * 86_400_000
    shell = GatewayShell()
    shell.connector.login_due_ms = NOW + days_ms
    shell.send(request(JOIN_GROUP, 1))
    await shell.upstream()
    timer = shell.forwarding.upstream.login_timer
    assert timer is not None
    assert timer.when() - asyncio.get_running_loop().time() == pytest.approx(days_ms / 1000, abs=5)
