"""Strict audit: no client hears of a success before its event is durable, and none succeeds while nothing can be."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.audit import EventType, Outcome
from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.recorder import QueuedLog, Recorder
from kafka_dt.config import SecurityProtocol
from kafka_dt.identity.login.login import Identity, LoggedIn
from kafka_dt.server.audited.requests import AnsweredRequest, AuditedRequests, AuditedTokens, RequestAudit, Told
from kafka_dt.server.handlers import RequestContext, ServedApi, dispatcher
from kafka_dt.tokens import Principal
from kafka_dt_protocol import ApiKey, build
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.server.fake_transport import NOW, Shell, listener, turns
from tests.support.server.requests import StubLogin, answered, log_in, until
from tests.unit.identity.login.test_login import TOKEN_ID, token

SASL = listener(SecurityProtocol.SASL_PLAINTEXT)
SSL = listener(SecurityProtocol.SSL)
ALICE = Principal.user("alice")
BY_TOKEN = LoggedIn(b"done", Identity(ALICE, ScramMechanism.SHA_256, TOKEN_ID), 60_000, token())
MANY_TURNS = 1000


class HeldSink:
    """A sink that writes when the test lets it, or fails."""

    name = "the held sink"

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.open_gate = threading.Event()
        self.broken = False

    def open(self) -> None:
        pass

    def write(self, lines: Sequence[bytes]) -> None:
        if self.broken:
            raise SinkFailed("No space left on device")
        self.open_gate.wait()
        self.lines += lines

    def tend(self) -> float | None:
        return None

    def close(self) -> None:
        pass


class Strict:
    """A recorder in strict mode, and its sinks."""

    def __init__(self, *sinks: HeldSink) -> None:
        self.sinks = sinks
        self.log = QueuedLog(sinks, buffer_bytes=1024 * 1024, strict=True)
        self.recorder = Recorder(
            self.log, node="kdt1-0", instance="aa", now_ms=lambda: 7, durability=self.log.durability
        )

    async def break_all(self) -> None:
        """Let every sink fail, and notice it."""
        for sink in self.sinks:
            sink.broken = True
            sink.open_gate.set()
        self.recorder.record(EventType.KEYS_CHANGED, Outcome.OK)
        await until(lambda: self.log.durability is not None and not self.log.durability.possible)


@pytest.fixture
async def strict() -> AsyncIterator[Strict]:
    made = Strict(HeldSink(), HeldSink())
    made.log.start()
    yield made
    for sink in made.sinks:
        sink.open_gate.set()
    await made.log.close()


class Seen:
    """A handler that counts what it serves."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, context: RequestContext, _body: Any) -> Any:
        self.count += 1
        return build(context.response_type, error_code=ErrorCode.none, error_message=None, node_id=1, host="", port=1)


def audited(recorder: Recorder, seen: Seen) -> Any:
    """The handler of FindCoordinator, as if each answer were an event."""

    def told(_tokens: AuditedTokens, request: AnsweredRequest) -> Told:
        yield request.answer.error_code, {}

    api = ServedApi(ApiKey.FIND_COORDINATOR, seen, RequestAudit(EventType.TOKEN_CREATED, told))
    return dispatcher([api], audit=AuditedRequests(recorder, AuditedTokens(lambda _: None, lambda _: None)))


def ask(shell: Shell) -> None:
    shell.ask(ApiKey.FIND_COORDINATOR, 1, key="group", key_type=0)


@pytest.mark.parametrize("later", [True, False])
async def test_a_login_succeeds_when_one_sink_has_its_event(strict: Strict, later: bool) -> None:
    shell = Shell(listener=SASL, new_login=lambda _: StubLogin(BY_TOKEN, later), recorder=strict.recorder)
    log_in(shell)
    await turns(MANY_TURNS)
    assert len(shell.answers()) == 1, "the handshake's"
    strict.sinks[1].open_gate.set()
    (answer,) = await answered(shell, 1)
    assert (answer.error_code, answer.auth_bytes) == (ErrorCode.none, b"done")
    assert b'"type":"login"' in strict.sinks[1].lines[0]
    assert strict.sinks[0].lines == []


async def test_a_session_ends_with_its_token_however_long_its_event_takes(strict: Strict) -> None:
    now = [NOW]
    login = StubLogin(BY_TOKEN, later=False)
    shell = Shell(listener=SASL, new_login=lambda _: login, recorder=strict.recorder, now_ms=lambda: now[0])
    log_in(shell)
    await turns(MANY_TURNS)
    shell.answers()
    now[0] += 25_000
    strict.sinks[0].open_gate.set()
    (answer,) = await answered(shell, 1)
    assert answer.session_lifetime == timedelta(seconds=35)
    assert shell.connection.machine.session.end_ms == NOW + 60_000


async def test_a_token_may_get_an_earlier_end_while_a_login_waits_for_its_event(strict: Strict) -> None:
    shell = Shell(listener=SASL, new_login=lambda _: StubLogin(BY_TOKEN, later=False), recorder=strict.recorder)
    log_in(shell)
    await turns(MANY_TURNS)
    shell.answers()
    shell.connection.end_session_at(NOW + 1_000)
    strict.sinks[0].open_gate.set()
    await answered(shell, 1)
    assert shell.connection.machine.session.end_ms == NOW + 1_000


async def test_a_session_that_is_renewed_by_another_login_ends_as_that_one_says(strict: Strict) -> None:
    strict.sinks[0].open_gate.set()
    shell = Shell(listener=SASL, new_login=lambda _: StubLogin(BY_TOKEN, later=False), recorder=strict.recorder)
    log_in(shell)
    await answered(shell, 2)
    shell.connection.end_session_at(NOW + 1_000)
    log_in(shell)
    await answered(shell, 2)
    assert shell.connection.machine.session.end_ms == NOW + 60_000


async def test_a_login_is_broken_off_while_no_sink_works(strict: Strict, caplog: pytest.LogCaptureFixture) -> None:
    await strict.break_all()
    shell = Shell(listener=SASL, new_login=lambda _: StubLogin(BY_TOKEN, later=False), recorder=strict.recorder)
    log_in(shell)
    await until(lambda: not shell.opened)
    assert len(shell.answers()) == 1, "no answer: a client would take a refusal for final"
    assert "audit events cannot be written" in caplog.text


async def test_a_login_that_waits_is_broken_off_when_the_last_sink_fails(strict: Strict) -> None:
    shell = Shell(listener=SASL, new_login=lambda _: StubLogin(BY_TOKEN, later=False), recorder=strict.recorder)
    for sink in strict.sinks:
        sink.broken = True
    log_in(shell)
    await until(lambda: not shell.opened)
    assert len(shell.answers()) == 1


async def test_a_revocation_finds_the_session_of_a_login_that_waits(strict: Strict) -> None:
    shell = Shell(listener=SASL, new_login=lambda _: StubLogin(BY_TOKEN, later=False), recorder=strict.recorder)
    log_in(shell)
    await turns()
    shell.sessions.token_changed(TOKEN_ID, token(), None)
    await until(lambda: not shell.opened)
    strict.sinks[0].open_gate.set()
    await turns(MANY_TURNS)
    assert len(shell.answers()) == 1


async def test_an_answer_waits_for_its_event(strict: Strict) -> None:
    seen = Seen()
    shell = Shell(audited(strict.recorder, seen), recorder=strict.recorder)
    ask(shell)
    await until(lambda: seen.count == 1)
    await turns(MANY_TURNS)
    assert shell.answers() == []
    strict.sinks[0].open_gate.set()
    (answer,) = await answered(shell, 1)
    assert answer.error_code is ErrorCode.none


async def test_a_request_is_refused_before_it_changes_anything_while_no_sink_works(strict: Strict) -> None:
    await strict.break_all()
    seen = Seen()
    shell = Shell(audited(strict.recorder, seen), recorder=strict.recorder)
    ask(shell)
    (answer,) = await answered(shell, 1)
    assert (answer.error_code, seen.count) == (ErrorCode.request_timed_out, 0)


async def test_a_change_whose_event_cannot_be_written_is_not_acknowledged(strict: Strict) -> None:
    seen = Seen()
    shell = Shell(audited(strict.recorder, seen), recorder=strict.recorder)
    for sink in strict.sinks:
        sink.broken = True
    ask(shell)
    (answer,) = await answered(shell, 1)
    assert (answer.error_code, seen.count) == (ErrorCode.request_timed_out, 1)


async def test_a_client_with_a_certificate_is_served_when_its_login_is_durable(strict: Strict) -> None:
    seen = Seen()
    shell = Shell(audited(strict.recorder, seen), listener=SSL, certified=lambda _: ALICE, recorder=strict.recorder)
    ask(shell)
    await turns(MANY_TURNS)
    assert seen.count == 0
    strict.sinks[0].open_gate.set()
    await answered(shell, 1)
    assert seen.count == 1


async def test_a_client_with_a_certificate_is_not_served_while_no_sink_works(strict: Strict) -> None:
    await strict.break_all()
    shell = Shell(listener=SSL, certified=lambda _: ALICE, recorder=strict.recorder)
    ask(shell)
    await until(lambda: not shell.opened)


async def test_a_sink_that_works_again_lets_clients_in(strict: Strict) -> None:
    await strict.break_all()
    for sink in strict.sinks:
        sink.broken = False
    await until(lambda: strict.log.durability is not None and strict.log.durability.possible)
    shell = Shell(listener=SASL, new_login=lambda _: StubLogin(BY_TOKEN, later=False), recorder=strict.recorder)
    log_in(shell)
    assert [answer.error_code for answer in await answered(shell, 2)] == [ErrorCode.none] * 2
