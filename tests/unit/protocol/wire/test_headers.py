from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage, UnknownApi, UnsupportedVersion
from kafka_dt_protocol.wire.decoding import MAX_ELEMENTS
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.headers import (
    MAX_RESPONSE_ELEMENTS,
    RequestHeader,
    decode_response,
    encode_request,
    encode_response,
    parse_request_header,
)
from tests.support.protocol.kio_entities import rich, sparse

VERSIONS = [(int(key), version) for key, api in APIS.items() for version in api.request]
FLEXIBLE_SINCE = {
    3: 9,
    10: 3,
    17: 99,
    18: 3,
    29: 2,
    30: 2,
    31: 2,
    36: 2,
    38: 2,
    39: 2,
    40: 2,
    41: 2,
    50: 0,
    51: 0,
    60: 0,
}
"""The first flexible version of each API that Kafka 3.9 has; kio knows that of others."""
CORRELATION_IDS = st.integers(-(2**31), 2**31 - 1)
CLIENT_IDS = st.none() | st.text(max_size=30)


def request_of(key: int, version: int) -> Any:
    return rich(APIS[ApiKey(key)].request[version])


def is_flexible(key: int, version: int) -> bool:
    return version >= FLEXIBLE_SINCE[key] if key in FLEXIBLE_SINCE else APIS[key].request[version].__flexible__


def header_bytes(key: int, version: int, rest: bytes = b"\x00\x00\x00\x07\x00\x02me") -> bytes:
    return key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + rest


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_a_request_header_has_tagged_fields_where_the_version_is_flexible(key: int, version: int) -> None:
    body = encode(request_of(key, version))
    data = encode_request(RequestHeader(key, version, 7, "me"), request_of(key, version))
    tagged_fields = b"\x00" if is_flexible(key, version) else b""
    assert data == header_bytes(key, version) + tagged_fields + body


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_a_response_header_has_tagged_fields_where_the_version_is_flexible(key: int, version: int) -> None:
    response = rich(APIS[ApiKey(key)].response[version])
    tagged_fields = b"\x00" if is_flexible(key, version) and key != ApiKey.API_VERSIONS else b""
    data = encode_response(key, version, -2, response)
    assert data == b"\xff\xff\xff\xfe" + tagged_fields + encode(response)
    assert decode_response(key, version, data) == (-2, response)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
@given(correlation_id=CORRELATION_IDS, client_id=CLIENT_IDS)
def test_a_header_comes_out_as_it_went_in(key: int, version: int, correlation_id: int, client_id: str | None) -> None:
    header = RequestHeader(key, version, correlation_id, client_id)
    request = sparse(APIS[ApiKey(key)].request[version])
    data = encode_request(header, request)
    parsed, offset = parse_request_header(data)
    assert parsed == header
    assert data[offset:] == encode(request)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_header_or_a_violation(data: bytes) -> None:
    try:
        header, offset = parse_request_header(data)
    except (MalformedMessage, UnknownApi, UnsupportedVersion):
        return
    assert header.api_key in APIS
    assert 10 <= offset <= len(data)


@given(st.sampled_from(VERSIONS), st.binary(max_size=40))
def test_any_bytes_behind_a_known_version_are_a_header_or_malformed(known: tuple[int, int], rest: bytes) -> None:
    try:
        _, offset = parse_request_header(header_bytes(*known, rest))
    except MalformedMessage:
        return
    assert offset <= 4 + len(rest)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_a_header_cut_short_anywhere_is_malformed(key: int, version: int) -> None:
    data = header_bytes(key, version) + (b"\x00" if is_flexible(key, version) else b"")
    assert parse_request_header(data)[1] == len(data)
    for end in range(len(data)):
        with pytest.raises(MalformedMessage):
            parse_request_header(data[:end])


@pytest.mark.parametrize("key", [-1, 0, 1, 42, 52, 4711, 0x6080])
def test_an_unknown_api_is_refused(key: int) -> None:
    with pytest.raises(UnknownApi) as caught:
        parse_request_header(header_bytes(key, 0))
    assert caught.value.api_key == key


@pytest.mark.parametrize("key", [key for key in APIS if key != ApiKey.API_VERSIONS])
def test_a_known_api_in_a_version_that_does_not_exist_is_refused(key: ApiKey) -> None:
    for version in (-1, APIS[key].max_version + 1, 99, 32767):
        with pytest.raises(UnsupportedVersion) as caught:
            parse_request_header(header_bytes(key, version))
        assert (caught.value.api_key, caught.value.api_version) == (key, version)


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_api_versions_of_the_future_has_a_flexible_header(version: int) -> None:
    header, offset = parse_request_header(header_bytes(18, version) + b"\x00garbage")
    assert (header, offset) == (RequestHeader(18, version, 7, "me"), 13)


@pytest.mark.parametrize("version", [-1, -32768])
def test_api_versions_of_a_negative_version_has_an_old_header(version: int) -> None:
    header, offset = parse_request_header(header_bytes(18, version) + b"garbage")
    assert (header, offset) == (RequestHeader(18, version, 7, "me"), 12)


class TestClientId:
    @pytest.mark.parametrize(
        ("rest", "client_id"),
        [
            (b"\xff\xff", None),
            (b"\x00\x00", ""),
            (b"\x00\x03\xe2\x82\xac", "€"),
            (b"\x7f\xff" + b"x" * 32767, "x" * 32767),
        ],
    )
    def test_any_text_and_null_are_taken(self, rest: bytes, client_id: str | None) -> None:
        header, _ = parse_request_header(header_bytes(17, 1, bytes(4) + rest))
        assert header.client_id == client_id

    @pytest.mark.parametrize("rest", [b"\xff\xfe", b"\x00\x01\xff", b"\x00\x02x"])
    def test_other_lengths_and_bytes_that_are_no_text_are_malformed(self, rest: bytes) -> None:
        with pytest.raises(MalformedMessage):
            parse_request_header(header_bytes(17, 1, bytes(4) + rest))


def test_unknown_tagged_fields_of_a_header_are_skipped() -> None:
    tagged_fields = b"\x02\x07\x01x\x03\x00"
    data = header_bytes(36, 2) + tagged_fields
    assert parse_request_header(data) == (RequestHeader(36, 2, 7, "me"), len(data))
    response = b"\x00\x00\x00\x07" + tagged_fields + encode(rich(APIS[ApiKey.SASL_AUTHENTICATE].response[2]))
    assert decode_response(36, 2, response)[0] == 7


@pytest.mark.parametrize("asked", range(5))
def test_a_server_that_refuses_the_version_of_api_versions_is_understood(asked: int) -> None:
    refusal = APIS.api_versions(0, ErrorCode.unsupported_version)
    assert decode_response(18, asked, encode_response(18, 0, 7, refusal)) == (7, refusal)


def test_a_client_takes_longer_lists_than_a_server_within_a_limit() -> None:
    def mechanisms(count: int) -> bytes:
        return b"\x00\x00\x00\x07\x00\x00" + count.to_bytes(4, "big") + bytes(2 * count)

    _, response = decode_response(17, 1, mechanisms(MAX_ELEMENTS + 1))
    assert len(response.mechanisms) == MAX_ELEMENTS + 1
    with pytest.raises(MalformedMessage):
        decode_response(17, 1, mechanisms(MAX_RESPONSE_ELEMENTS + 1))


@pytest.mark.parametrize("data", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x01", b"\x00\x00\x00\x01\x00"])
def test_a_response_cut_short_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_response(18, 4, data)


def test_only_the_entity_of_the_api_and_version_is_sent() -> None:
    other = rich(APIS[ApiKey.SASL_AUTHENTICATE].request[1])
    with pytest.raises(LocalProtocolError):
        encode_request(RequestHeader(36, 2, 1, None), other)
    with pytest.raises(LocalProtocolError):
        encode_response(36, 1, 1, other)
    with pytest.raises(LocalProtocolError):
        encode_response(0, 1, 1, other)


def test_a_response_to_what_cannot_have_been_asked_is_our_mistake() -> None:
    with pytest.raises(LocalProtocolError):
        decode_response(36, 9, b"")
    with pytest.raises(LocalProtocolError):
        decode_response(99, 0, b"")


def test_a_number_that_no_header_holds_is_our_mistake() -> None:
    with pytest.raises(LocalProtocolError):
        encode_request(RequestHeader(36, 1, 2**31, None), request_of(36, 1))


def test_the_token_apis_speak_version_0_in_the_layout_of_version_1() -> None:
    request = request_of(40, 0)
    data = encode_request(RequestHeader(40, 0, 7, "me"), request)
    assert data == header_bytes(40, 0) + encode(request_of(40, 1))
