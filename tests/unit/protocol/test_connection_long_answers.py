"""How a long answer is given to be written: in parts, with a count of what is left."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt_protocol import (
    ApiKey,
    Limits,
    RequestHeader,
    RequestReceived,
    ServerConnection,
    build,
    encode_request,
    frame,
)
from kafka_dt_protocol.api.registry import APIS
from kafka_dt_protocol.wire.encoding import EncodedArray
from kafka_dt_protocol.wire.frames import LONG_WRITE_BYTES

DESCRIBE = ApiKey.DESCRIBE_DELEGATION_TOKEN
LIMITS = Limits(before_login_bytes=1024, after_login_bytes=1024)


def answered(*sizes: int) -> ServerConnection:
    """A connection that has answered a describe with entries of these sizes, behind two answers of its own."""
    connection = ServerConnection((), LIMITS)
    versions = encode_request(
        RequestHeader(ApiKey.API_VERSIONS, 0, 1, None), build(APIS[ApiKey.API_VERSIONS].request[0])
    )
    describe = encode_request(RequestHeader(DESCRIBE, 3, 2, None), build(APIS[DESCRIBE].request[3], owners=None))
    connection.receive_data(frame(versions) * 2 + frame(describe))
    assert isinstance(connection.next_event(0), RequestReceived)
    entries = EncodedArray(bytes(size) for size in sizes)
    connection.respond(build(APIS[DESCRIBE].response[3], error_code=ErrorCode.none, tokens=entries))
    return connection


@pytest.mark.parametrize("sizes", [(), (100,), (1_000,) * 2_000, (5 * LONG_WRITE_BYTES,)])
def test_what_is_unsent_is_what_is_still_to_be_given(sizes: tuple[int, ...]) -> None:
    connection = answered(*sizes)
    left = []
    parts = []
    while connection.unsent:
        left.append(connection.unsent)
        parts.append(connection.data_to_send())
    assert left == [sum(map(len, parts[number:])) for number in range(len(parts))]
    assert not connection.data_to_send()


@pytest.mark.parametrize("sizes", [(), (100,), (1_000,) * 200])
def test_an_answer_that_is_not_long_is_given_whole(sizes: tuple[int, ...]) -> None:
    connection = answered(*sizes)
    assert not connection.answers_at_length
    assert len(connection.data_to_send()) > sum(sizes)
    assert connection.unsent == 0


def test_a_long_answer_is_given_in_several_parts() -> None:
    connection = answered(*(1_000,) * 600)
    parts = []
    while connection.answers_at_length:
        parts.append(len(connection.data_to_send()))
    assert len(parts) == 3
    assert max(parts) < LONG_WRITE_BYTES + 1_000
    assert connection.unsent == 0


def test_nothing_is_unsent_when_the_connection_is_lost() -> None:
    connection = answered(*(1_000,) * 2_000)
    connection.discard()
    assert connection.unsent == 0
    assert not connection.data_to_send()
