"""Conversations with one connection: requests after the login, and any bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from kafka_dt_protocol import (
    APIS,
    ApiKey,
    ConnectionClosed,
    LocalProtocolError,
    RequestHeader,
    RequestReceived,
    TokenReceived,
    build,
    frame,
    refusal,
    response_type,
)
from kafka_dt_protocol.connection import ANSWERS_IN_A_ROW
from kafka_dt_protocol.wire.times import to_duration
from tests.support.protocol.kio_entities import sparse
from tests.unit.protocol.conversation import ALL_VERSIONS, LIMITS, Conversation, api_versions


def test_no_event_shows_what_a_client_said_in_secret() -> None:
    client = Conversation()
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    client.event()
    client.tokens(b"\0alice\0swordfish")
    assert "swordfish" not in repr(client.event())
    without_login = Conversation(())
    without_login.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, hmac=b"swordfish", renew_period=to_duration(1))
    assert "swordfish" not in repr(without_login.event())


def test_requests_are_served_one_by_one_in_their_order() -> None:
    client = Conversation()
    client.log_in()
    client.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=None)
    client.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, owners=())
    for owners in (None, ()):
        request = client.event()
        assert isinstance(request, RequestReceived)
        assert request.body.owners == owners
        with pytest.raises(LocalProtocolError):
            client.event()
        client.connection.respond(build(response_type(request.header), error_code=ErrorCode.none, tokens=()))
    assert len(client.answers()) == 2
    assert client.event() is None


def test_an_answer_that_another_server_has_made_goes_out_as_it_is_and_in_its_turn() -> None:
    client = Conversation()
    client.log_in()
    with pytest.raises(LocalProtocolError):
        client.connection.respond_encoded(b"to no request")
    client.ask(ApiKey.CREATE_ACLS, 3, creations=())
    client.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=())
    assert isinstance(client.event(), RequestReceived)
    client.connection.respond_encoded(b"whatever it says")
    assert client.frames() == [b"whatever it says"]
    assert isinstance(client.event(), RequestReceived)


def test_a_rejected_request_is_not_answered_and_closes_after_the_good_ones_were() -> None:
    client = Conversation()
    client.log_in()
    client.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=())
    client.ask(ApiKey.CREATE_ACLS, 3, creations=())
    client.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=())
    good = client.event()
    assert isinstance(good, RequestReceived)
    client.connection.respond(build(response_type(good.header), error_code=ErrorCode.none, tokens=()))
    assert isinstance(client.event(), RequestReceived)
    closed = client.connection.reject("it makes no sense")
    assert (closed.reason, closed.delayed, closed.error) == ("it makes no sense", False, True)
    assert len(client.answers()) == 1
    assert client.event() is None


def test_a_handshake_and_a_token_after_the_login_are_refused_and_the_connection_goes_on() -> None:
    client = Conversation()
    client.log_in()
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    client.tokens(b"token")
    client.ask(ApiKey.API_VERSIONS, 0)
    assert client.event() is None
    handshake, token, versions = client.answers()
    assert (handshake.error_code, handshake.mechanisms) == (ErrorCode.illegal_sasl_state, ())
    assert token.error_code is ErrorCode.illegal_sasl_state
    assert token.error_message == "SaslAuthenticate request received after successful authentication"
    assert versions.error_code is ErrorCode.none


def test_a_listener_without_sasl_needs_no_login() -> None:
    client = Conversation(mechanisms=())
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    client.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=None)
    assert isinstance(client.event(), RequestReceived)
    assert client.answer().error_code is ErrorCode.illegal_sasl_state


@pytest.mark.parametrize("logged_in", [False, True])
def test_the_limit_of_a_frame_is_another_one_after_the_login(logged_in: bool) -> None:
    client = Conversation()
    if logged_in:
        client.log_in()
    limit = LIMITS.after_login_bytes if logged_in else LIMITS.before_login_bytes
    client.connection.receive_data(struct.pack(">i", limit))
    assert client.event() is None
    other = Conversation()
    if logged_in:
        other.log_in()
    other.connection.receive_data(struct.pack(">i", limit + 1))
    closed = other.event()
    assert isinstance(closed, ConnectionClosed)
    assert closed.delayed is not logged_in


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\x26\0", struct.pack(">hhih", 999, 0, 1, -1), struct.pack(">hhih", 38, 4, 1, -1), b"\x60\x82" * 20],
    ids=["empty", "short", "unknown API", "unknown version", "GSSAPI"],
)
def test_a_broken_request_closes_after_the_good_ones_were_answered(content: bytes) -> None:
    client = Conversation()
    client.log_in()
    client.ask(ApiKey.API_VERSIONS, 0)
    client.connection.receive_data(frame(content))
    closed = client.event()
    assert isinstance(closed, ConnectionClosed)
    assert closed.error
    assert not closed.delayed
    assert len(client.answers()) == 1


def test_bytes_after_the_body_are_ignored() -> None:
    client = Conversation()
    client.log_in()
    client.connection.receive_data(frame(client.request(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, owners=None) + b"more"))
    assert isinstance(client.event(), RequestReceived)


def test_a_client_that_leaves_after_a_request_is_answered_first() -> None:
    client = Conversation()
    client.log_in()
    client.ask(ApiKey.API_VERSIONS, 0)
    client.connection.receive_eof()
    closed = client.event()
    assert isinstance(closed, ConnectionClosed)
    assert not closed.error
    assert len(client.answers()) == 1


def test_a_client_that_leaves_inside_a_frame_is_closed() -> None:
    client = Conversation()
    client.connection.receive_data(b"\0\0\0\x10half")
    assert client.event() is None
    client.connection.receive_eof()
    assert isinstance(client.event(), ConnectionClosed)


def test_many_requests_that_are_answered_here_let_the_caller_write_in_between() -> None:
    client = Conversation(mechanisms=())
    for _ in range(ANSWERS_IN_A_ROW + 1):
        client.ask(ApiKey.API_VERSIONS, 0)
    assert client.event() is None
    assert client.connection.has_more
    assert len(client.frames()) == ANSWERS_IN_A_ROW
    assert client.event() is None
    assert not client.connection.has_more
    assert len(client.frames()) == 1


@pytest.mark.parametrize(("api", "version"), ALL_VERSIONS)
def test_every_api_can_say_an_error_and_nothing_else(api: ApiKey, version: int) -> None:
    header = RequestHeader(api, version, 1, None)
    body = sparse(APIS[api].request[version])
    refused = refusal(header, body, ErrorCode.unknown_server_error)
    assert type(refused) is response_type(header)


@given(chunks=st.lists(st.binary(max_size=60), max_size=8), logged_in=st.booleans())
def test_any_bytes_in_any_chunks_are_events_or_the_end(chunks: list[bytes], logged_in: bool) -> None:
    client = Conversation()
    if logged_in:
        client.log_in()
    for chunk in chunks:
        client.connection.receive_data(chunk)
        while (event := client.event()) is not None:
            match event:
                case RequestReceived():
                    client.connection.respond(refusal(event.header, event.body, ErrorCode.unknown_server_error))
                case TokenReceived():
                    client.connection.challenge(b"")
                case ConnectionClosed():
                    assert client.event() is None
        client.connection.data_to_send()


def test_a_conversation_does_not_depend_on_how_its_bytes_are_cut() -> None:
    def say(chunk_size: int) -> bytes:
        client = Conversation()
        client.log_in()
        data = b"".join(
            frame(client.request(api, version, **values))
            for api, version, values in (
                (ApiKey.API_VERSIONS, 3, api_versions()),
                (ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"}),
                (ApiKey.API_VERSIONS, 0, api_versions()),
            )
        )
        sent = b""
        for start in range(0, len(data), chunk_size):
            client.connection.receive_data(data[start : start + chunk_size])
            assert client.event() is None
            sent += client.connection.data_to_send()
        return sent

    assert say(1) == say(7) == say(10_000)
