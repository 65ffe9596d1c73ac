"""Fields are skipped to their last byte, however they are cut."""

from __future__ import annotations

import pytest
from kio.schema.describe_topic_partitions.v0.response import DescribeTopicPartitionsResponse
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.static.constants import EntityType
from kio.static.protocol import Entity

from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage
from kafka_dt_protocol.rewriting.skipping import Program, Walk, program, skip
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.layout import FieldLayout, entity_layout
from tests.support.protocol.kio_entities import ENTITY_TYPES, entity_id, rich, sparse


def holds_nullable_entity(entity_type: type[Entity]) -> bool:
    layout = entity_layout(entity_type)

    def nullable(field: FieldLayout) -> bool:
        if field.entity is None:
            return False
        return (field.nullable and not field.is_array) or field.nullable_items or holds_nullable_entity(field.entity)

    return any(map(nullable, layout.plain))


SKIPPED = [
    entity_type
    for entity_type in ENTITY_TYPES
    if entity_type.__type__ is EntityType.response and not holds_nullable_entity(entity_type)
]


def program_of(entity_type: type[Entity]) -> Program:
    layout = entity_layout(entity_type)
    return program(layout.plain, tagged=layout.flexible)


@pytest.mark.parametrize("entity_type", SKIPPED, ids=entity_id)
def test_every_answer_of_kafka_is_skipped_to_its_last_byte(entity_type: type[Entity]) -> None:
    for entity in (rich(entity_type), sparse(entity_type)):
        data = encode(entity)
        assert skip(program_of(entity_type), b"head" + data + b"tail", 4) == 4 + len(data)


@pytest.mark.parametrize("entity_type", SKIPPED[::10], ids=entity_id)
def test_an_answer_cut_short_anywhere_is_malformed(entity_type: type[Entity]) -> None:
    data, steps = encode(rich(entity_type)), program_of(entity_type)
    for end in range(len(data)):
        with pytest.raises(MalformedMessage):
            skip(steps, data[:end], 0)


@pytest.mark.parametrize("entity_type", SKIPPED[::10], ids=entity_id)
def test_a_walk_goes_on_where_the_bytes_ended(entity_type: type[Entity]) -> None:
    data = encode(rich(entity_type))
    walk = Walk(program_of(entity_type))
    offset = 0
    for end in range(len(data) + 1):
        if offset <= end:
            offset = walk.skip(data[:end], offset)
    assert (walk.finished, offset) == (True, len(data))


def test_what_is_skipped_need_not_be_there_yet() -> None:
    walk = Walk(program_of(SaslAuthenticateResponse))
    assert walk.skip(b"\x00\x00\x00\x81\x80\x40", 0) == 6 + 2**20
    assert not walk.finished
    assert walk.skip(bytes(9), 0) == 9
    assert walk.finished


def test_an_entity_that_may_be_null_is_refused() -> None:
    with pytest.raises(LocalProtocolError):
        program_of(DescribeTopicPartitionsResponse)
