"""PLAIN: one message, Kafka's words for every mistake, nothing told to a guesser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.sasl import (
    CredentialRequest,
    Failure,
    PlainServer,
    ServerMechanism,
    StepResult,
    Success,
    plain_message,
)

INVALID = "Authentication failed: Invalid username or password"
OTHER_ID = "Authentication failed: Client requested an authorization id that is different from username"
WRONG = Failure("the password is wrong", INVALID)

parts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


def login(message: bytes, password: str | None) -> StepResult:
    server: ServerMechanism[str | None] = PlainServer()
    outcome = server.step(message)
    return server.resume(password) if isinstance(outcome, CredentialRequest) else outcome


def test_the_right_password_logs_in_as_the_user() -> None:
    server = PlainServer()
    assert server.step(b"\0alice\0alice-secret") == CredentialRequest("alice", token=False)
    assert server.resume("alice-secret") == Success(b"", "alice")


def test_an_authorization_id_equal_to_the_user_is_fine() -> None:
    assert login(b"alice\0alice\0alice-secret", "alice-secret") == Success(b"", "alice")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0\0", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0secret\0\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0wrong", INVALID),
        (b"\0alice\0secre", INVALID),
        (b"\0alice\0secret ", INVALID),
        (b"mallory\0alice\0wrong", INVALID),
        (b"mallory\0alice\0secret", OTHER_ID),
    ],
)
def test_a_mistake_gets_kafkas_words(message: bytes, expected: str) -> None:
    outcome = login(message, "secret")
    assert isinstance(outcome, Failure)
    assert outcome.message == expected


@pytest.mark.parametrize("message", [b"\0\xff\0secret", b"\xff\0alice\0secret", b"\0\xed\xa0\x80\0secret"])
def test_a_name_that_is_not_utf8_is_refused_in_the_words_of_a_wrong_password(message: bytes) -> None:
    outcome = PlainServer().step(message)
    assert isinstance(outcome, Failure)
    assert outcome.message == INVALID
    assert "UTF-8" in outcome.detail


def test_a_password_that_is_not_utf8_is_a_wrong_password() -> None:
    assert login(b"\0alice\0\xff", "secret") == WRONG


@pytest.mark.parametrize("authorization_id", [b"", b"alice", b"mallory"])
def test_an_unknown_user_is_told_what_a_wrong_password_is_told(authorization_id: bytes) -> None:
    message = authorization_id + b"\0alice\0secret"
    assert login(message, None) == login(message, "another") == WRONG


def test_a_user_with_an_empty_password_cannot_log_in() -> None:
    assert isinstance(login(b"\0alice\0", ""), Failure)
    assert isinstance(login(b"\0alice\0x", ""), Failure)


@given(st.binary())
def test_any_bytes_are_a_request_or_a_failure(message: bytes) -> None:
    outcome = PlainServer().step(message)
    assert isinstance(outcome, CredentialRequest | Failure)
    assert isinstance(login(message, "secret"), Success | Failure)


@given(username=parts, password=parts, authorize=st.booleans())
def test_any_user_and_password_come_through(username: str, password: str, authorize: bool) -> None:
    message = plain_message(username, password, username if authorize else "")
    assert login(message, password) == Success(b"", username)
    assert isinstance(login(message, password + "x"), Failure)


def test_the_machine_serves_one_login() -> None:
    server = PlainServer()
    with pytest.raises(LocalProtocolError):
        server.resume("secret")
    server.step(b"\0alice\0secret")
    with pytest.raises(LocalProtocolError):
        server.step(b"\0alice\0secret")
    server.resume("secret")
    with pytest.raises(LocalProtocolError):
        server.resume("secret")
    with pytest.raises(LocalProtocolError):
        server.step(b"\0alice\0secret")


def test_nothing_follows_a_failure() -> None:
    server = PlainServer()
    server.step(b"")
    with pytest.raises(LocalProtocolError):
        server.step(b"\0alice\0secret")


def test_no_outcome_shows_the_password() -> None:
    server = PlainServer()
    request = server.step(b"\0alice\0alice-secret")
    shown = f"{request!r} {server!r} {server.resume('other')!r}"
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("username", "password", "authorization_id"),
    [
        ("", "secret", ""),
        ("alice", "", ""),
        ("al\0ice", "secret", ""),
        ("alice", "sec\0ret", ""),
        ("alice", "secret", "\0"),
        ("alice", "secret\ud800", ""),
    ],
)
def test_what_cannot_be_sent_is_refused_without_being_shown(
    username: str, password: str, authorization_id: str
) -> None:
    with pytest.raises(LocalProtocolError) as refusal:
        plain_message(username, password, authorization_id)
    assert "secret" not in str(refusal.value)
    assert refusal.value.__context__ is None
