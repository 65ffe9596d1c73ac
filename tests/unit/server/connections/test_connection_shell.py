"""The server's end of one connection, on a transport that the test holds in its hand."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import uvloop
from kio.schema.errors import ErrorCode

from kafka_dt.audit import RefusalReason
from kafka_dt.config import Endpoint, SecurityProtocol
from kafka_dt.identity.login.login import Identity, LoggedIn, LoginOutcome, LoginRefused
from kafka_dt.server.connections.connection import EVENTS_IN_A_ROW, ClientConnection
from kafka_dt.server.connections.intake import READ_AHEAD_BYTES
from kafka_dt.server.connections.preparations import AFTER_S
from kafka_dt.server.handlers import RequestContext
from kafka_dt.server.listeners.rates import FailedLogins
from kafka_dt.tokens import ANONYMOUS, Principal
from kafka_dt_protocol import APIS, ApiKey, MalformedMessage, build, frame, refused_coordinators, response_type
from kafka_dt_protocol.sasl import PLAIN, Challenge, ScramMechanism
from tests.support.server.fake_transport import NOW, FakeLogin, Shell, listener, turns

FIND = ApiKey.FIND_COORDINATOR
SASL = listener(SecurityProtocol.SASL_PLAINTEXT)
TIMEOUT_S = 3


class Gate:
    """A handler whose requests wait until they are let through; refuses every coordinator under the key's name."""

    def __init__(self) -> None:
        self.asked: list[tuple[RequestContext, Any]] = []
        self.served = 0
        self._open = asyncio.Semaphore(0)

    async def __call__(self, context: RequestContext, body: Any) -> Any:
        self.asked.append((context, body))
        await self._open.acquire()
        self.served += 1
        return refused_coordinators(response_type(context.header), body, lambda key: (ErrorCode.invalid_request, key))

    def let_through(self, count: int = 1) -> None:
        for _ in range(count):
            self._open.release()


async def at_once(context: RequestContext, body: Any) -> Any:
    return refused_coordinators(response_type(context.header), body, lambda key: (ErrorCode.invalid_request, key))


def find(shell: Shell, key: str) -> bytes:
    return shell.request(FIND, 3, key=key, key_type=0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await turns(1)


async def answered(shell: Shell, count: int) -> list[Any]:
    answers: list[Any] = []
    async with asyncio.timeout(TIMEOUT_S):
        while len(answers) < count:
            await turns(1)
            answers += shell.answers()
    return answers


# Requests


async def test_pipelined_requests_are_served_one_by_one_and_answered_in_order() -> None:
    gate = Gate()
    shell = Shell(gate)
    shell.send(b"".join(find(shell, str(number)) for number in range(5)))
    await turns()
    assert len(gate.asked) == 1
    gate.let_through(5)
    await until(lambda: gate.served == 5)
    await turns()
    assert [answer.error_message for answer in shell.answers()] == ["0", "1", "2", "3", "4"]


async def test_a_request_knows_who_asks_and_where_the_client_has_connected_to() -> None:
    gate = Gate()
    shell = Shell(gate)
    shell.send(find(shell, "group"))
    await turns()
    context, body = gate.asked[0]
    assert (context.principal, context.token_login) == (ANONYMOUS, False)
    assert context.security_protocol is SecurityProtocol.PLAINTEXT
    assert (context.endpoint.host, context.endpoint.port) == ("192.0.2.2", 9092)
    assert body.key == "group"


async def test_an_advertised_address_is_told_as_it_is() -> None:
    gate = Gate()
    shell = Shell(gate, listener(advertised=Endpoint("PLAINTEXT", "tokens.example", 443)))
    shell.send(find(shell, "group"))
    await turns()
    assert gate.asked[0][0].endpoint == Endpoint("PLAINTEXT", "tokens.example", 443)


async def test_an_advertised_address_is_told_instead_and_its_port_may_be_the_bound_one() -> None:
    gate = Gate()
    shell = Shell(gate, listener(advertised=Endpoint("PLAINTEXT", "tokens.example", 0)))
    shell.send(find(shell, "group"))
    await turns()
    assert (gate.asked[0][0].endpoint.host, gate.asked[0][0].endpoint.port) == ("tokens.example", 9092)


async def test_bytes_one_by_one_make_a_request() -> None:
    shell = Shell(at_once)
    for byte in find(shell, "group"):
        shell.send(bytes([byte]))
    await turns()
    assert [answer.error_message for answer in shell.answers()] == ["group"]


# Flow control


async def test_reading_stops_while_a_request_is_under_way_and_much_waits_behind_it() -> None:
    gate = Gate()
    shell = Shell(gate, high_water=10**9)
    many = b"".join(find(shell, "x" * 1000) for _ in range(100))
    shell.send(many[:50_000])
    assert shell.transport.reading
    shell.send(many[50_000:])
    assert not shell.transport.reading
    gate.let_through(100)
    await until(lambda: gate.served == 100)
    await turns()
    assert len(shell.answers()) == 100
    assert shell.transport.reading


async def test_a_large_request_is_read_to_its_end() -> None:
    shell = Shell(at_once)
    large = find(shell, "x" * 30_000)
    whole = shell.request(FIND, 4, key_type=0, coordinator_keys=("y" * 30_000,) * 10)
    shell.send(large + whole[:-1])
    assert len(whole) > READ_AHEAD_BYTES
    await turns()
    assert shell.transport.reading
    assert len(shell.answers()) == 1


async def test_a_client_that_does_not_read_its_answers_is_not_served_further() -> None:
    gate = Gate()
    gate.let_through(1000)
    shell = Shell(gate, high_water=10_000)
    requests = b"".join(find(shell, "x" * 1000) for _ in range(200))
    shell.send(requests)
    await until(lambda: not shell.transport.reading)
    await turns(50)
    assert gate.served < 20
    assert len(shell.transport.written) < 20_000
    while gate.served < 200:
        before = gate.served
        shell.transport.read_by_client()
        await until(lambda: gate.served > before)  # noqa: B023 - awaited at once
        await turns(50)
    shell.transport.read_by_client()
    await turns()
    assert len(shell.answers()) == 200
    assert shell.transport.reading


@pytest.mark.parametrize("api", [ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE])
async def test_what_is_answered_without_a_handler_leaves_others_their_turn_too(api: ApiKey) -> None:
    shell = Shell(at_once, high_water=10**9)
    count = 8_000
    shell.send(b"".join(shell.request(api, 0, mechanism="PLAIN") for _ in range(count)))
    answered = len(shell.answers())
    assert answered <= EVENTS_IN_A_ROW
    assert not shell.transport.reading
    others = 0
    while answered < count:
        await asyncio.sleep(0)
        others += 1
        answered += len(shell.answers())
    assert others >= count // EVENTS_IN_A_ROW / 2
    await turns()
    assert shell.transport.reading


async def test_a_client_that_floods_and_does_not_read_makes_no_answers_pile_up() -> None:
    shell = Shell(at_once, high_water=10_000)
    versions = b"".join(shell.request(ApiKey.API_VERSIONS, 0) for _ in range(8_000))
    shell.send(versions)
    await turns(500)
    assert len(shell.transport.written) < 10_000 + EVENTS_IN_A_ROW * 200
    assert not shell.transport.reading


# Unforeseen errors


async def test_what_nobody_foresaw_is_answered_without_detail_and_the_connection_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def failing(context: RequestContext, body: Any) -> Any:
        if body.key == "bad":
            raise RuntimeError("the detail")
        return await at_once(context, body)

    shell = Shell(failing)
    shell.send(find(shell, "bad") + find(shell, "good"))
    bad, good = await answered(shell, 2)
    assert bad.error_code is ErrorCode.unknown_server_error
    assert "detail" not in str(bad.error_message)
    assert good.error_message == "good"
    assert "the detail" in caplog.text


async def test_a_request_that_makes_no_sense_closes_the_connection_after_the_good_ones_are_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def choosy(context: RequestContext, body: Any) -> Any:
        if body.key == "bad":
            raise MalformedMessage("a code of 0")
        return await at_once(context, body)

    caplog.set_level(logging.INFO)
    shell = Shell(choosy)
    shell.send(find(shell, "good") + find(shell, "bad") + find(shell, "too late"))
    await until(lambda: shell.transport.closed)
    assert [answer.error_message for answer in shell.answers()] == ["good"]
    assert "a code of 0" in caplog.text


async def test_an_answer_that_cannot_be_written_is_one_of_them() -> None:
    async def wrong(context: RequestContext, _body: Any) -> Any:
        return build(
            response_type(context.header), error_code=ErrorCode.none, error_message="", node_id=2**40, host="", port=0
        )

    shell = Shell(wrong)
    shell.send(find(shell, "group"))
    await until(lambda: bool(shell.transport.written))
    assert shell.answers()[0].error_code is ErrorCode.unknown_server_error


@dataclass(eq=False)
class StubLogin(FakeLogin):
    """Gives one outcome, or raises it, at once or later."""

    outcome: LoginOutcome | Exception
    later: bool
    foregone: LoginRefused | None = None

    def evaluate(self, _message: bytes) -> Any:
        return self._given_later() if self.later else self._given()

    async def _given_later(self) -> LoginOutcome:
        await asyncio.sleep(0)
        return self._given()

    def _given(self) -> LoginOutcome:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        if isinstance(self.outcome, LoggedIn):
            self.identity = self.outcome.identity
        return self.outcome


def log_in(shell: Shell, message: bytes = b"\0alice\0alice's") -> None:
    shell.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    shell.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=message)


@pytest.mark.parametrize("later", [True, False])
async def test_a_login_that_fails_for_a_reason_of_our_own_closes_that_connection_alone(
    later: bool, caplog: pytest.LogCaptureFixture
) -> None:
    shell = Shell(at_once, SASL, lambda _: StubLogin(RuntimeError("the detail"), later))
    log_in(shell)
    await until(lambda: not shell.opened)
    assert [answer.error_code for answer in shell.answers()] == [ErrorCode.none], "no refusal, which would be final"
    assert "the detail" in caplog.text


async def test_a_clock_that_fails_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> int:
        raise RuntimeError("no time")

    shell = Shell(at_once, now_ms=broken)
    shell.send(find(shell, "group"))
    await turns()
    assert shell.transport.aborted
    assert "no time" in caplog.text


async def test_a_refusal_that_fails_as_well_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    def failing(*_: object) -> Any:
        raise RuntimeError("no refusal either")

    shell = Shell(failing, apis=APIS.having(replace(APIS[FIND], refuse=failing)))
    shell.send(find(shell, "group"))
    await until(lambda: not shell.opened)
    assert shell.transport.aborted
    assert "no refusal either" in caplog.text


# Logins


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


async def test_what_was_prepared_for_a_login_ends_with_the_connection() -> None:
    ended: list[str] = []

    class PreparingLogin(StubLogin):
        def prepare(self) -> None:
            ended.append("prepared")

        def abandon(self) -> None:
            ended.append("abandoned")

    shell = Shell(at_once, SASL, lambda _: PreparingLogin(Challenge(b"and then?"), later=False))
    log_in(shell)
    assert shell.answers()[-1].auth_bytes == b"and then?"
    assert ended == [], "the challenge waits for nothing"
    await until(lambda: ended == ["prepared"])
    shell.connection.abort()
    await turns()
    assert ended == ["prepared", "abandoned"]


@pytest.mark.parametrize("gone", [True, False], ids=["the client has gone", "the proof is here"])
async def test_nothing_is_prepared_too_late(*, gone: bool) -> None:
    done: list[str] = []

    class PreparingLogin(StubLogin):
        def prepare(self) -> None:
            done.append("prepared")

        def abandon(self) -> None:
            done.append("abandoned")

    shell = Shell(at_once, SASL, lambda _: PreparingLogin(Challenge(b"and then?"), later=False))
    log_in(shell)
    if gone:
        shell.connection.abort()
    else:
        shell.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"proof")
        await until(lambda: done == ["prepared"])
    await asyncio.sleep(3 * AFTER_S)
    assert done == (["abandoned"] if gone else ["prepared"]), "once at most"


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_challenge_is_with_the_client_before_anything_is_looked_for(run: Callable[..., None]) -> None:
    """On real sockets: uvloop does not write at once."""
    received: list[bytes] = []

    class PreparingLogin(StubLogin):
        def prepare(self) -> None:
            try:
                received.append(client.recv(65_536, socket.MSG_DONTWAIT))
            except BlockingIOError:
                received.append(b"nothing")

    async def log_in_by_socket() -> None:
        shell = Shell(at_once, SASL, lambda _: PreparingLogin(Challenge(b"and then?"), later=False))
        services = shell.connection.services
        server = await asyncio.get_running_loop().create_server(lambda: ClientConnection(services), "127.0.0.1", 0)
        async with server:
            client.connect(server.sockets[0].getsockname())
            client.sendall(shell.request(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN"))
            client.sendall(shell.request(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"first"))
            await until(lambda: bool(received))
            client.close()

    with socket.socket() as client:
        run(log_in_by_socket())
    assert b"and then?" in received[0]


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


# The end


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


@pytest.mark.parametrize(
    "hostile",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40),
        frame(b""),
        frame(b"\0"),
        frame(struct.pack(">hhih", 999, 0, 1, -1)),
        frame(struct.pack(">hhih", 3, 99, 1, -1)),
        frame(struct.pack(">hhih", 10, 3, 1, -1) + b"\0" + b"\xff\xff\xff\xff\x0f"),
    ],
)
async def test_bytes_that_are_no_request_close_with_one_line(hostile: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shell = Shell(at_once)
    shell.send(find(shell, "good"))
    await turns()
    shell.send(hostile)
    await until(lambda: not shell.opened)
    assert [answer.error_message for answer in shell.answers()] == ["good"]
    (line,) = caplog.records
    assert line.levelno == logging.INFO
    assert "192.0.2.1:50000" in line.getMessage()
    assert "\n" not in line.getMessage()
