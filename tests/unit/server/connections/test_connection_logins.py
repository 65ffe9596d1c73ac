"""The logins of one connection: how many steps they take, and when a refusal is told."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.audit import RefusalReason
from kafka_dt.identity.login.login import Identity, LoggedIn, LoginOutcome, LoginRefused
from kafka_dt.server.listeners.rates import FailedLogins
from kafka_dt.tokens import Principal
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.sasl import PLAIN, Challenge, ScramMechanism
from tests.support.server.fake_transport import Shell, turns
from tests.support.server.requests import FIND, SASL, StubLogin, answered, at_once, log_in, until


@pytest.mark.parametrize("later", [True, False])
async def test_a_login_takes_as_many_steps_as_its_mechanism(later: bool) -> None:
    shell = Shell(at_once, SASL, lambda _: StubLogin(Challenge(b"and then?"), later))
    log_in(shell)
    shell.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"more")
    _, first, second = await answered(shell, 3)
    assert (first.error_code, first.auth_bytes) == (ErrorCode.none, b"and then?")
    assert second.auth_bytes == b"and then?"


async def test_a_login_that_fails_is_answered_and_closed_after_the_delay(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shell = Shell(at_once, SASL)
    log_in(shell, b"\0alice\0guess")
    handshake = len(shell.transport.written)
    await turns()
    shell.send(b"what comes after it is not looked at" * 10_000)
    assert len(shell.transport.written) == handshake
    assert not shell.transport.closed
    assert shell.transport.reading
    await until(lambda: not shell.opened)
    assert [answer.error_code.value for answer in shell.answers()] == [0, 58]
    (line,) = caplog.records
    assert "failed authentication" in line.getMessage()
    assert "guess" not in line.getMessage()


@pytest.mark.parametrize("later", [True, False])
async def test_a_login_that_cannot_be_decided_is_closed_after_the_delay_without_an_answer(
    later: bool, caplog: pytest.LogCaptureFixture
) -> None:
    undecided = LoginRefused("for no client", "why", "an id", ScramMechanism.SHA_256, RefusalReason.UNAVAILABLE)
    shell = Shell(at_once, SASL, lambda _: StubLogin(undecided, later))
    log_in(shell)
    await turns()
    assert not shell.transport.closed
    await until(lambda: not shell.opened)
    assert [answer.error_code.value for answer in shell.answers()] == [0]
    (line,) = caplog.messages
    assert "a login that cannot be decided now, 'an id' by SCRAM-SHA-256: why" in line


async def test_a_refusal_is_held_back_from_its_message_on_and_not_from_its_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decided = asyncio.Event()
    held_back: list[float] = []

    class LateLogin(StubLogin):
        async def _given_later(self) -> LoginOutcome:
            await decided.wait()
            return self._given()

    def delay_s(_: FailedLogins, _address: str, took_s: float) -> float:
        held_back.append(took_s)
        return 0.0

    monkeypatch.setattr(FailedLogins, "delay_s", delay_s)
    shell = Shell(at_once, SASL, lambda _: LateLogin(LoginRefused("no", "why", "alice", PLAIN), later=True))
    log_in(shell)
    shell.connection.authenticator._asked -= 7  # as if seven seconds passed
    decided.set()
    await until(lambda: not shell.opened)
    (took_s,) = held_back
    assert took_s >= 7


@pytest.mark.parametrize(
    ("requests", "codes"),
    [
        ([(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "GSSAPI"})], [33]),
        ([(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"}), (ApiKey.API_VERSIONS, 0, {})], [0, 34]),
        ([(FIND, 3, {"key": "group", "key_type": 0})], []),
    ],
)
async def test_every_refusal_before_the_login_waits_for_the_delay(
    requests: list[tuple[ApiKey, int, dict[str, Any]]], codes: list[int]
) -> None:
    shell = Shell(at_once, SASL)
    for api, version, values in requests[:-1]:
        shell.ask(api, version, **values)
    before = len(shell.transport.written)
    api, version, values = requests[-1]
    shell.ask(api, version, **values)
    assert len(shell.transport.written) == before
    assert not shell.transport.closed
    await until(lambda: not shell.opened)
    assert [answer.error_code.value for answer in shell.answers()] == codes


async def software_said_by(caplog: pytest.LogCaptureFixture, version: str) -> str:
    caplog.set_level(logging.INFO)
    shell = Shell(at_once, SASL)
    software = {"client_software_name": "librdkafka", "client_software_version": version}
    shell.ask(ApiKey.API_VERSIONS, 3, **software)
    log_in(shell, b"\0alice\0wrong")
    await until(lambda: not shell.opened)
    return caplog.messages[-1]


async def test_the_line_about_a_failed_login_says_which_library_it_was(caplog: pytest.LogCaptureFixture) -> None:
    line = await software_said_by(caplog, "2.8.0")
    assert line.startswith("Closing the connection of 192.0.2.1:50000 (librdkafka 2.8.0) on listener SASL_PLAINTEXT: ")


async def test_a_library_with_a_long_name_makes_no_long_line(caplog: pytest.LogCaptureFixture) -> None:
    assert len(await software_said_by(caplog, "9" * 30_000)) < 400


async def test_the_line_about_a_revoked_token_says_which_library_used_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    identity = Identity(Principal.user("alice"), PLAIN, "a token")
    shell = Shell(at_once, SASL, lambda _: StubLogin(LoggedIn(b"", identity, 60_000), later=False))
    shell.ask(ApiKey.API_VERSIONS, 3, client_software_name="sarama", client_software_version="1.46.0")
    log_in(shell)
    shell.sessions.token_changed("a token", None, None)
    await until(lambda: not shell.opened)
    assert "192.0.2.1:50000 (sarama 1.46.0): its token was revoked or has expired" in caplog.text
