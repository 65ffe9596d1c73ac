"""How much a request may hold, before and after the login."""

from __future__ import annotations

import struct

import pytest

from kafka_dt_protocol import (
    APIS,
    ApiKey,
    ConnectionClosed,
    Event,
    Limits,
    RequestReceived,
    ServerConnection,
    frame,
)
from kafka_dt_protocol.api.table import MAX_TAGGED_FIELDS
from tests.unit.protocol.conversation import NOW

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
