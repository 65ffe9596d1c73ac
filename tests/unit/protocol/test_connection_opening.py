"""The first requests of a connection: ApiVersions and SaslHandshake."""

from __future__ import annotations

import struct

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt_protocol import (
    APIS,
    ApiKey,
    ConnectionClosed,
    MechanismChosen,
    State,
    build,
    frame,
)
from kafka_dt_protocol.api.offered_versions import OfferedVersions
from tests.unit.protocol.conversation import MECHANISMS, Conversation, api_versions


@pytest.mark.parametrize("version", range(5))
def test_api_versions_are_told_before_the_login(version: int) -> None:
    client = Conversation()
    client.ask(ApiKey.API_VERSIONS, version, **api_versions())
    assert client.event() is None
    answer = client.answer()
    assert answer.error_code is ErrorCode.none
    assert {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}[38] == (0, 3)
    assert client.connection.state is State.VERSIONS_KNOWN


def test_api_versions_may_tell_of_more_than_is_served_here() -> None:
    upstream = build(APIS[ApiKey.API_VERSIONS].response[4], error_code=ErrorCode.none, api_keys=())
    client = Conversation()
    client.connection.offer(OfferedVersions(upstream, [APIS[ApiKey.API_VERSIONS]]))
    client.ask(ApiKey.API_VERSIONS, 4, **api_versions())
    client.event()
    assert [key.api_key for key in client.answer().api_keys] == [ApiKey.API_VERSIONS]


class Others:
    """Something else is offered than what is served here."""

    def body(self, api_version: int) -> bytes:
        return b"version %d" % api_version


def test_what_is_offered_is_told_in_known_versions_alone() -> None:
    client = Conversation()
    client.connection.offer(Others())
    client.ask(ApiKey.API_VERSIONS, 3, **api_versions())
    assert client.event() is None
    assert client.frames() == [b"\0\0\0\1version 3"]
    stranger = Conversation()
    stranger.connection.offer(Others())
    stranger.connection.receive_data(frame(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1) + b"\0"))
    assert stranger.event() is None
    assert stranger.frames() == [struct.pack(">ihihhh", 7, 35, 1, 18, 0, 4)]


def test_a_client_that_names_itself_is_remembered() -> None:
    client = Conversation()
    client.ask(ApiKey.API_VERSIONS, 4, **api_versions(client_software_name="apache-kafka-java"))
    client.event()
    assert client.connection.client_software == ("apache-kafka-java", "1.0")


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_api_versions_of_an_unknown_version_are_answered_in_that_of_v0_and_may_be_repeated(version: int) -> None:
    client = Conversation()
    unknown = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 7, -1) + b"\0 anything"
    client.connection.receive_data(frame(unknown))
    assert client.event() is None
    (content,) = client.frames()
    assert content == struct.pack(">ihihhh", 7, 35, 1, 18, 0, 4)
    client.ask(ApiKey.API_VERSIONS, 0)
    client.event()
    assert client.answer().error_code is ErrorCode.none


@pytest.mark.parametrize("name", ["", "a b", "ä", "a-", "-a", "a\n"])
@pytest.mark.parametrize("field_name", ["client_software_name", "client_software_version"])
def test_a_client_with_an_odd_name_is_told_so_and_may_try_again(name: str, field_name: str) -> None:
    client = Conversation()
    client.ask(ApiKey.API_VERSIONS, 3, **api_versions(**{field_name: name}))
    assert client.event() is None
    refused = client.answer()
    assert (refused.error_code, refused.api_keys) == (ErrorCode.invalid_request, ())
    assert client.connection.state is State.INITIAL


def test_a_second_api_versions_before_the_login_closes() -> None:
    client = Conversation()
    client.ask(ApiKey.API_VERSIONS, 0)
    client.ask(ApiKey.API_VERSIONS, 0)
    closed = client.event()
    assert isinstance(closed, ConnectionClosed)
    assert len(client.answers()) == 1


def test_an_offered_mechanism_is_accepted_with_the_list_of_all() -> None:
    client = Conversation()
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    assert client.event() == MechanismChosen("PLAIN")
    answer = client.answer()
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.none, MECHANISMS)


@pytest.mark.parametrize("mechanism", ["plain", "PLAIN ", "", "GSSAPI"])
def test_another_mechanism_is_refused_with_the_list_of_all(mechanism: str) -> None:
    client = Conversation()
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism=mechanism)
    closed = client.event()
    assert isinstance(closed, ConnectionClosed)
    assert closed.delayed
    answer = client.answer()
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.unsupported_sasl_mechanism, MECHANISMS)


@pytest.mark.parametrize("api", [ApiKey.METADATA, ApiKey.SASL_AUTHENTICATE, ApiKey.DESCRIBE_DELEGATION_TOKEN])
def test_a_first_request_other_than_versions_and_handshake_closes_without_an_answer(api: ApiKey) -> None:
    client = Conversation()
    client.ask(api, 0 if api is not ApiKey.METADATA else 1, topics=(), auth_bytes=b"", owners=None)
    closed = client.event()
    assert isinstance(closed, ConnectionClosed)
    assert closed.delayed
    assert client.frames() == []


BAD_HEADERS = {
    "empty": b"",
    "short": b"\0\x26\0",
    "unknown API": struct.pack(">hhih", 999, 0, 1, -1),
    "GSSAPI": b"\x60\x82" * 20,
    "no such version": struct.pack(">hhih", ApiKey.SASL_AUTHENTICATE, 9, 1, -1),
}


@pytest.mark.parametrize("content", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_a_first_frame_without_a_usable_header_is_a_failed_login(content: bytes) -> None:
    client = Conversation()
    client.connection.receive_data(frame(content))
    closed = client.event()
    assert isinstance(closed, ConnectionClosed)
    assert closed.delayed


@pytest.mark.parametrize("content", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_a_later_frame_without_a_usable_header_closes_at_once(content: bytes) -> None:
    client = Conversation()
    client.ask(ApiKey.API_VERSIONS, 0)
    client.connection.receive_data(frame(content))
    closed = client.event()
    assert isinstance(closed, ConnectionClosed)
    assert not closed.delayed


@pytest.mark.parametrize("version", [2, -1])
def test_a_handshake_of_no_version_closes_at_once(version: int) -> None:
    client = Conversation()
    client.connection.receive_data(frame(struct.pack(">hhih", ApiKey.SASL_HANDSHAKE, version, 1, -1)))
    closed = client.event()
    assert isinstance(closed, ConnectionClosed)
    assert not closed.delayed
