"""How one connection ends: its client goes, its token or session ends, or the node drains."""

from __future__ import annotations

import logging

import pytest

from kafka_dt.identity.login.login import Identity, LoggedIn
from kafka_dt.tokens import Principal
from kafka_dt_protocol.sasl import PLAIN
from tests.support.server.fake_transport import NOW, Shell, turns
from tests.support.server.requests import SASL, Gate, StubLogin, at_once, find, log_in, until


@pytest.mark.parametrize("later", [True, False])
async def test_a_token_login_hangs_on_its_token_until_the_connection_ends(later: bool) -> None:
    identity = Identity(Principal.user("alice"), PLAIN, "a token")
    gate = Gate()
    shell = Shell(gate, SASL, lambda _: StubLogin(LoggedIn(b"", identity, 60_000), later))
    log_in(shell)
    shell.send(find(shell, "group"))
    await until(lambda: bool(gate.asked))
    assert gate.asked[0][0].token_login
    assert gate.asked[0][0].principal == Principal.user("alice")
    shell.sessions.token_changed("a token", None, None)
    await until(lambda: not shell.opened)


async def test_a_login_that_completes_when_the_client_has_gone_leaves_nothing_behind() -> None:
    identity = Identity(Principal.user("alice"), PLAIN, "a token")
    shell = Shell(at_once, SASL, lambda _: StubLogin(LoggedIn(b"", identity, 60_000), later=True))
    log_in(shell)
    shell.transport.abort()
    await turns()
    assert shell.sessions._by_token == {}


async def test_a_session_that_is_cut_short_ends_at_its_next_request() -> None:
    now = NOW
    identity = Identity(Principal.user("alice"), PLAIN, "a token")
    shell = Shell(at_once, SASL, lambda _: StubLogin(LoggedIn(b"", identity, 60_000), later=False), now_ms=lambda: now)
    log_in(shell)
    shell.connection.end_session_at(NOW + 1000)
    now = NOW + 1000
    shell.send(find(shell, "in time"))
    await turns()
    assert len(shell.answers()) == 3
    now += 1
    shell.send(find(shell, "too late"))
    await until(lambda: not shell.opened)
    assert shell.answers() == []


@pytest.mark.parametrize("set_by_ms", [-3_600_000, 3_600_000])
async def test_a_session_lives_as_long_as_it_was_told_also_if_the_clock_is_set(set_by_ms: int) -> None:
    wall, steady = NOW, 0
    identity = Identity(Principal.user("alice"), PLAIN, "a token")
    shell = Shell(
        at_once,
        SASL,
        lambda _: StubLogin(LoggedIn(b"", identity, 60_000), later=False),
        now_ms=lambda: wall,
        steady_ms=lambda: steady,
    )
    log_in(shell)
    wall += set_by_ms
    steady += 60_000
    shell.send(find(shell, "in time"))
    await turns()
    assert len(shell.answers()) == 3
    steady += 1
    shell.send(find(shell, "too late"))
    await until(lambda: not shell.opened)
    assert shell.answers() == []


async def test_a_request_whose_client_has_hung_up_is_completed() -> None:
    gate = Gate()
    shell = Shell(gate)
    shell.send(find(shell, "first") + find(shell, "second"))
    await turns()
    shell.transport.abort()
    await turns()
    assert shell.opened == []
    gate.let_through(2)
    await until(lambda: gate.served == 1)
    await turns()
    assert [body.key for _, body in gate.asked] == ["first"]


async def test_a_client_that_stops_sending_gets_its_answer_before_the_end() -> None:
    gate = Gate()
    shell = Shell(gate)
    shell.send(find(shell, "group"))
    assert shell.connection.eof_received()
    await turns()
    assert not shell.transport.closed
    gate.let_through()
    await until(lambda: not shell.opened)
    assert len(shell.answers()) == 1


async def test_a_client_that_stops_inside_a_frame_is_let_go_without_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shell = Shell(at_once)
    shell.send(b"\0\0\0\x10half")
    shell.connection.eof_received()
    await until(lambda: not shell.opened)
    assert caplog.records == []


async def test_finishing_answers_what_is_under_way_and_nothing_after_it() -> None:
    gate = Gate()
    shell = Shell(gate)
    shell.send(find(shell, "first") + find(shell, "second"))
    await turns()
    shell.connection.finish()
    assert not shell.transport.closed
    gate.let_through(2)
    await until(lambda: not shell.opened)
    assert [answer.error_message for answer in shell.answers()] == ["first"]


async def test_finishing_closes_an_idle_connection_at_once() -> None:
    shell = Shell(at_once)
    shell.connection.finish()
    assert shell.transport.closed


async def test_a_connection_that_waits_out_a_failed_login_is_finished_with_its_answer() -> None:
    shell = Shell(at_once, SASL)
    log_in(shell, b"\0alice\0wrong")
    shell.connection.finish()
    await until(lambda: not shell.opened)
    assert [answer.error_code.value for answer in shell.answers()] == [0, 58]
