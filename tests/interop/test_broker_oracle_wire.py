"""Frames, ApiVersions and logins: a real broker and kafka-dt are asked the same and must answer the same.

Here are the rules that clients depend on and that are easy to get subtly wrong; the whole of them is held by unit and
integration tests, which need no broker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from tests.interop.conftest import Authority
from tests.support.broker import MECHANISMS, USERS
from tests.support.raw import (
    API_VERSIONS,
    CREATE,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    ConnectionClosed,
    LoginRefused,
    RawConnection,
    milliseconds,
    ms,
)

LARGEST_FRAME_BEFORE_LOGIN = 524_288
OFFERED = {17: (0, 1), 18: (0, 4), 36: (0, 2), 38: (0, 3), 39: (0, 2), 40: (0, 2), 41: (0, 3)}
BAD_PASSWORD = "Authentication failed: Invalid username or password"


@pytest.fixture
def stranger(authority: Authority) -> Iterator[RawConnection]:
    """A connection before its login."""
    with RawConnection(authority.sasl) as connection:
        yield connection


@pytest.fixture
def alice(authority: Authority) -> Iterator[RawConnection]:
    """A connection that logged in with PLAIN."""
    with RawConnection(authority.sasl) as connection:
        connection.login_plain("alice", USERS["alice"])
        yield connection


def api_versions(connection: RawConnection, software: str = "raw") -> object:
    return connection.ask(API_VERSIONS, 4, client_software_name=software, client_software_version="1").error_code.value


def test_the_versions_of_login_and_token_apis_are_offered(stranger: RawConnection) -> None:
    answer = stranger.ask(API_VERSIONS, 4, client_software_name="raw", client_software_version="1")
    ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert {key: ranges[key] for key in OFFERED} == OFFERED
    assert {3, 60} <= set(ranges)


@pytest.mark.parametrize("version", [5, 99, -1])
def test_api_versions_of_the_future_gets_error_35_in_version_0(stranger: RawConnection, version: int) -> None:
    stranger.send_frame(stranger.header(API_VERSIONS, version, flexible=True) + b"\x04raw\x021\0")
    answer = stranger.answer(API_VERSIONS, 0)
    assert answer.error_code.value == 35
    assert [(each.api_key, each.min_version, each.max_version) for each in answer.api_keys] == [(18, 0, 4)]
    assert api_versions(stranger) == 0


@pytest.mark.parametrize("software", ["", "a b", "ends-", "ä"])
def test_an_odd_software_name_gets_error_42(stranger: RawConnection, software: str) -> None:
    assert api_versions(stranger, software) == 42
    assert api_versions(stranger) == 0


def test_a_second_api_versions_before_login_closes(stranger: RawConnection) -> None:
    assert api_versions(stranger) == 0
    with pytest.raises(ConnectionClosed):
        api_versions(stranger)


@pytest.mark.parametrize("length", [-1, LARGEST_FRAME_BEFORE_LOGIN + 1, 2**31 - 1])
def test_a_frame_of_impossible_length_closes_before_its_content(stranger: RawConnection, length: int) -> None:
    stranger.send(struct.pack(">i", length))
    assert stranger.closed()


@pytest.mark.parametrize(
    "payload", [b"", b"\0\x12", struct.pack(">hhih", 9999, 0, 1, -1), struct.pack(">hhih", 17, 2, 1, -1)]
)
def test_a_frame_that_is_no_request_closes(stranger: RawConnection, payload: bytes) -> None:
    stranger.send_frame(payload)
    assert stranger.closed()


def test_a_body_cut_short_closes_after_the_answers_that_were_due(alice: RawConnection) -> None:
    whole = alice.encode(METADATA, 1, topics=())
    alice.send_frame(whole)
    alice.send_frame(whole[:-2])
    alice.answer(METADATA, 1)
    assert alice.closed()


def test_any_other_first_request_closes(stranger: RawConnection) -> None:
    stranger.request(METADATA, 1, topics=())
    assert stranger.closed()


@pytest.mark.parametrize("mechanism", ["plain", "GSSAPI", ""])
def test_an_unknown_mechanism_gets_the_list_and_closes(stranger: RawConnection, mechanism: str) -> None:
    answer = stranger.handshake(mechanism)
    assert answer.error_code.value == 33
    assert set(answer.mechanisms) == set(MECHANISMS)
    assert stranger.closed()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\0alice\0wrong", BAD_PASSWORD),
        (b"\0nobody\0wrong", BAD_PASSWORD),
        (b"bob\0alice\0wrong", BAD_PASSWORD),
        (
            b"bob\0alice\0alice-secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"\0\0x", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    ],
)
def test_a_refused_plain_login_says_why_and_closes(stranger: RawConnection, message: bytes, reason: str) -> None:
    stranger.handshake("PLAIN")
    answer = stranger.authenticate(message)
    assert (answer.error_code.value, answer.error_message, answer.auth_bytes) == (58, reason, b"")
    assert stranger.closed()


def test_a_plain_login_is_answered_with_empty_texts(authority: Authority) -> None:
    with RawConnection(authority.sasl) as connection:
        answer = connection.login_plain("alice", USERS["alice"])
    assert (answer.error_message, answer.auth_bytes, milliseconds(answer.session_lifetime)) == ("", b"", 0)


def test_after_handshake_version_0_tokens_travel_bare(stranger: RawConnection) -> None:
    assert stranger.handshake("PLAIN", version=0).error_code.value == 0
    stranger.send_frame(b"\0alice\0alice-secret")
    assert stranger.receive_frame() == b""
    assert api_versions(stranger) == 0


def test_an_unknown_scram_user_gets_the_generic_message(stranger: RawConnection) -> None:
    with pytest.raises(LoginRefused) as refused:
        stranger.login_scram("nobody", "wrong", "SCRAM-SHA-256")
    assert refused.value.answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )


def test_a_create_during_the_login_is_refused_in_its_own_layout(stranger: RawConnection) -> None:
    stranger.handshake("PLAIN")
    answer = stranger.ask(
        CREATE, 3, owner_principal_type=None, owner_principal_name=None, renewers=(), max_lifetime=ms(-1)
    )
    assert answer.error_code.value == 34
    assert (answer.principal_type, answer.principal_name, answer.token_id) == ("User", "ANONYMOUS", "")
    assert stranger.closed()


@pytest.mark.parametrize("listener", ["sasl", "plaintext"])
def test_sasl_requests_outside_a_login_get_error_34_and_harm_nothing(authority: Authority, listener: str) -> None:
    with RawConnection(getattr(authority, listener)) as connection:
        if listener == "sasl":
            connection.login_plain("alice", USERS["alice"])
        handshake = connection.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        assert (handshake.error_code.value, handshake.mechanisms) == (34, ())
        answer = connection.ask(SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0alice-secret")
        assert answer.error_code.value == 34
        assert answer.error_message == "SaslAuthenticate request received after successful authentication"
        assert api_versions(connection) == 0


def test_a_whole_login_in_one_segment_is_answered_in_order(stranger: RawConnection) -> None:
    requests = (
        stranger.encode(API_VERSIONS, 0),
        stranger.encode(SASL_HANDSHAKE, 1, mechanism="PLAIN"),
        stranger.encode(SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0alice-secret"),
        stranger.encode(METADATA, 1, topics=()),
    )
    stranger.send(b"".join(struct.pack(">i", len(each)) + each for each in requests))
    assert stranger.answer(API_VERSIONS, 0).error_code.value == 0
    assert stranger.answer(SASL_HANDSHAKE, 1).error_code.value == 0
    assert stranger.answer(SASL_AUTHENTICATE, 2).error_code.value == 0
    assert len(stranger.answer(METADATA, 1).brokers) == 1
