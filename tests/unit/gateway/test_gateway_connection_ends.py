"""However a connection of the gateway ends, both sides end, and what was promised is kept before."""

from __future__ import annotations

import asyncio
import gc
import socket
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import uvloop

from kafka_dt.config import Endpoint, SecurityProtocol
from kafka_dt.gateway import forwarding, upstream_side
from kafka_dt.gateway.upstream import Exchange
from kafka_dt.identity.login.login import Identity, LoggedIn
from kafka_dt.server.listeners.listener import Lifetimes, OpenListener
from kafka_dt.server.listeners.open_port import bind
from kafka_dt.tokens import Principal
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.sasl import PLAIN
from tests.support.server.fake_gateway import JOIN_GROUP, FakeUpstream, GatewayShell, answer, produce, request
from tests.support.server.fake_transport import FAILED_LOGIN_DELAY_MS, NOW, FakeLogin, listener, turns
from tests.support.server.parts import admission

SASL = listener(SecurityProtocol.SASL_PLAINTEXT)
TOKEN_ID = "a token"
SHORT_S = 0.01
HOST = "127.0.0.1"


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what is waited for be short."""
    for module, name in ((forwarding, "GOODBYE_S"), (forwarding, "REVOKED_S"), (upstream_side, "FLUSH_S")):
        monkeypatch.setattr(module, name, SHORT_S)


class TokenLogin(FakeLogin):
    """Logs everybody in as alice, with a token."""

    def evaluate(self, _message: bytes) -> LoggedIn:
        self.identity = Identity(Principal.user("alice"), PLAIN, TOKEN_ID)
        return LoggedIn(b"", self.identity, 60_000)


def logged_in(**more: Any) -> GatewayShell:
    shell = GatewayShell(listener=SASL, new_login=lambda _: TokenLogin(), **more)
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    shell.transport.read_by_client()
    shell.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0secret")
    assert len(shell.answers()) == 2
    shell.transport.read_by_client()
    return shell


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - connections send no events
            await asyncio.sleep(SHORT_S / 10)


# The client says goodbye


async def test_a_client_that_stops_sending_gets_its_answers_and_then_both_sides_end() -> None:
    shell = GatewayShell()
    shell.send(request(JOIN_GROUP, 1))
    upstream = await shell.upstream()
    shell.connection.eof_received()
    await turns()
    assert not shell.transport.closed
    upstream.answer(1, b"content")
    await turns()
    assert shell.transport.written == answer(1, b"content")
    assert shell.opened == []
    assert upstream.closed


async def test_a_client_that_stops_inside_a_request_gets_the_answers_to_those_before() -> None:
    shell = GatewayShell()
    shell.send(request(JOIN_GROUP, 1) + request(JOIN_GROUP, 2, bytes(100))[:50])
    upstream = await shell.upstream()
    shell.connection.eof_received()
    await turns()
    assert not shell.transport.closed
    upstream.answer(1)
    await turns()
    assert shell.transport.written == answer(1)
    assert shell.opened == []
    assert upstream.closed


@pytest.mark.parametrize("cut", [2, 10, 30])
async def test_a_client_that_stops_inside_its_first_request_is_let_go(cut: int) -> None:
    shell = GatewayShell()
    shell.send(request(JOIN_GROUP, 1, bytes(100))[:cut])
    await turns()
    shell.connection.eof_received()
    await turns()
    assert shell.opened == []
    assert all(upstream.closed for upstream in shell.connector.made)


@pytest.mark.usefixtures("short_waits")
async def test_a_client_that_said_goodbye_waits_only_so_long_for_an_upstream_that_hangs() -> None:
    shell = GatewayShell()
    shell.send(request(JOIN_GROUP, 1))
    upstream = await shell.upstream()
    shell.connection.eof_received()
    await until(lambda: not shell.opened)
    assert upstream.aborted


@pytest.mark.usefixtures("short_waits")
async def test_a_client_that_said_goodbye_and_does_not_read_is_cut_off() -> None:
    shell = GatewayShell(high_water=10)
    shell.transport.lingers = True
    shell.send(request(JOIN_GROUP, 1))
    upstream = await shell.upstream()
    upstream.answer(1, bytes(100))
    shell.connection.eof_received()
    await until(lambda: not shell.opened)
    assert shell.transport.aborted
    assert upstream.aborted


async def test_what_needs_no_answer_still_goes_upstream_when_the_client_has_gone() -> None:
    shell = GatewayShell()
    shell.send(produce(1, acks=0))
    upstream = await shell.upstream()
    shell.connection.eof_received()
    await turns()
    assert shell.opened == []
    assert upstream.closed
    assert not upstream.aborted, "what was written is flushed first"


@pytest.mark.usefixtures("short_waits")
async def test_an_upstream_that_does_not_take_the_last_request_of_a_client_is_cut_off() -> None:
    shell = GatewayShell()
    shell.send(produce(1, acks=0))
    upstream = await shell.upstream()
    shell.connection.eof_received()
    await until(lambda: upstream.aborted)


async def test_a_client_that_goes_while_its_way_upstream_is_looked_for_leaves_nothing_behind() -> None:
    shell = GatewayShell()
    shell.connector.open.clear()
    shell.send(request(JOIN_GROUP, 1))
    await turns()
    shell.transport.abort()
    await turns()
    shell.connector.open.set()
    await turns()
    assert shell.connector.made == []


async def test_an_upstream_that_comes_though_it_was_called_off_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = GatewayShell()
    upstream = FakeUpstream(shell.forwarding.upstream)

    async def connect(*_: Any) -> FakeUpstream:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return upstream

    monkeypatch.setattr(shell.connector, "connect", connect)
    shell.send(request(JOIN_GROUP, 1))
    await turns()
    shell.transport.abort()
    await turns()
    assert upstream.aborted


async def test_a_client_that_goes_while_it_is_logged_in_again_upstream_leaves_nothing_behind() -> None:
    shell = GatewayShell()
    shell.connector.login_due_ms = NOW
    shell.connector.relogin = lambda exchange: exchange(99, b"login")  # type: ignore[assignment, return-value]
    shell.send(request(JOIN_GROUP, 1))
    upstream = await shell.upstream()
    upstream.answer(1)
    await until(lambda: upstream.written.endswith(b"login"))
    shell.transport.abort()
    await turns()
    assert upstream.closed
    assert shell.forwarding.upstream.task is None


# Silence


async def test_an_answer_that_is_due_keeps_no_connection_that_is_idle() -> None:
    shell = GatewayShell()
    shell.send(request(JOIN_GROUP, 1))
    upstream = await shell.upstream()
    assert not shell.connection.busy
    shell.connection.last_received = 0.0
    upstream.answer(1)
    assert shell.connection.last_received > 0.0, "who gets answers is not idle"


async def test_logins_upstream_keep_no_connection_that_is_idle() -> None:
    shell = GatewayShell()
    shell.connector.login_due_ms = NOW
    steps = 3

    async def relogin(exchange: Exchange) -> None:
        for number in range(steps):
            await exchange(number, b"login")

    shell.connector.relogin = relogin
    shell.send(request(JOIN_GROUP, 99))
    upstream = await shell.upstream()
    upstream.answer(99)
    shell.connection.last_received = 0.0
    for number in range(steps):
        await until(lambda: upstream.written.count(b"login") == number + 1)  # noqa: B023
        upstream.answer(number)
    await turns()
    assert shell.forwarding.upstream.task is None
    assert shell.connection.last_received == 0.0
    shell.send(request(JOIN_GROUP, 100))
    await turns()
    shell.connection.last_received = 0.0
    upstream.answer(100)
    assert shell.connection.last_received > 0.0


async def test_an_idle_connection_that_is_closed_ends_upstream_though_the_client_does_not_read() -> None:
    shell = GatewayShell(high_water=10)
    shell.transport.lingers = True
    shell.send(request(JOIN_GROUP, 1) + request(JOIN_GROUP, 2))
    upstream = await shell.upstream()
    upstream.answer(1, bytes(100))
    shell.connection.close()
    await turns()
    assert len(shell.opened) == 1
    assert upstream.closed
    assert not shell.connection.busy
    upstream.listener.upstream_data(answer(2))
    assert len(shell.transport.written) == len(answer(1, bytes(100)))


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_client_that_has_gone_in_the_middle_of_a_request_is_gone_here(run: Callable[..., None]) -> None:
    run(serve_half_a_request())


async def serve_half_a_request() -> None:
    shell = GatewayShell()
    opened = OpenListener(
        Endpoint("A", HOST, 0),
        backlog=5,
        lifetimes=Lifetimes(login_s=30),
        admission=admission(),
    )
    services = replace(shell._services(), opened=opened.opened, closed=opened.closed)
    await opened.open(lambda: shell._new_connection(services))
    (port,) = opened._ports
    with socket.create_connection((HOST, port)) as client:
        client.send(request(JOIN_GROUP, 1, bytes(1000))[:300])
        await until(lambda: bool(shell.connector.made))
    await until(lambda: not opened)
    assert shell.connector.made[0].closed
    await opened.drain(0)


def test_a_client_that_vanishes_without_a_word_is_noticed_by_the_system() -> None:
    with bind(Endpoint("A", HOST, 0)) as listening:
        listening.listen()
        with socket.create_connection(listening.getsockname()):
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


# The token ends


@pytest.mark.usefixtures("short_waits")
async def test_a_revoked_token_ends_both_sides_though_the_client_does_not_read() -> None:
    shell = logged_in(high_water=10)
    shell.transport.lingers = True
    shell.send(request(JOIN_GROUP, 1) + request(JOIN_GROUP, 2))
    upstream = await shell.upstream()
    upstream.answer(1, bytes(100))
    shell.sessions.token_changed(TOKEN_ID, None, None)
    assert upstream.aborted
    await until(lambda: not shell.opened)
    assert shell.transport.aborted


async def test_sessions_that_end_because_the_node_is_cut_off_end_on_both_sides() -> None:
    shell = logged_in()
    shell.send(request(JOIN_GROUP, 1))
    upstream = await shell.upstream()
    assert shell.sessions.end_if(lambda _: True) == 1
    assert upstream.aborted
    await until(lambda: not shell.opened)


async def test_a_revoked_token_leaves_a_client_that_reads_what_it_was_sent() -> None:
    shell = logged_in(high_water=1000)
    shell.transport.lingers = True
    shell.send(request(JOIN_GROUP, 1))
    (await shell.upstream()).answer(1, b"content")
    shell.sessions.token_changed(TOKEN_ID, None, None)
    shell.transport.read_by_client()
    await turns()
    assert shell.opened == []
    assert not shell.transport.aborted
    assert shell.transport.written.endswith(answer(1, b"content"))


@pytest.mark.usefixtures("short_waits")
async def test_a_token_that_is_revoked_after_the_closing_cuts_off_who_does_not_read() -> None:
    shell = logged_in(high_water=10)
    shell.transport.lingers = True
    shell.send(request(JOIN_GROUP, 1))
    (await shell.upstream()).answer(1, bytes(100))
    shell.connection.close()
    shell.sessions.token_changed(TOKEN_ID, None, None)
    await until(lambda: not shell.opened)
    assert shell.transport.aborted


async def test_a_client_that_begins_to_log_in_again_and_stops_there_ends_with_its_token() -> None:
    shell = logged_in()
    shell.send(request(JOIN_GROUP, 3))
    upstream = await shell.upstream()
    upstream.answer(3)
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    assert not shell.transport.closed
    shell.sessions.token_changed(TOKEN_ID, None, None)
    await turns()
    assert shell.opened == []
    assert upstream.aborted


async def test_a_session_that_has_lasted_too_long_ends_at_its_next_request() -> None:
    now = NOW
    shell = logged_in(now_ms=lambda: now)
    shell.send(request(JOIN_GROUP, 3))
    upstream = await shell.upstream()
    now = NOW + 60_001
    upstream.answer(3)
    await turns()
    assert not shell.transport.closed
    shell.send(request(JOIN_GROUP, 4))
    assert shell.transport.closed
    assert upstream.written == request(JOIN_GROUP, 3)


# The upstream or the node ends


async def test_a_client_ends_with_its_broker() -> None:
    shell = GatewayShell()
    shell.send(request(JOIN_GROUP, 1))
    (await shell.upstream()).listener.upstream_lost("it closed the connection")
    await turns()
    assert shell.opened == []


async def test_an_upstream_that_goes_while_it_is_logged_in_to_again_takes_the_client_with_it() -> None:
    shell = GatewayShell()
    shell.connector.login_due_ms = NOW
    shell.connector.relogin = lambda exchange: exchange(99, b"login")  # type: ignore[assignment, return-value]
    shell.send(request(JOIN_GROUP, 1))
    upstream = await shell.upstream()
    upstream.answer(1)
    await until(lambda: upstream.written.endswith(b"login"))
    upstream.listener.upstream_lost("it closed the connection")
    await turns()
    assert shell.opened == []
    assert shell.forwarding.upstream.task is None


async def test_what_comes_after_the_end_is_not_looked_at() -> None:
    shell = GatewayShell()
    shell.transport.lingers = True
    shell.send(request(JOIN_GROUP, 1))
    upstream = await shell.upstream()
    upstream.answer(1)
    shell.connection.close()
    shell.send(request(JOIN_GROUP, 2))
    upstream.listener.upstream_data(answer(2))
    upstream.listener.upstream_lost("it closed the connection")
    assert upstream.written == request(JOIN_GROUP, 1)
    assert shell.transport.written == answer(1)


async def test_draining_lets_an_answer_come_that_has_begun_to() -> None:
    shell = GatewayShell(high_water=50)
    shell.send(request(JOIN_GROUP, 1))
    upstream = await shell.upstream()
    whole = answer(1, bytes(1000))
    upstream.listener.upstream_data(whole[:200])
    shell.connection.finish()
    shell.transport.read_by_client()
    await turns()
    assert not shell.transport.closed
    upstream.listener.upstream_data(whole[200:])
    await turns()
    assert shell.transport.written == whole
    assert shell.opened == []
    assert upstream.closed


async def test_draining_takes_no_more_requests_and_lets_the_one_under_way_come() -> None:
    shell = GatewayShell()
    first = request(JOIN_GROUP, 1, bytes(100))
    shell.send(first[:50])
    upstream = await shell.upstream()
    shell.connection.finish()
    shell.send(first[50:] + request(JOIN_GROUP, 2))
    await turns()
    assert upstream.written == first
    upstream.answer(1)
    await turns()
    assert shell.transport.written == answer(1)
    assert shell.opened == []


async def test_draining_closes_at_once_what_waits_for_nothing() -> None:
    shell = GatewayShell()
    shell.connection.finish()
    assert shell.transport.closed


async def test_a_failed_login_whose_client_has_left_is_forgotten_after_its_delay() -> None:
    shell = GatewayShell(listener=SASL)
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    shell.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0wrong")
    shell.transport.abort()
    kept = weakref.ref(shell.connection)
    del shell
    await asyncio.sleep(2 * FAILED_LOGIN_DELAY_MS / 1000)
    gc.collect()
    assert kept() is None
