"""The requests of a login are read as the general decoder reads them, whatever their bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.api.responses import build
from kafka_dt_protocol.errors import MalformedMessage
from kafka_dt_protocol.login.messages import decode_opening, decode_token
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.encoding import encode

HEADERS = st.binary(max_size=40)
OPENINGS = [(key, version) for key in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE) for version in APIS[key].request]
LONG = st.integers(16_370, 16_400).map(lambda size: bytes(range(256)) * (size // 256) + bytes(size % 256))
"""Around the length that takes a third byte to say; Hypothesis draws no bytes of this length."""
TOKEN_VERSIONS = tuple(APIS[ApiKey.SASL_AUTHENTICATE].request)


def outcome(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except MalformedMessage as error:
        return str(error)


def generally(key: ApiKey, version: int, content: bytes, offset: int) -> Any:
    return decode(APIS[key].request[version], content, offset, max_elements=APIS[key].max_elements)[0]


@pytest.mark.parametrize("version", TOKEN_VERSIONS)
@given(header=HEADERS, token=st.binary(max_size=300) | LONG)
@example(header=b"", token=b"")
@example(header=b"", token=bytes(126))
@example(header=b"", token=bytes(127))
@example(header=b"", token=bytes(16_382))
@example(header=b"", token=bytes(16_383))
def test_a_token_comes_out_as_it_went_in(version: int, header: bytes, token: bytes) -> None:
    body = encode(build(APIS[ApiKey.SASL_AUTHENTICATE].request[version], auth_bytes=token))
    assert decode_token(version, header + body, len(header)) == token
    assert decode_token(version, header + body + b"more", len(header)) == token


@pytest.mark.parametrize("version", TOKEN_VERSIONS)
@given(header=HEADERS, body=st.binary(max_size=40))
@example(header=b"", body=b"\xff\xff\xff\xff\x00")
@example(header=b"", body=b"\x80\x80\x00")
@example(header=b"", body=b"\x00\x00")
@example(header=b"", body=b"\x01\x01\x00\x00")
@example(header=b"", body=b"\x82\x00a\x00")
def test_any_bytes_are_a_token_or_wrong_as_the_decoder_says(version: int, header: bytes, body: bytes) -> None:
    content = header + body
    expected = outcome(lambda: generally(ApiKey.SASL_AUTHENTICATE, version, content, len(header)).auth_bytes)
    assert outcome(lambda: decode_token(version, content, len(header))) == expected


@pytest.mark.parametrize(("key", "version"), OPENINGS)
@given(header=HEADERS, body=st.binary(max_size=40))
def test_any_opening_is_what_the_decoder_says_also_the_second_time(
    key: ApiKey, version: int, header: bytes, body: bytes
) -> None:
    content = header + body
    expected = outcome(lambda: generally(key, version, content, len(header)))
    for _ in range(2):
        assert outcome(lambda: decode_opening(key, version, content, len(header))) == expected


def test_a_long_opening_is_read_as_well() -> None:
    entity = build(APIS[ApiKey.SASL_HANDSHAKE].request[1], mechanism="M" * 1_000)
    assert decode_opening(ApiKey.SASL_HANDSHAKE, 1, encode(entity), 0) == entity
