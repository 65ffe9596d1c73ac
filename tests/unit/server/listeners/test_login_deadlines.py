"""How long a login may take, on a clock that the test moves."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kafka_dt.config import SecurityProtocol
from kafka_dt.identity.login.login import Identity, LoggedIn
from kafka_dt.server.listeners.deadlines import LoginDeadlines
from kafka_dt.tokens import Principal
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.sasl import PLAIN
from tests.support.server.fake_transport import NOW, FakeLogin, Shell, listener, turns, unused

SASL = listener(SecurityProtocol.SASL_PLAINTEXT)
ALICE = Identity(Principal.user("alice"), PLAIN)


@dataclass
class Clock:
    ms: int = NOW

    def __call__(self) -> int:
        return self.ms


@dataclass
class World:
    now_s: float = 0
    overdue: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deadlines = LoginDeadlines(30, lambda: self.now_s)

    def login(self, name: str) -> Callable[[], None]:
        def overdue() -> None:
            self.overdue.append(name)

        self.deadlines.begin(overdue)
        return overdue


def test_logins_are_overdue_in_the_order_in_which_they_began() -> None:
    world = World()
    world.login("first")
    world.now_s = 10
    world.login("second")
    world.now_s = 29.9
    world.deadlines.sweep()
    assert world.overdue == []
    world.now_s = 30
    world.deadlines.sweep()
    assert world.overdue == ["first"]
    world.now_s = 100
    world.deadlines.sweep()
    world.deadlines.sweep()
    assert world.overdue == ["first", "second"]
    assert len(world.deadlines) == 0


def test_a_login_that_has_ended_is_not_overdue_and_one_that_begins_anew_has_its_time_again() -> None:
    world = World()
    ended, again = world.login("ended"), world.login("again")
    world.deadlines.forget(ended)
    world.deadlines.forget(ended)
    world.now_s = 20
    world.deadlines.begin(again)
    world.now_s = 49
    world.deadlines.sweep()
    assert world.overdue == []
    world.now_s = 50
    world.deadlines.sweep()
    assert world.overdue == ["again"]


async def test_a_client_that_has_not_logged_in_is_closed_with_a_line_however_much_it_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    shell = Shell(unused, SASL)
    shell.ask(ApiKey.API_VERSIONS, 0)
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    shell.send(b"\0")
    shell.connection.login_overdue()
    await turns()
    assert shell.transport.aborted
    assert "the login took longer than 30 s (kafka.dt.login.timeout.ms)" in caplog.text


async def test_who_need_not_log_in_is_never_overdue() -> None:
    shell = Shell(unused)
    shell.connection.login_overdue()
    assert not shell.transport.closed


class Welcoming(FakeLogin):
    """A login that succeeds with its first message, for a minute."""

    identity = ALICE

    def evaluate(self, message: bytes) -> LoggedIn:
        return LoggedIn(message, ALICE, 60_000)


def logged_in(clock: Clock) -> Shell:
    shell = Shell(unused, SASL, lambda _: Welcoming(), now_ms=clock)
    log_in(shell)
    return shell


def log_in(shell: Shell) -> None:
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    shell.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"hello")


async def test_who_has_logged_in_is_not_overdue_and_nor_is_a_session_that_logged_in_again() -> None:
    clock = Clock()
    shell = logged_in(clock)
    shell.connection.login_overdue()
    clock.ms += 2_000
    log_in(shell)
    clock.ms += 3_600_000
    shell.deadlines.sweep()
    assert not shell.transport.closed


async def test_a_reauthentication_that_is_not_completed_ends_the_session(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = Clock()
    shell = logged_in(clock)
    clock.ms += 2_000
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    clock.ms += 29_999
    shell.send(b"\0")
    shell.deadlines.sweep()
    assert not shell.transport.closed
    clock.ms += 1
    shell.deadlines.sweep()
    assert shell.transport.aborted
    assert "the re-authentication took longer than 30 s" in caplog.text


async def test_a_client_that_has_gone_during_a_reauthentication_is_forgotten() -> None:
    clock = Clock()
    shell = logged_in(clock)
    clock.ms += 2_000
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    assert len(shell.deadlines) == 1
    shell.connection.abort()
    await turns()
    assert len(shell.deadlines) == 0
