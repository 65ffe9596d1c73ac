"""What audit events say of connections and their logins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.audit import RefusalReason
from kafka_dt.config import SecurityProtocol
from kafka_dt.identity.certificates import CertificateUnusable
from kafka_dt.identity.login.login import Identity, LoggedIn, LoginOutcome, LoginRefused
from kafka_dt.server.audited.connection import LONGEST_MECHANISM, peer_address
from kafka_dt.server.handlers import RequestContext
from kafka_dt.tokens import ANONYMOUS, Principal
from kafka_dt_protocol import ApiKey, build, response_type
from kafka_dt_protocol.sasl import OAUTHBEARER, PLAIN, Challenge, ScramMechanism
from tests.support.nodes.audit import INSTANCE, RecordedEvents
from tests.support.server.fake_transport import Shell, listener, turns
from tests.support.server.requests import StubLogin, find, log_in, until
from tests.unit.identity.login.test_login import TOKEN_ID, token

SASL = listener(SecurityProtocol.SASL_PLAINTEXT)
SSL = listener(SecurityProtocol.SSL)
ALICE = Principal.user("alice")
CLIENT = {
    "listener": "SASL_PLAINTEXT",
    "client_id": "test",
    "client_address": "192.0.2.1",
    "client_port": 50000,
    "connection": f"{INSTANCE}-c1",
}
BY_TOKEN = Identity(Principal("Group", "ops"), ScramMechanism.SHA_256, TOKEN_ID)


class Seen:
    """A handler that notes who asks."""

    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []

    async def __call__(self, context: RequestContext, body: Any) -> Any:
        self.contexts.append(context)
        return build(
            response_type(context.header),
            error_code=ErrorCode.invalid_request,
            error_message=body.key,
            node_id=-1,
            host="",
            port=-1,
        )


@pytest.fixture
def log() -> RecordedEvents:
    return RecordedEvents()


def shell(log: RecordedEvents, *outcomes: LoginOutcome, later: bool = False, **more: Any) -> Shell:
    """A connection that logs in with outcomes of the test's, or with PLAIN."""
    new_login: Callable[[Any], Any] | None = None
    if outcomes:
        (outcome,) = outcomes

        def new_login(_: Any) -> Any:
            return StubLogin(outcome, later)

    return Shell(listener=more.pop("listener", SASL), new_login=new_login, recorder=log.recorder, **more)


async def test_a_login_of_a_user(log: RecordedEvents) -> None:
    connection = shell(log)
    connection.ask(ApiKey.API_VERSIONS, 3, client_software_name="librdkafka", client_software_version="2.5.0")
    log_in(connection)
    assert log.told() == [
        CLIENT
        | {
            "type": "login",
            "outcome": "ok",
            "mechanism": "PLAIN",
            "principal": "User:alice",
            "by_token": False,
            "client_software": "librdkafka",
            "client_software_version": "2.5.0",
        }
    ]


@pytest.mark.parametrize("later", [True, False])
async def test_a_login_by_token(log: RecordedEvents, later: bool) -> None:
    connection = shell(log, LoggedIn(b"", BY_TOKEN, 60_000, token()), later=later)
    log_in(connection)
    await turns()
    connection.connection.connection_lost(None)
    assert log.told() == [
        CLIENT
        | {
            "type": "login",
            "outcome": "ok",
            "mechanism": "SCRAM-SHA-256",
            "principal": "Group:ops",
            "by_token": True,
            "session_token_id": TOKEN_ID,
            "token_id": TOKEN_ID,
            "owner": "Group:ops",
            "requester": "User:alice",
        }
    ]


async def test_a_login_waits_for_a_client_that_says_only_then_what_it_is(log: RecordedEvents) -> None:
    connection = shell(log)
    log_in(connection)
    assert log.told() == []
    connection.ask(ApiKey.API_VERSIONS, 3, client_software_name="apache-kafka-java", client_software_version="4.0.0")
    (event,) = log.told()
    assert (event["client_software"], event["client_software_version"]) == ("apache-kafka-java", "4.0.0")


async def test_a_login_does_not_wait_beyond_a_request_that_is_an_event(log: RecordedEvents) -> None:
    seen = Seen()
    connection = shell(log, handler=seen)
    log_in(connection)
    connection.send(find(connection, "group"))
    await turns()
    (context,) = seen.contexts
    assert context.audit is not None
    context.audit.origin(context.principal)
    (event,) = log.told()
    assert "client_software" not in event


async def test_a_login_does_not_wait_for_long(log: RecordedEvents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_dt.server.audited.connection.SOFTWARE_SECONDS", 0.01)
    log_in(shell(log))
    await until(lambda: bool(log.events))
    (event,) = log.told()
    assert event["outcome"] == "ok"


async def test_a_login_again_is_of_the_same_connection(log: RecordedEvents) -> None:
    connection = shell(log, LoggedIn(b"", BY_TOKEN, 60_000, token()))
    for _ in range(2):
        log_in(connection)
    connection.connection.connection_lost(None)
    first, second = log.told()
    assert first == second
    other = shell(log, LoggedIn(b"", BY_TOKEN, 60_000, token()))
    log_in(other)
    other.connection.connection_lost(None)
    (third,) = log.told()
    assert third["connection"] == f"{INSTANCE}-c2"


async def test_a_login_that_goes_on_is_no_event(log: RecordedEvents) -> None:
    connection = shell(log, Challenge(b"and then?"))
    log_in(connection)
    connection.connection.connection_lost(None)
    assert log.told() == []


async def test_a_login_that_was_lost_before_the_client_went_is_refused_once(log: RecordedEvents) -> None:
    rejected = LoginRefused("m", "d", "", OAUTHBEARER)

    def new_login(_: Any) -> Any:
        return StubLogin(Challenge(b"{}"), later=False, foregone=rejected)

    for more in ((), (b"GET / HTTP/1.1\r\n\r\n",)):
        connection = Shell(listener=SASL, new_login=new_login, recorder=log.recorder)
        log_in(connection)
        for sent in more:
            connection.send(sent)
        connection.connection.connection_lost(None)
        (event,) = log.told()
        assert event["reason"] == ("broken_exchange" if more else "wrong_credentials")


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        pytest.param(
            LoginRefused("m", "d", "mallory", PLAIN, RefusalReason.UNKNOWN_USER),
            {"mechanism": "PLAIN", "principal": "User:mallory", "reason": "unknown_user"},
            id="a user",
        ),
        pytest.param(
            LoginRefused("m", "d", "", OAUTHBEARER, RefusalReason.BROKEN_EXCHANGE),
            {"mechanism": "OAUTHBEARER", "reason": "broken_exchange"},
            id="no name",
        ),
        pytest.param(
            LoginRefused("m", "d", "x" * 22, ScramMechanism.SHA_512, RefusalReason.UNKNOWN_TOKEN, by_token=True),
            {"mechanism": "SCRAM-SHA-512", "token_id": "x" * 22, "reason": "unknown_token"},
            id="an unknown token",
        ),
        pytest.param(
            LoginRefused("m", "d", "x" * 22, ScramMechanism.SHA_512, RefusalReason.UNAVAILABLE, by_token=True),
            {"mechanism": "SCRAM-SHA-512", "token_id": "x" * 22, "reason": "unavailable"},
            id="a token that cannot be checked now",
        ),
        pytest.param(
            LoginRefused("m", "d", TOKEN_ID, ScramMechanism.SHA_256, RefusalReason.EXPIRED_TOKEN, True, token()),
            {
                "mechanism": "SCRAM-SHA-256",
                "token_id": TOKEN_ID,
                "owner": "Group:ops",
                "requester": "User:alice",
                "principal": "Group:ops",
                "reason": "expired_token",
            },
            id="a token",
        ),
    ],
)
async def test_a_login_that_is_refused(log: RecordedEvents, refused: LoginRefused, expected: dict[str, object]) -> None:
    log_in(shell(log, refused))
    assert log.told() == [CLIENT | {"type": "login", "outcome": "refused"} | expected]


async def test_a_login_that_fails_for_a_reason_of_our_own(log: RecordedEvents) -> None:
    failing: Any = RuntimeError("the detail")
    connection = shell(log, failing, later=True)
    log_in(connection)
    await until(lambda: bool(log.events))
    (event,) = log.told()
    assert (event["mechanism"], event["reason"]) == ("PLAIN", "unavailable")


async def test_a_mechanism_that_is_not_offered(log: RecordedEvents) -> None:
    for asked in ("GSSAPI", "M" * 5000):
        shell(log).ask(ApiKey.SASL_HANDSHAKE, 1, mechanism=asked)
        (event,) = log.told()
        assert (event["outcome"], event["reason"]) == ("refused", "unsupported_mechanism")
        assert event["mechanism"] == asked[:LONGEST_MECHANISM]


async def test_another_mechanism_at_a_re_authentication(log: RecordedEvents) -> None:
    connection = shell(log, LoggedIn(b"", BY_TOKEN, 60_000, token()))
    log_in(connection)
    connection.connection.machine._mechanism = "SCRAM-SHA-256"  # as if the first login had been by that
    log_in(connection)
    connection.connection.connection_lost(None)
    (event,) = [event for event in log.told() if event["outcome"] == "refused"]
    assert event["reason"] == "not_allowed"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="another protocol"),
        pytest.param(b"\x00\x00\x00\x0a\x00\x03\x00\x01\x00\x00\x00\x01\xff\xff", id="a request before the login"),
    ],
)
async def test_what_comes_instead_of_a_login(log: RecordedEvents, sent: bytes) -> None:
    shell(log).send(sent)
    (event,) = log.told()
    assert (event["type"], event["outcome"], event["reason"]) == ("login", "refused", "broken_exchange")
    assert "mechanism" not in event


async def test_who_says_nothing_or_needs_no_login_is_no_event(log: RecordedEvents) -> None:
    shell(log).connection.eof_received()
    plaintext = shell(log, listener=listener(), handler=Seen())
    plaintext.send(find(plaintext, "group"))
    await turns()
    plaintext.send(b"GET / HTTP/1.1\r\n\r\n")
    assert log.told() == []


async def test_a_certificate_is_a_login_of_a_client_that_says_next_what_it_is(log: RecordedEvents) -> None:
    connection = shell(log, listener=SSL, certified=lambda _: ALICE)
    assert log.told() == []
    connection.ask(ApiKey.API_VERSIONS, 3, client_software_name="librdkafka", client_software_version="2.5.0")
    (event,) = log.told()
    assert (event["type"], event["outcome"], event["principal"]) == ("login", "ok", "User:alice")
    assert (event["mechanism"], event["by_token"], event["listener"]) == ("SSL", False, "SSL")
    assert (event["client_id"], event["client_software"], event["client_software_version"]) == (
        "test",
        "librdkafka",
        "2.5.0",
    )


async def test_a_certificate_is_a_login_though_nothing_follows(log: RecordedEvents) -> None:
    shell(log, listener=SSL, certified=lambda _: ALICE).connection.connection_lost(None)
    (event,) = log.told()
    assert (event["outcome"], event["mechanism"], event["principal"]) == ("ok", "SSL", "User:alice")


async def test_who_shows_no_certificate_and_need_not_has_not_logged_in(log: RecordedEvents) -> None:
    shell(log, listener=SSL, certified=lambda _: ANONYMOUS)
    assert log.told() == []


async def test_a_certificate_that_makes_nobody_a_principal_is_a_login_that_is_refused(log: RecordedEvents) -> None:
    def nobody(_: bytes | None) -> Principal:
        raise CertificateUnusable("no rule matches")

    shell(log, listener=SSL, certified=nobody)
    (event,) = log.told()
    assert (event["outcome"], event["reason"], event["mechanism"]) == ("refused", "not_allowed", "SSL")


async def test_requests_know_where_they_come_from(log: RecordedEvents) -> None:
    seen = Seen()
    connection = shell(log, LoggedIn(b"", BY_TOKEN, 60_000, token()), handler=seen)
    log_in(connection)
    connection.send(find(connection, "group"))
    await turns()
    (context,) = seen.contexts
    assert context.audit is not None
    origin = context.audit.origin(context.principal)
    assert (origin["principal"], origin["mechanism"], origin["session_token_id"]) == (
        "Group:ops",
        "SCRAM-SHA-256",
        TOKEN_ID,
    )
    assert (origin["by_token"], origin["client_id"], origin["connection"]) == (True, "test", f"{INSTANCE}-c1")


async def test_without_a_recorder_nothing_is_kept_of_a_connection() -> None:
    seen = Seen()
    connection = Shell(seen, SASL)
    log_in(connection)
    connection.send(find(connection, "group"))
    await turns()
    assert [context.audit for context in seen.contexts] == [None]


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        (("192.0.2.1", 5), ("192.0.2.1", 5)),
        (("::ffff:192.0.2.1", 5, 0, 0), ("192.0.2.1", 5)),
        (("2001:db8::1", 5, 0, 0), ("2001:db8::1", 5)),
        (None, (None, None)),
        ("", (None, None)),
    ],
)
def test_the_address_of_a_client(peer: Any, expected: tuple[str | None, int | None]) -> None:
    assert peer_address(peer) == expected
