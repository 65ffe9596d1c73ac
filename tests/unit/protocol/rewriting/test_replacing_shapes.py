"""Answers that are recognised as such without addresses: never one that has some."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt_protocol.errors import MalformedMessage
from kafka_dt_protocol.rewriting.replacing import MAX_CONTENT_BYTES, MAX_SHAPES, Shapes, rewrite
from tests.unit.protocol.rewriting.node_answers import CARRIERS, answers, content_of, rich_answer

PRODUCE, METADATA = 0, 3
VERSION = 13
every_version = pytest.mark.parametrize(("api_key", "version"), CARRIERS)


def elsewhere(_node_id: int, host: str, _port: int) -> tuple[str, int]:
    return f"not {host}"[:100], 1


def produced(*, nodes: bool = False, partitions: int = 1, **values: Any) -> bytes:
    """An answer to a Produce, whose partitions have those values."""
    answer = rich_answer(PRODUCE, VERSION)
    topic = answer.responses[0]
    usual: dict[str, Any] = {"record_errors": (), "error_message": None, **values}
    partition = replace(topic.partition_responses[0], **usual)
    partition = replace(partition, current_leader=type(partition.current_leader)())
    topic = replace(topic, partition_responses=(partition,) * partitions)
    node = replace(answer.node_endpoints[0], host="broker", rack=None)
    return content_of(replace(answer, responses=(topic,), node_endpoints=(node,) if nodes else ()))


def taught(*contents: bytes) -> Shapes:
    shapes = Shapes()
    for each in contents:
        shapes.learn(PRODUCE, VERSION, each)
    return shapes


@every_version
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_what_is_recognised_has_nothing_to_rewrite(api_key: int, version: int, data: st.DataObject) -> None:
    shapes = Shapes()
    first, second = (content_of(data.draw(answers(api_key, version))) for _ in range(2))
    shapes.learn(api_key, version, first)
    changed = bytearray(first)
    for place in data.draw(st.lists(st.integers(0, len(first) - 1), max_size=3)):
        changed[place] = data.draw(st.integers(0, 255))
    for content in (first, second, bytes(changed)):
        if shapes.recognises(api_key, version, content):
            assert rewrite(api_key, version, content, elsewhere) is content


def test_answers_that_differ_in_their_numbers_alone_are_recognised() -> None:
    shapes = taught(produced(base_offset=1, index=0))
    assert shapes.recognises(PRODUCE, VERSION, produced(base_offset=2**40, index=7))
    assert not shapes.recognises(PRODUCE, VERSION, produced(partitions=2))
    assert not shapes.recognises(PRODUCE, VERSION - 1, produced())


def test_an_answer_with_addresses_is_not_learned() -> None:
    content = produced(nodes=True)
    assert not taught(content).recognises(PRODUCE, VERSION, content)


def test_an_answer_as_long_as_a_known_one_but_with_addresses_is_not_recognised() -> None:
    with_nodes = produced(nodes=True, error_message="x" * 20)
    more = len(with_nodes) - len(produced(error_message="x" * 20))
    without = produced(error_message="x" * (20 + more))
    assert len(without) == len(with_nodes)
    assert not taught(without).recognises(PRODUCE, VERSION, with_nodes)


def test_answers_whose_addresses_are_in_no_tagged_field_are_not_learned() -> None:
    shapes = Shapes()
    content = content_of(replace(rich_answer(METADATA, VERSION), brokers=()))
    shapes.learn(METADATA, VERSION, content)
    assert not shapes.recognises(METADATA, VERSION, content)


def test_a_broken_answer_is_not_learned() -> None:
    with pytest.raises((MalformedMessage, IndexError)):
        taught(produced()[:-1])


def test_long_answers_and_ever_new_ones_are_not_remembered() -> None:
    contents = [produced(partitions=each) for each in range(1, 2 + MAX_CONTENT_BYTES // 33)]
    shapes = taught(*contents)
    known = [shapes.recognises(PRODUCE, VERSION, each) for each in contents]
    assert known == [len(each) <= MAX_CONTENT_BYTES for each in contents]
    assert not all(known)
    many = [produced(error_message="x" * each) for each in range(MAX_SHAPES + 1)]
    shapes = taught(*many)
    assert [shapes.recognises(PRODUCE, VERSION, each) for each in many] == [True] * MAX_SHAPES + [False]
