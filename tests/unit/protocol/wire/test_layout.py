from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

import pytest
from kio.schema.create_delegation_token.v3.request import CreatableRenewers, CreateDelegationTokenRequest
from kio.schema.describe_delegation_token.v1.request import DescribeDelegationTokenRequest
from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest
from kio.schema.errors import ErrorCode
from kio.schema.fetch_snapshot.v1.response import LeaderIdAndEpoch, PartitionSnapshot
from kio.schema.metadata.v12.request import MetadataRequestTopic
from kio.schema.request_header.v2 import RequestHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16
from kio.static.protocol import Entity

from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.layout import EntityLayout, FieldLayout, entity_layout


def fields(layout: EntityLayout) -> dict[str, FieldLayout]:
    return {field.name: field for field in (*layout.plain, *layout.tagged)}


def test_fields_keep_the_order_of_the_wire() -> None:
    names = [field.name for field in entity_layout(CreateDelegationTokenRequest).plain]
    assert names == ["owner_principal_type", "owner_principal_name", "renewers", "max_lifetime"]


def test_a_field_says_its_type_and_whether_it_may_be_null() -> None:
    layout = fields(entity_layout(CreateDelegationTokenRequest))
    owner = layout["owner_principal_name"]
    assert (owner.kafka_type, owner.nullable, owner.is_array, owner.entity) == ("string", True, False, None)
    lifetime = layout["max_lifetime"]
    assert (lifetime.kafka_type, lifetime.nullable) == ("timedelta_i64", False)


def test_an_array_of_entities_names_them_and_may_itself_be_null() -> None:
    renewers = fields(entity_layout(CreateDelegationTokenRequest))["renewers"]
    assert (renewers.entity, renewers.is_array, renewers.nullable) == (CreatableRenewers, True, False)
    owners = fields(entity_layout(DescribeDelegationTokenRequest))["owners"]
    assert (owners.is_array, owners.nullable, owners.flexible) == (True, True, False)


def test_an_entity_may_be_null() -> None:
    cursor = fields(entity_layout(DescribeTopicPartitionsRequest))["cursor"]
    assert cursor.entity is not None
    assert (cursor.is_array, cursor.nullable) == (False, True)


def test_a_uuid_may_be_null() -> None:
    assert fields(entity_layout(MetadataRequestTopic))["topic_id"].nullable


def test_tagged_fields_come_last_by_tag_with_what_their_absence_means() -> None:
    layout = entity_layout(PartitionSnapshot)
    assert [field.tag for field in layout.tagged] == sorted(field.tag or 0 for field in layout.tagged)
    leader = fields(layout)["current_leader"]
    assert leader.tag == 0
    assert isinstance(leader.default, LeaderIdAndEpoch)
    assert (leader.default.leader_id, leader.default.leader_epoch) == (0, 0)


def test_the_client_id_has_the_old_form_also_in_the_flexible_header() -> None:
    layout = entity_layout(RequestHeader)
    assert layout.flexible
    assert not fields(layout)["client_id"].flexible
    assert fields(layout)["correlation_id"].flexible


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    numbers: tuple[int, ...] = field(metadata={"kafka_type": "int32"})
    code: ErrorCode = field(metadata={"kafka_type": "error_code"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WithTaggedFields:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    text: str = field(metadata={"kafka_type": "string", "tag": 1})
    item: Item = field(metadata={"tag": 0})
    numbers: tuple[int, ...] | None = field(metadata={"kafka_type": "int32", "tag": 7}, default=())


EMPTY = WithTaggedFields(text="", item=Item(numbers=(), code=ErrorCode.none))


def test_absent_tagged_fields_without_a_default_are_the_zero_of_their_type() -> None:
    assert decode(WithTaggedFields, b"\x00") == (EMPTY, 1)
    assert encode(EMPTY) == b"\x00"


def test_tagged_fields_are_written_by_tag_where_they_differ_from_their_default() -> None:
    entity = WithTaggedFields(text="x", item=Item(numbers=(5,), code=ErrorCode.none), numbers=None)
    data = bytes.fromhex("03 00 08 02 00000005 0000 00 01 02 02 78 07 01 00")
    assert encode(entity) == data
    assert decode(WithTaggedFields, data) == (entity, len(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class WithRareTypes:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = False
    always: UUID = field(metadata={"kafka_type": "uuid"})
    quota: float = field(metadata={"kafka_type": "float64"})


def test_a_uuid_that_may_not_be_null_and_a_number_with_a_point() -> None:
    entity = WithRareTypes(always=UUID(int=0), quota=0.5)
    data = bytes(16) + bytes.fromhex("3fe0000000000000")
    assert encode(entity) == data
    assert decode(WithRareTypes, data) == (entity, 24)


@pytest.mark.parametrize("number", ["7ff0000000000000", "fff0000000000000", "7ff8000000000000"])
def test_a_number_that_is_not_finite_is_malformed(number: str) -> None:
    with pytest.raises(MalformedMessage):
        decode(WithRareTypes, bytes(16) + bytes.fromhex(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutType:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfUnknownType:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    text: str = field(metadata={"kafka_type": "int128"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WithNullableNumber:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    number: int | None = field(metadata={"kafka_type": "int32"})


@pytest.mark.parametrize("entity_type", [WithoutType, OfUnknownType, WithNullableNumber])
def test_a_form_that_kafkas_schema_does_not_have_is_our_mistake(entity_type: type[Entity]) -> None:
    with pytest.raises(LocalProtocolError):
        decode(entity_type, bytes(16))


@pytest.mark.parametrize("entity", [OfUnknownType(text=""), WithNullableNumber(number=None)])
def test_nor_is_it_sent(entity: Entity) -> None:
    with pytest.raises(LocalProtocolError):
        encode(entity)
