import tracemalloc
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.api_versions.v4.response import ApiVersionsResponse
from kio.schema.create_delegation_token.v1.response import CreateDelegationTokenResponse
from kio.schema.create_delegation_token.v3.request import CreatableRenewers, CreateDelegationTokenRequest
from kio.schema.describe_delegation_token.v1.request import (
    DescribeDelegationTokenRequest as DescribeDelegationTokenRequestV1,
)
from kio.schema.describe_delegation_token.v3.request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v1.request import MetadataRequest as MetadataRequestV1
from kio.schema.renew_delegation_token.v1.request import (
    RenewDelegationTokenRequest as RenewDelegationTokenRequestV1,
)
from kio.schema.renew_delegation_token.v2.request import RenewDelegationTokenRequest
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.serial import entity_reader
from kio.static.protocol import Entity

from kafka_dt_protocol.api.registry import APIS
from kafka_dt_protocol.errors import MalformedMessage
from kafka_dt_protocol.wire.decoding import MAX_ELEMENTS, decode
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.times import from_duration, from_timestamp
from tests.support.protocol.kio_entities import ENTITY_TYPES, entity_id, rich, sparse

OUR_TYPES = [types[version] for api in APIS.values() for types in (api.request, api.response) for version in types]
CREATE_LIFETIME = b"\x00" * 7 + b"\x05"


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def malformed(entity_type: type[Entity], data: bytes) -> str:
    with pytest.raises(MalformedMessage) as caught:
        decode(entity_type, data)
    return caught.value.reason


@pytest.mark.parametrize("entity_type", ENTITY_TYPES, ids=entity_id)
def test_every_message_of_kafka_decodes_as_kio_decodes_it(entity_type: type[Entity]) -> None:
    for entity in (rich(entity_type), sparse(entity_type)):
        data = encode(entity)
        assert decode(entity_type, data) == (entity, len(data))
        assert entity_reader(entity_type)(data, 0) == (entity, len(data))


@pytest.mark.parametrize("entity_type", OUR_TYPES, ids=entity_id)
def test_every_message_cut_short_anywhere_is_malformed(entity_type: type[Entity]) -> None:
    for entity in (rich(entity_type), sparse(entity_type)):
        data = encode(entity)
        for end in range(len(data)):
            malformed(entity_type, data[:end])


@pytest.mark.parametrize("entity_type", OUR_TYPES, ids=entity_id)
def test_decoding_starts_at_the_offset_and_leaves_what_follows(entity_type: type[Entity]) -> None:
    entity = rich(entity_type)
    data = encode(entity)
    assert decode(entity_type, b"head" + data + b"tail", 4) == (entity, 4 + len(data))


@pytest.mark.parametrize("entity_type", OUR_TYPES, ids=entity_id)
@settings(max_examples=30)
@given(data=st.binary(max_size=60))
def test_any_bytes_decode_or_are_malformed(entity_type: type[Entity], data: bytes) -> None:
    try:
        _, end = decode(entity_type, data)
    except MalformedMessage:
        return
    assert 0 <= end <= len(data)


@pytest.mark.parametrize("entity_type", OUR_TYPES, ids=entity_id)
@settings(max_examples=30)
@given(place=st.integers(0, 10_000), change=st.binary(min_size=1, max_size=6))
def test_a_damaged_message_decodes_or_is_malformed(entity_type: type[Entity], place: int, change: bytes) -> None:
    data = encode(rich(entity_type))
    place %= len(data) + 1
    damaged = data[:place] + change + data[place + len(change) :]
    try:
        _, end = decode(entity_type, damaged)
    except MalformedMessage:
        return
    assert 0 <= end <= len(damaged)


HOSTILE_LENGTHS = (b"\x7f\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f")
BYTES_OF_MEMORY_PER_BYTE = 300
"""The dearest is an element of an array: a byte or two that become an object of a few fields."""


@pytest.mark.parametrize("entity_type", OUR_TYPES, ids=entity_id)
def test_what_is_announced_anywhere_in_a_message_costs_no_memory(entity_type: type[Entity]) -> None:
    data = encode(rich(entity_type))
    decode(entity_type, data)
    tracemalloc.start()
    try:
        for place in range(0, len(data), 1 + len(data) // 200):
            for length in HOSTILE_LENGTHS:
                with suppress(MalformedMessage):
                    decode(entity_type, data[:place] + length + data[place + len(length) :])
        assert tracemalloc.get_traced_memory()[1] < 20_000 + BYTES_OF_MEMORY_PER_BYTE * len(data)
    finally:
        tracemalloc.stop()


def owners(count: int) -> bytes:
    return varint(count + 1) + b"\x01\x01\x00" * count + b"\x00"


def test_elements_are_taken_up_to_the_limit() -> None:
    request, _ = decode(DescribeDelegationTokenRequest, owners(MAX_ELEMENTS))
    assert request.owners is not None
    assert len(request.owners) == MAX_ELEMENTS
    assert malformed(DescribeDelegationTokenRequest, owners(MAX_ELEMENTS + 1)) == "too many elements"


def test_the_limit_of_elements_can_be_chosen() -> None:
    decode(DescribeDelegationTokenRequest, owners(3), max_elements=3)
    with pytest.raises(MalformedMessage):
        decode(DescribeDelegationTokenRequest, owners(3), max_elements=2)


def test_tagged_fields_count_as_elements() -> None:
    tags = b"\x07\x00" * (MAX_ELEMENTS + 1)
    assert malformed(SaslAuthenticateRequest, b"\x01" + varint(MAX_ELEMENTS + 1) + tags) == "too many elements"


class TestTaggedFields:
    UNKNOWN = b"\x03" + b"\x09\x03abc" + b"\x05\x00" + b"\x09\x01z"

    def test_unknown_ones_are_skipped_in_any_order_and_also_twice(self) -> None:
        request, end = decode(SaslAuthenticateRequest, b"\x03hi" + self.UNKNOWN)
        assert (request.auth_bytes, end) == (b"hi", 3 + len(self.UNKNOWN))

    def test_unknown_ones_are_skipped_in_the_elements_of_an_array(self) -> None:
        data = b"\x02\x05User\x04bob" + self.UNKNOWN + self.UNKNOWN
        owner = DescribeDelegationTokenOwner(principal_type="User", principal_name="bob")
        assert decode(DescribeDelegationTokenRequest, data) == (
            DescribeDelegationTokenRequest(owners=(owner,)),
            len(data),
        )

    def test_the_largest_tag_number_is_skipped(self) -> None:
        decode(SaslAuthenticateRequest, b"\x01\x01\xff\xff\xff\xff\x0f\x00")

    @pytest.mark.parametrize(
        "tags",
        [
            b"",
            b"\x01",
            b"\x01\x09",
            b"\x01\x09\x01",
            b"\x01\x09\xff\xff\xff\xff\x0f",
            b"\x02\x09\x00",
            b"\xff\xff\xff\xff\x0f",
        ],
    )
    def test_a_buffer_that_is_missing_or_reaches_beyond_the_frame_is_malformed(self, tags: bytes) -> None:
        malformed(SaslAuthenticateRequest, b"\x01" + tags)

    HEAD = b"\x00\x00\x01\x00\x00\x00\x00"  # no error, no APIs, not throttled
    EPOCH = b"\x01\x08" + b"\x00" * 7 + b"\x2a"

    def test_known_ones_are_decoded_beside_unknown_ones_in_any_order(self) -> None:
        data = self.HEAD + b"\x04" + b"\x63\x00" + b"\x03\x01\x01" + self.EPOCH + b"\x00\x01\x01"
        response, end = decode(ApiVersionsResponse, data)
        assert (response.finalized_features_epoch, response.zk_migration_ready, end) == (42, True, len(data))

    def test_absent_ones_have_their_defaults(self) -> None:
        response, _ = decode(ApiVersionsResponse, self.HEAD + b"\x00")
        assert (response.finalized_features_epoch, response.supported_features) == (-1, ())

    @pytest.mark.parametrize(
        "tags",
        [
            b"\x02" + EPOCH + EPOCH,
            b"\x01\x01\x07" + b"\x00" * 7 + b"\x2a",
            b"\x01\x01\x09" + b"\x00" * 9,
            b"\x01\x00\x01\x00",
        ],
        ids=["twice", "announced too short", "announced too long", "null"],
    )
    def test_a_known_one_that_is_wrong_is_malformed(self, tags: bytes) -> None:
        malformed(ApiVersionsResponse, self.HEAD + tags)


class TestLengths:
    @pytest.mark.parametrize(
        ("entity_type", "data"),
        [
            (CreateDelegationTokenRequest, b"\x00\x00\x00" + CREATE_LIFETIME + b"\x00"),
            (CreateDelegationTokenRequest, b"\x00\x00\x02\x00\x01\x00" + CREATE_LIFETIME + b"\x00"),
            (RenewDelegationTokenRequest, b"\x00" + CREATE_LIFETIME + b"\x00"),
            (RenewDelegationTokenRequestV1, b"\xff\xff\xff\xff" + CREATE_LIFETIME),
            (SaslHandshakeRequest, b"\xff\xff"),
        ],
        ids=["array", "compact string", "compact bytes", "bytes", "string"],
    )
    def test_null_where_there_must_be_a_value_is_malformed(self, entity_type: type[Entity], data: bytes) -> None:
        assert malformed(entity_type, data) == "null where there must be a value"

    @pytest.mark.parametrize(
        ("entity_type", "data"),
        [
            (DescribeDelegationTokenRequestV1, b"\xff\xff\xff\xfe"),
            (RenewDelegationTokenRequestV1, b"\x80\x00\x00\x00" + CREATE_LIFETIME),
            (SaslHandshakeRequest, b"\xff\xfe"),
        ],
    )
    def test_a_length_below_minus_one_is_malformed(self, entity_type: type[Entity], data: bytes) -> None:
        assert malformed(entity_type, data) == "a negative length"

    def test_null_is_taken_where_it_is_allowed(self) -> None:
        assert decode(DescribeDelegationTokenRequest, b"\x00\x00")[0].owners is None
        assert decode(DescribeDelegationTokenRequestV1, b"\xff\xff\xff\xff")[0].owners is None
        assert decode(MetadataRequestV1, b"\xff\xff\xff\xff")[0].topics is None

    def test_an_empty_array_is_not_null(self) -> None:
        assert decode(DescribeDelegationTokenRequest, b"\x01\x00")[0].owners == ()

    @pytest.mark.parametrize("length", [b"\x05", b"\x85\x00", b"\x85\x80\x80\x80\x00"])
    def test_a_varint_may_have_more_bytes_than_needed(self, length: bytes) -> None:
        assert decode(SaslAuthenticateRequest, length + b"abcd\x00")[0].auth_bytes == b"abcd"

    def test_a_varint_over_five_bytes_is_malformed(self) -> None:
        data = b"\x85\x80\x80\x80\x80\x00abcd\x00"
        assert malformed(SaslAuthenticateRequest, data) == "a varint over 5 bytes"


class TestText:
    def owner(self, name: bytes) -> bytes:
        return b"\x02\x05User" + varint(len(name) + 1) + name + b"\x00\x00"

    def test_a_string_of_32767_bytes_is_taken(self) -> None:
        request, _ = decode(DescribeDelegationTokenRequest, self.owner(b"x" * 32767))
        assert request.owners is not None
        assert len(request.owners[0].principal_name) == 32767

    def test_a_longer_one_is_malformed(self) -> None:
        data = self.owner(b"x" * 32768)
        assert malformed(DescribeDelegationTokenRequest, data) == "text that is too long"

    @pytest.mark.parametrize("text", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x82", b"\xf5\x80\x80\x80"])
    def test_text_that_is_not_utf8_is_malformed(self, text: bytes) -> None:
        assert malformed(DescribeDelegationTokenRequest, self.owner(text)) == "text that is not UTF-8"

    def test_any_character_is_taken(self) -> None:
        name = "\x00\n\u202e\U0001f418"
        request, _ = decode(DescribeDelegationTokenRequest, self.owner(name.encode()))
        assert request.owners is not None
        assert request.owners[0].principal_name == name


class TestValues:
    @pytest.mark.parametrize(
        ("period_ms", "decoded_ms"),
        [
            (-1, -1),
            (0, 0),
            (2**53 + 1, 2**53 + 1),
            (2**63 - 1, from_duration(timedelta.max)),
            (-(2**63), from_duration(timedelta.min)),
        ],
    )
    def test_durations_are_exact_or_saturate(self, period_ms: int, decoded_ms: int) -> None:
        data = b"\x01" + period_ms.to_bytes(8, "big", signed=True) + b"\x00"
        assert from_duration(decode(RenewDelegationTokenRequest, data)[0].renew_period) == decoded_ms

    @pytest.mark.parametrize(
        ("timestamp_ms", "decoded_ms"),
        [(-1, -1), (0, 0), (1732175201234, 1732175201234), (2**63 - 1, 253402300799999)],
    )
    def test_instants_are_exact_or_saturate(self, timestamp_ms: int, decoded_ms: int) -> None:
        instant = timestamp_ms.to_bytes(8, "big", signed=True)
        data = bytes(2) + bytes(4) + instant * 3 + bytes(2) + bytes(4) + bytes(4)
        response, end = decode(CreateDelegationTokenResponse, data)
        assert from_timestamp(response.expiry_timestamp) == decoded_ms
        assert end == len(data)

    def test_an_error_code_of_the_future_is_an_unknown_error(self) -> None:
        response, _ = decode(SaslAuthenticateResponse, b"\x7f\xff\x00\x01" + bytes(8) + b"\x00")
        assert response.error_code is ErrorCode.unknown_server_error

    @pytest.mark.parametrize("marker", [b"\x00", b"\x02", b"\xfe"])
    def test_a_nullable_entity_is_there_or_null(self, marker: bytes) -> None:
        head = b"\x01" + bytes(4)
        assert decode(DescribeTopicPartitionsRequest, head + b"\xff\x00")[0].cursor is None
        malformed(DescribeTopicPartitionsRequest, head + marker + b"\x01" + bytes(4) + b"\x00\x00")


@given(
    owner=st.none() | st.text(max_size=20),
    renewers=st.lists(st.tuples(st.text(max_size=10), st.text(max_size=10)), max_size=4),
    lifetime_ms=st.integers(-(2**53), 2**53),
)
def test_what_is_encoded_decodes_to_the_same(owner: Any, renewers: Any, lifetime_ms: int) -> None:
    request = CreateDelegationTokenRequest(
        owner_principal_type=owner,
        owner_principal_name=owner,
        renewers=tuple(CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers),
        max_lifetime=timedelta(milliseconds=lifetime_ms),  # type: ignore[arg-type]
    )
    data = encode(request)
    assert decode(CreateDelegationTokenRequest, data) == (request, len(data))
