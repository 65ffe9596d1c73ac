"""Conversations with one connection: bytes in, events and answers out, as a broker has them."""

from __future__ import annotations

import struct
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from kafka_dt_protocol import (
    APIS,
    ApiKey,
    ConnectionClosed,
    Event,
    Limits,
    LocalProtocolError,
    MechanismChosen,
    RequestHeader,
    RequestReceived,
    ServerConnection,
    State,
    TokenReceived,
    build,
    decode_response,
    encode_request,
    frame,
    refusal,
    response_type,
)
from kafka_dt_protocol.api.offered_versions import OfferedVersions
from kafka_dt_protocol.api.table import MAX_TAGGED_FIELDS
from kafka_dt_protocol.connection import ANSWERS_IN_A_ROW
from kafka_dt_protocol.wire.times import from_duration, from_timestamp, to_duration
from tests.support.kio_entities import sparse

NOW = 1_700_000_000_000
LIMITS = Limits(before_login_bytes=1000, after_login_bytes=2000)
MECHANISMS = ("SCRAM-SHA-256", "PLAIN")


class Conversation:
    """A client that encodes requests, and the connection that it talks to."""

    def __init__(self, mechanisms: tuple[str, ...] = MECHANISMS) -> None:
        self.connection = ServerConnection(mechanisms, LIMITS)
        self.now = NOW
        self._correlation_id = 0
        self._asked: list[tuple[int, int]] = []

    def ask(self, api: ApiKey, version: int, **values: Any) -> None:
        """Send a request without looking at what comes of it."""
        self.connection.receive_data(frame(self.request(api, version, **values)))

    def request(self, api: ApiKey, version: int, **values: Any) -> bytes:
        self._correlation_id += 1
        header = RequestHeader(api, version, self._correlation_id, "test")
        self._asked.append((api, version))
        return encode_request(header, build(APIS[api].request[version], **values))

    def event(self) -> Event | None:
        return self.connection.next_event(self.now)

    def frames(self) -> list[bytes]:
        """Give the contents of the frames that were sent since the last call."""
        data, found = self.connection.data_to_send(), []
        while data:
            (length,) = struct.unpack_from(">i", data)
            found.append(data[4 : 4 + length])
            data = data[4 + length :]
        return found

    def answers(self) -> list[Any]:
        """Give the answers that were sent since the last call, decoded; their order must be that of the requests."""
        found = []
        for content in self.frames():
            api, version = self._asked.pop(0)
            correlation_id, entity = decode_response(api, version, content)
            assert correlation_id == self._correlation_id - len(self._asked)
            found.append(entity)
        return found

    def answer(self) -> Any:
        (entity,) = self.answers()
        return entity

    def tokens(self, *messages: bytes) -> None:
        """Send SASL tokens in SaslAuthenticate v2."""
        for message in messages:
            self.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=message)

    def log_in(self, lifetime_ms: int | None = None, version: int = 1) -> None:
        self.ask(ApiKey.SASL_HANDSHAKE, version, mechanism="PLAIN")
        assert self.event() == MechanismChosen("PLAIN")
        self.answers()
        if version:
            self.tokens(b"token")
        else:
            self.connection.receive_data(frame(b"token"))
        assert self.event() == TokenReceived(b"token")
        self.connection.succeed(b"", lifetime_ms, self.now)
        if version:
            self.answers()
        else:
            self.frames()


def api_versions(**values: Any) -> dict[str, Any]:
    return {"client_software_name": "test", "client_software_version": "1.0"} | values


def test_no_event_shows_what_a_client_said_in_secret() -> None:
    client = Conversation()
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    client.event()
    client.tokens(b"\0alice\0swordfish")
    assert "swordfish" not in repr(client.event())
    without_login = Conversation(())
    without_login.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, hmac=b"swordfish", renew_period=to_duration(1))
    assert "swordfish" not in repr(without_login.event())


# How much a request may hold

TAG = b"\x07\x00"


def bare_request(api: ApiKey, version: int, body: bytes, header_tags: bytes = b"") -> bytes:
    return frame(struct.pack(">hhih", api, version, 1, -1) + header_tags + body)


def varint(value: int) -> bytes:
    return bytes([value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14])


def of_strangers(count: int) -> dict[str, bytes]:
    """What a client that has not logged in can send with tagged fields, in the header or behind the body."""
    tags, name = varint(count) + TAG * count, b"\x02a"
    return {
        "in the body": bare_request(ApiKey.API_VERSIONS, 3, name + name + tags, b"\0"),
        "in the header": bare_request(ApiKey.API_VERSIONS, 3, name + name + b"\0", tags),
    }


def of_users(count: int) -> dict[str, bytes]:
    """What a client that has logged in can send with an array; each of its elements is as short as can be."""
    fixed, length = struct.pack(">i", count), varint(count + 1)
    return {
        "topics": bare_request(ApiKey.METADATA, 1, fixed + b"\0\1a" * count),
        "keys": bare_request(ApiKey.FIND_COORDINATOR, 4, b"\0" + length + b"\1" * count + b"\0", b"\0"),
        "renewers": bare_request(ApiKey.CREATE_DELEGATION_TOKEN, 1, fixed + bytes(4) * count + bytes(8)),
        "owners": bare_request(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, fixed + bytes(4) * count),
    }


def event_of(request: bytes) -> Event | None:
    connection = ServerConnection((), Limits(before_login_bytes=10**6, after_login_bytes=10**6))
    connection.receive_data(request)
    return connection.next_event(NOW)


@pytest.mark.parametrize("where", of_strangers(0))
def test_a_stranger_has_room_for_tens_of_tagged_fields(where: str) -> None:
    assert event_of(of_strangers(MAX_TAGGED_FIELDS)[where]) is None
    closed = event_of(of_strangers(MAX_TAGGED_FIELDS + 1)[where])
    assert isinstance(closed, ConnectionClosed)
    assert "too many elements" in closed.reason


@pytest.mark.parametrize("what", of_users(0))
def test_an_array_beyond_the_limit_of_its_api_closes(what: str) -> None:
    limit = APIS[ApiKey(struct.unpack_from(">h", of_users(0)[what], 4)[0])].max_elements
    assert isinstance(event_of(of_users(limit)[what]), RequestReceived)
    closed = event_of(of_users(limit + 1)[what])
    assert isinstance(closed, ConnectionClosed)
    assert "too many elements" in closed.reason


# Before the login


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


# The exchange


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
    assert client.connection.session_end_ms == NOW + 5000


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


ALL_VERSIONS = [(api, version) for api in ApiKey for version in APIS[api].request]
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


# After the login


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


# Sessions that end, and logging in again


def test_the_next_request_after_the_end_of_the_session_closes() -> None:
    client = Conversation()
    client.log_in(lifetime_ms=1000)
    client.now = NOW + 1000
    client.ask(ApiKey.API_VERSIONS, 0)
    assert client.event() is None
    assert len(client.answers()) == 1
    client.now = NOW + 1001
    client.ask(ApiKey.API_VERSIONS, 0)
    assert isinstance(client.event(), ConnectionClosed)
    assert client.frames() == []


def test_a_session_can_be_made_to_end_earlier_but_not_later() -> None:
    client = Conversation()
    client.log_in(lifetime_ms=1000)
    client.connection.end_session_at(NOW + 2000)
    assert client.connection.session_end_ms == NOW + 1000
    client.connection.end_session_at(NOW + 500)
    assert client.connection.session_end_ms == NOW + 500
    client.connection.end_session_at(NOW + 700)
    assert client.connection.session_end_ms == NOW + 700


def test_a_session_without_end_is_not_given_one() -> None:
    client = Conversation()
    client.log_in()
    client.connection.end_session_at(NOW + 500)
    assert client.connection.session_end_ms is None


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


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("passed_ms", [10, 5000], ids=["within the session", "as the first request after its end"])
def test_a_session_with_a_lifetime_may_log_in_again(version: int, passed_ms: int) -> None:
    client = Conversation()
    client.log_in(lifetime_ms=1000)
    client.now = NOW + passed_ms
    client.log_in(lifetime_ms=1000, version=version)
    assert client.connection.session_end_ms == NOW + passed_ms + 1000


def test_logging_in_again_is_refused_within_a_second_of_the_last_time() -> None:
    client = Conversation()
    client.log_in(lifetime_ms=10_000)
    client.log_in(lifetime_ms=10_000)
    client.now = NOW + 999
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    assert client.event() is None
    assert client.answer().error_code is ErrorCode.illegal_sasl_state
    client.now = NOW + 1000
    client.log_in(lifetime_ms=10_000)


def test_another_mechanism_at_a_second_login_is_closed_at_its_first_token() -> None:
    client = Conversation()
    client.log_in(lifetime_ms=1000)
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="SCRAM-SHA-256")
    assert client.event() == MechanismChosen("SCRAM-SHA-256")
    assert client.answer().error_code is ErrorCode.none
    client.tokens(b"token")
    closed = client.event()
    assert isinstance(closed, ConnectionClosed)
    assert closed.delayed
    assert client.frames() == []


def test_a_mechanism_that_is_not_offered_at_a_second_login_is_refused() -> None:
    client = Conversation()
    client.log_in(lifetime_ms=1000)
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="GSSAPI")
    assert isinstance(client.event(), ConnectionClosed)
    assert client.answer().error_code is ErrorCode.unsupported_sasl_mechanism


def test_another_request_during_a_second_login_is_refused_and_closes() -> None:
    client = Conversation()
    client.log_in(lifetime_ms=1000)
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    client.event()
    client.answers()
    client.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, owners=None)
    assert isinstance(client.event(), ConnectionClosed)
    assert client.answer().error_code is ErrorCode.illegal_sasl_state


# Any bytes


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
