import io
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.describe_delegation_token.v3.request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kio.schema.errors import ErrorCode
from kio.schema.renew_delegation_token.v2.request import RenewDelegationTokenRequest
from kio.schema.renew_delegation_token.v2.response import RenewDelegationTokenResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.serial import entity_writer
from kio.static.protocol import Entity

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.wire.encoding import EncodedArray, encode, encode_pieces
from kafka_dt_protocol.wire.times import NO_THROTTLE, to_duration, to_timestamp
from tests.support.protocol.kio_entities import ENTITY_TYPES, entity_id, rich, sparse


def owner(name: str) -> DescribeDelegationTokenRequest:
    return DescribeDelegationTokenRequest(
        owners=(DescribeDelegationTokenOwner(principal_type="User", principal_name=name),)
    )


@pytest.mark.parametrize("entity_type", ENTITY_TYPES, ids=entity_id)
def test_every_message_of_kafka_encodes_as_kio_encodes_it(entity_type: type[Entity]) -> None:
    for entity in (rich(entity_type), sparse(entity_type)):
        theirs = io.BytesIO()
        entity_writer(entity_type)(theirs, entity)
        assert encode(entity) == theirs.getvalue()


def test_the_elements_of_an_encoded_array_are_pieces_of_their_own() -> None:
    (entity,) = owner("alice").owners or ()
    ready = encode(entity)
    array: Any = EncodedArray([ready] * 3)
    asked = DescribeDelegationTokenRequest(owners=array)
    pieces = encode_pieces(asked)
    assert [piece for piece in pieces if piece is ready] == [ready] * 3
    assert pieces.size == len(encode(asked))
    assert not any("alice" in repr(each) for each in (array, asked, pieces))
    assert b"".join(pieces) == encode(asked) == encode(DescribeDelegationTokenRequest(owners=(entity,) * 3))
    nothing: Any = EncodedArray()
    assert encode(DescribeDelegationTokenRequest(owners=nothing)) == encode(DescribeDelegationTokenRequest(owners=()))


@pytest.mark.parametrize("duration_ms", [-1, 0, 1, 2**53 + 1, 86399999999999999, -86399999913600000])
def test_durations_are_exact(duration_ms: int) -> None:
    request = RenewDelegationTokenRequest(hmac=b"", renew_period=to_duration(duration_ms))
    assert encode(request) == b"\x01" + duration_ms.to_bytes(8, "big", signed=True) + b"\x00"


@pytest.mark.parametrize(
    ("timestamp_ms", "encoded_ms"),
    [
        (-1, -1),
        (0, 0),
        (1732175201234, 1732175201234),
        (253402300799999, 253402300799999),
        (2**63 - 1, 253402300799999),
    ],
)
def test_instants_are_exact_up_to_the_year_9999(timestamp_ms: int, encoded_ms: int) -> None:
    response = RenewDelegationTokenResponse(
        error_code=ErrorCode.none, expiry_timestamp=to_timestamp(timestamp_ms), throttle_time=NO_THROTTLE
    )
    assert encode(response)[2:10] == encoded_ms.to_bytes(8, "big", signed=True)


def test_text_that_a_peer_would_refuse_is_not_sent() -> None:
    encode(owner("x" * 32767))
    with pytest.raises(LocalProtocolError, match="32768 bytes"):
        encode(owner("x" * 32768))
    with pytest.raises(LocalProtocolError):
        encode(owner("\ud800"))


def test_none_for_a_field_that_cannot_be_null_is_not_sent() -> None:
    with pytest.raises(LocalProtocolError):
        encode(SaslHandshakeRequest(mechanism=None))  # type: ignore[arg-type]
    with pytest.raises(LocalProtocolError):
        encode(owner(None))  # type: ignore[arg-type]


def test_a_number_out_of_range_is_not_sent() -> None:
    response = RenewDelegationTokenResponse(
        error_code=ErrorCode.none,
        expiry_timestamp=to_timestamp(0),
        throttle_time=timedelta(days=999),  # type: ignore[arg-type]
    )
    with pytest.raises(LocalProtocolError, match="RenewDelegationTokenResponse"):
        encode(response)
