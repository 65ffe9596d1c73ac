"""The SASL exchange of a connection, and what may not come during it."""

from __future__ import annotations

import struct
from dataclasses import fields
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt_protocol import (
    APIS,
    ApiKey,
    ConnectionClosed,
    State,
    TokenReceived,
    frame,
)
from kafka_dt_protocol.wire.times import from_duration, from_timestamp
from tests.support.protocol.kio_entities import sparse
from tests.unit.protocol.conversation import ALL_VERSIONS, NOW, Conversation


def test_a_login_by_sasl_authenticate() -> None:
    client = Conversation()
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="SCRAM-SHA-256")
    client.event()
    client.answers()
    client.tokens(b"first")
    assert client.event() == TokenReceived(b"first")
    client.connection.challenge(b"challenge")
    challenge = client.answer()
    assert (challenge.error_code, challenge.error_message, challenge.auth_bytes) == (ErrorCode.none, "", b"challenge")
    assert from_duration(challenge.session_lifetime) == 0
    client.tokens(b"final")
    assert client.event() == TokenReceived(b"final")
    client.connection.succeed(b"signature", 5000, client.now)
    done = client.answer()
    assert (done.error_code, done.error_message, done.auth_bytes) == (ErrorCode.none, "", b"signature")
    assert from_duration(done.session_lifetime) == 5000
    assert client.connection.state is State.READY
    assert client.connection.session.end_ms == NOW + 5000


def test_a_login_by_bare_tokens() -> None:
    client = Conversation()
    client.ask(ApiKey.SASL_HANDSHAKE, 0, mechanism="SCRAM-SHA-256")
    client.event()
    client.answers()
    client.connection.receive_data(frame(b"first"))
    assert client.event() == TokenReceived(b"first")
    client.connection.challenge(b"challenge")
    assert client.frames() == [b"challenge"]
    client.connection.receive_data(frame(b"final"))
    client.event()
    client.connection.succeed(b"", None, client.now)
    assert client.frames() == [b""]
    assert client.connection.state is State.READY


@pytest.mark.parametrize(("version", "answers"), [(0, 0), (1, 1)])
def test_a_mechanism_without_a_last_message_sends_none_among_bare_tokens(version: int, answers: int) -> None:
    client = Conversation()
    client.ask(ApiKey.SASL_HANDSHAKE, version, mechanism="PLAIN")
    client.event()
    client.frames()
    if version:
        client.tokens(b"token")
    else:
        client.connection.receive_data(frame(b"token"))
    client.event()
    client.connection.succeed(None, None, client.now)
    assert len(client.frames()) == answers
    assert client.connection.state is State.READY


def test_a_failed_login_is_told_and_closed_after_a_while() -> None:
    client = Conversation()
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    client.tokens(b"token", b"more")
    client.event()
    client.event()
    assert client.connection.fail("wrong").delayed
    _, refused = client.answers()
    assert (refused.error_code, refused.error_message) == (ErrorCode.sasl_authentication_failed, "wrong")
    assert (refused.auth_bytes, from_duration(refused.session_lifetime)) == (b"", 0)
    assert client.event() is None


def test_a_failed_login_by_bare_tokens_has_no_answer() -> None:
    client = Conversation()
    client.ask(ApiKey.SASL_HANDSHAKE, 0, mechanism="PLAIN")
    client.event()
    client.frames()
    client.connection.receive_data(frame(b"token"))
    client.event()
    assert client.connection.fail("wrong").delayed
    assert client.frames() == []


def sparse_values(api: ApiKey, version: int) -> dict[str, Any]:
    """A request that says as little as it can."""
    entity = sparse(APIS[api].request[version])
    return {field.name: getattr(entity, field.name) for field in fields(entity)}


BUT_TOKENS = [(api, version) for api, version in ALL_VERSIONS if api is not ApiKey.SASL_AUTHENTICATE]


@pytest.mark.parametrize(("api", "version"), BUT_TOKENS)
def test_any_other_request_during_the_exchange_is_refused_in_its_own_layout_and_closes(
    api: ApiKey, version: int
) -> None:
    client = Conversation()
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    client.event()
    client.answers()
    client.ask(api, version, **sparse_values(api, version))
    closed = client.event()
    assert isinstance(closed, ConnectionClosed)
    assert closed.delayed
    refused = client.answer()
    if api is ApiKey.CREATE_DELEGATION_TOKEN:
        assert (refused.principal_type, refused.principal_name) == ("User", "ANONYMOUS")
        assert from_timestamp(refused.expiry_timestamp) == -1
    if api in (ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN):
        assert from_timestamp(refused.expiry_timestamp) == 0
    if "error_code" in {field.name for field in fields(refused)}:
        assert refused.error_code is ErrorCode.illegal_sasl_state


def test_api_versions_of_an_unknown_version_during_the_exchange_is_refused_in_that_of_v0() -> None:
    client = Conversation()
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    client.event()
    client.answers()
    client.connection.receive_data(frame(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1) + b"\0"))
    assert isinstance(client.event(), ConnectionClosed)
    assert client.frames() == [struct.pack(">ihi", 7, 34, 0)]


@pytest.mark.parametrize("content", [b"", b"\0", b"\xff" * 20, struct.pack(">hhih", 36, 3, 1, -1)])
def test_what_does_not_decode_during_the_exchange_closes_without_an_answer(content: bytes) -> None:
    client = Conversation()
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    client.event()
    client.answers()
    client.connection.receive_data(frame(content))
    assert isinstance(client.event(), ConnectionClosed)
    assert client.frames() == []
