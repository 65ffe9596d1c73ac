"""A connection that has become old is closed when nothing is under way, with a client or with the upstream."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kafka_dt.config import SecurityProtocol, Settings
from kafka_dt.server.connections import connection as client_connection
from kafka_dt.server.listeners.listener import Lifetimes
from kafka_dt_protocol import ApiKey
from tests.support.server.fake_gateway import JOIN_GROUP, GatewayShell, answer, produce, request
from tests.support.server.fake_transport import Shell, listener, turns, unused
from tests.support.server.requests import Gate, answered, find, until


def test_connections_live_for_ever_unless_their_age_is_set() -> None:
    assert Lifetimes.from_settings(Settings()).max_age_s is None
    assert Lifetimes.from_settings(Settings(connections_max_age_ms=500)).max_age_s == 0.5


async def test_a_quiet_connection_is_closed_at_once_with_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shell = Shell(unused)
    shell.connection.retire()
    assert shell.transport.closed
    assert not shell.transport.aborted
    assert "its age is that of kafka.dt.connections.max.age.ms" in caplog.text


async def test_a_request_under_way_is_answered_first() -> None:
    gate = Gate()
    shell = Shell(gate)
    shell.send(find(shell, "group"))
    await turns()
    shell.connection.retire()
    assert not shell.transport.closed
    gate.let_through()
    (found,) = await answered(shell, 1)
    assert found.error_message == "group"
    await until(lambda: shell.transport.closed)


async def test_a_request_that_has_begun_to_arrive_is_served_first() -> None:
    gate = Gate()
    gate.let_through()
    shell = Shell(gate)
    asked = find(shell, "group")
    shell.send(asked[:10])
    shell.connection.retire()
    assert not shell.transport.closed
    shell.send(asked[10:])
    assert len(await answered(shell, 1)) == 1
    await until(lambda: shell.transport.closed)


async def test_a_login_is_not_interrupted() -> None:
    shell = Shell(unused, listener(SecurityProtocol.SASL_PLAINTEXT))
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    shell.connection.retire()
    assert not shell.transport.closed
    shell.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0alice's")
    assert len(await answered(shell, 2)) == 2
    await until(lambda: shell.transport.closed)


async def test_a_client_that_always_has_a_request_under_way_is_closed_after_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_connection, "RETIREMENT_S", 0.01)
    gate = Gate()
    shell = Shell(gate)
    shell.send(b"".join(find(shell, str(number)) for number in range(100)))
    shell.connection.retire()
    while not shell.connection.finishing:  # noqa: ASYNC110 - a connection sends no events
        await asyncio.sleep(0.001)
    gate.let_through()
    await until(lambda: shell.transport.closed)
    assert [found.error_message for found in shell.answers()] == ["0"]


# A gateway


async def test_answers_of_the_upstream_are_waited_for() -> None:
    shell = GatewayShell()
    shell.send(request(JOIN_GROUP, 1) + request(JOIN_GROUP, 2))
    upstream = await shell.upstream()
    shell.connection.retire()
    upstream.answer(1)
    assert not shell.transport.closed
    upstream.answer(2)
    assert shell.transport.closed
    assert upstream.closed
    assert not upstream.aborted
    assert shell.transport.written == answer(1) + answer(2)


async def test_a_produce_that_wants_no_answer_goes_through_whole() -> None:
    shell = GatewayShell()
    asked = produce(1, 0, b"records" * 100)
    shell.send(asked[:200])
    upstream = await shell.upstream()
    shell.connection.retire()
    assert not shell.transport.closed
    shell.send(asked[200:])
    assert upstream.written == asked
    assert shell.transport.closed


async def test_a_connection_upstream_that_is_being_opened_is_used_first() -> None:
    shell = GatewayShell()
    shell.connector.open.clear()
    shell.send(request(JOIN_GROUP, 1))
    await turns()
    shell.connection.retire()
    assert not shell.transport.closed
    shell.connector.open.set()
    upstream = await shell.upstream()
    upstream.answer(1)
    assert shell.transport.written == answer(1)
    assert shell.transport.closed
