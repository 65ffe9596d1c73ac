"""Answers that are there as a whole: their addresses change, and nothing else."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage
from kafka_dt_protocol.rewriting.node_addresses import Advertise
from kafka_dt_protocol.rewriting.replacing import rewrite
from tests.unit.protocol.rewriting.node_answers import (
    CARRIERS,
    GATEWAYS,
    advertised,
    answer_in,
    answers,
    content_of,
    response_type,
    rich_answer,
    to,
)

every_version = pytest.mark.parametrize(("api_key", "version"), CARRIERS)
DESCRIBE_CLUSTER, FIND_COORDINATOR, METADATA, PRODUCE = 60, 10, 3, 0
FIRST_BATCHED_VERSION = 4


@every_version
@settings(max_examples=25, deadline=None)
@given(data=st.data(), advertise=GATEWAYS)
def test_what_is_rewritten_is_the_same_answer_with_other_addresses(
    api_key: int, version: int, data: st.DataObject, advertise: Advertise
) -> None:
    kind = response_type(api_key, version)
    answer = data.draw(answers(api_key, version))
    content = content_of(answer, correlation_id=-3)
    rewritten = rewrite(api_key, version, content, advertise)
    assert rewritten[:4] == content[:4]
    assert answer_in(rewritten, kind) == advertised(answer, advertise)


@every_version
def test_rewriting_there_and_back_gives_the_same_bytes(api_key: int, version: int) -> None:
    content = content_of(rich_answer(api_key, version))
    nodes: list[tuple[int, str, int]] = []

    def there(node_id: int, host: str, port: int) -> tuple[str, int]:
        nodes.append((node_id, host, port))
        return "gateway", 9092

    def back(node_id: int, host: str, port: int) -> tuple[str, int]:
        known_id, known_host, known_port = nodes.pop(0)
        assert (node_id, host, port) == (known_id, "gateway", 9092)
        return known_host, known_port

    rewritten = rewrite(api_key, version, content, there)
    assert nodes
    assert rewrite(api_key, version, rewritten, back) == content


@every_version
def test_the_content_itself_comes_back_when_nothing_changes(api_key: int, version: int) -> None:
    content = content_of(rich_answer(api_key, version))
    assert rewrite(api_key, version, content, lambda _, host, port: (host, port)) is content


@every_version
@settings(max_examples=25, deadline=None)
@given(place=st.integers(0, 10_000), change=st.binary(min_size=1, max_size=6))
def test_a_damaged_answer_is_rewritten_or_malformed(api_key: int, version: int, place: int, change: bytes) -> None:
    content = content_of(rich_answer(api_key, version))
    place %= len(content)
    with suppress(MalformedMessage):
        rewrite(api_key, version, content[:place] + change + content[place + len(change) :], to("gateway", 9092))


@every_version
@settings(max_examples=25, deadline=None)
@given(content=st.binary(max_size=60))
def test_any_bytes_are_rewritten_or_malformed(api_key: int, version: int, content: bytes) -> None:
    with suppress(MalformedMessage):
        rewrite(api_key, version, content, to("gateway", 9092))


@every_version
def test_an_answer_cut_short_before_its_last_address_is_malformed(api_key: int, version: int) -> None:
    content = content_of(rich_answer(api_key, version))
    marked = rewrite(api_key, version, content, lambda *_: ("the last host", 1))
    for end in range(marked.rindex(b"the last host") + len("the last host")):
        with pytest.raises(MalformedMessage):
            rewrite(api_key, version, marked[:end], to("gateway", 9092))


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize(
    ("node_id", "host", "port"), [(-1, "", -1), (-1, "b", 9092), (2, "", 9092), (2, "b", -1), (2, "b", 0)]
)
def test_what_leads_nowhere_stays_as_it_is(version: int, node_id: int, host: str, port: int) -> None:
    answer: Any = rich_answer(FIND_COORDINATOR, version)
    nowhere = {"node_id": node_id, "host": host, "port": port}
    if version < FIRST_BATCHED_VERSION:
        answer = replace(answer, **nowhere)
    else:
        answer = replace(answer, coordinators=tuple(replace(each, **nowhere) for each in answer.coordinators))
    content = content_of(answer)
    assert rewrite(FIND_COORDINATOR, version, content, to("gateway", 9092)) is content


def test_a_fenced_broker_is_nobody_to_go_to() -> None:
    answer = rich_answer(DESCRIBE_CLUSTER, 2)
    there, fenced = answer.brokers
    answer = replace(answer, brokers=(replace(there, broker_id=1), replace(fenced, broker_id=2, is_fenced=True)))
    asked: list[int] = []

    def advertise(node_id: int, _host: str, _port: int) -> tuple[str, int]:
        asked.append(node_id)
        return "gateway", 9092

    rewritten = rewrite(DESCRIBE_CLUSTER, 2, content_of(answer), advertise)
    brokers = answer_in(rewritten, type(answer)).brokers
    assert [broker.host for broker in brokers] == ["gateway", fenced.host]
    assert asked == [1]


UNKNOWN = b"\x03" + b"\x63\x03abc" + b"\x05\x00" + b"\x63\x01z"
"""Three tagged fields of the future, out of order, one of them twice."""


def metadata(host: bytes, port: bytes) -> bytes:
    broker = bytes(3) + b"\x02" + host + port + b"\x00" + UNKNOWN
    return bytes(3) + b"\x07" + UNKNOWN + bytes(4) + b"\x02" + broker + b"\x08cluster" + b"behind, not looked at"


def test_tagged_fields_of_the_future_stay_in_their_order() -> None:
    content = metadata(b"\x0bbroker-two", b"\x00\x00\x23\x84")
    assert rewrite(METADATA, 12, content, to("gw", 19092)) == metadata(b"\x03gw", b"\x00\x00\x4a\x96")


def produce(field: bytes) -> bytes:
    return bytes(3) + b"\x07" + UNKNOWN + b"\x01" + bytes(4) + b"\x03" + b"\x63\x01a" + field + b"\x02\x00" + b"rest"


def test_a_tagged_field_gets_the_size_of_its_new_content() -> None:
    node, behind = b"\x00\x00\x00\x02", b"\x03r2" + UNKNOWN
    ports = b"\x00\x00\x23\x84", b"\x00\x00\x4a\x96"
    before = b"\x02" + node + b"\x0bbroker-two" + ports[0] + behind
    after = b"\x02" + node + b"\xac\x02" + b"g" * 299 + ports[1] + behind
    content = produce(b"\x00" + bytes([len(before)]) + before)
    rewritten = rewrite(PRODUCE, 10, content, to("g" * 299, 19092))
    assert rewritten == produce(b"\x00\xc4\x02" + after)
    assert len(after) == 0x44 + (2 << 7)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (b"\x02" + b"\x00\x01\x01" * 2, "a known tagged field twice"),
        (b"\x01" + b"\x00\x02\x01\x00", "a tagged field of another size than announced"),
        (b"\x01" + b"\x00\x7f\x01", "a tagged field beyond its end"),
        (b"\x01" + b"\x00\x09\x02" + bytes(7) + b"\x01", "it ends early"),
        (b"\x01" + b"\x00\x0c\x02" + bytes(4) + b"\x02\xff" + bytes(6), "text that is not UTF-8"),
        (b"\x01" + b"\x00\x0c\x02" + bytes(4) + b"\x81\x80\x02" + bytes(6), "text that is too long"),
        (b"\x80\x80\x80\x80\x80\x00", "a varint over 5 bytes"),
    ],
)
def test_tagged_fields_that_are_wrong_are_malformed(fields: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        rewrite(PRODUCE, 10, bytes(4) + b"\x00\x01" + bytes(4) + fields, to("gateway", 9092))
    assert caught.value.reason == reason


def test_a_length_below_minus_one_is_malformed() -> None:
    with pytest.raises(MalformedMessage) as caught:
        rewrite(METADATA, 0, bytes(4) + b"\xff\xff\xff\xfe", to("gateway", 9092))
    assert caught.value.reason == "a negative length"


@pytest.mark.parametrize(
    ("host", "port"), [("x" * 32768, 1), ("gateway", 2**31), ("\ud800", 1)], ids=["host", "port", "text"]
)
def test_what_does_not_fit_the_wire_cannot_be_advertised(host: str, port: int) -> None:
    content = content_of(rich_answer(METADATA, 12))
    with pytest.raises(LocalProtocolError):
        rewrite(METADATA, 12, content, lambda *_: (host, port))


def test_an_error_of_who_advertises_is_not_taken_for_one_of_the_answer() -> None:
    def nobody(*_: object) -> tuple[str, int]:
        raise IndexError

    with pytest.raises(IndexError):
        rewrite(METADATA, 12, content_of(rich_answer(METADATA, 12)), nobody)
