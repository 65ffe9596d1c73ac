"""Answers that are sent on while they arrive: any cut of the bytes gives as many bytes and the same answer."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchResponse

from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage
from kafka_dt_protocol.rewriting.node_addresses import Advertise, ends_with_endpoints
from kafka_dt_protocol.rewriting.replacing import MAX_TAIL_BYTES, AddressesAtEnd, rewrite
from tests.support.protocol.kio_entities import rich
from tests.unit.protocol.rewriting.node_answers import (
    CARRIERS,
    GATEWAYS,
    advertised,
    answer_in,
    answers,
    content_of,
    response_type,
    to,
)

STREAMED = [(api_key, version) for api_key, version in CARRIERS if ends_with_endpoints(api_key, version)]
every_version = pytest.mark.parametrize(("api_key", "version"), STREAMED)
FETCH, SHARE_FETCH = 1, 78


def streamed(api_key: int, version: int, chunks: Iterable[bytes], advertise: Advertise) -> bytes:
    chunks = list(chunks)
    answer = AddressesAtEnd(api_key, version, sum(map(len, chunks)), advertise)
    sent = bytearray()
    for chunk in chunks:
        answer.receive_data(chunk)
        sent += answer.take()
        assert answer.take() == b""
    return bytes(sent)


def cut(content: bytes, places: Iterable[int]) -> list[bytes]:
    ends = [*sorted(place % len(content) for place in places), len(content)]
    return [content[start:end] for start, end in zip([0, *ends], ends, strict=False) if end > start]


def addresses(host: str) -> Any:
    """An answer of one endpoint."""
    kind = response_type(FETCH, 17)
    answer: Any = rich(kind)
    endpoint = replace(answer.node_endpoints[0], node_id=1, host=host, port=9092, rack=None)
    return replace(answer, node_endpoints=(endpoint,))


@every_version
@settings(max_examples=40, deadline=None)
@given(data=st.data(), advertise=GATEWAYS, places=st.lists(st.integers(0, 10_000), max_size=8))
def test_any_cut_gives_as_many_bytes_and_the_same_answer(
    api_key: int, version: int, data: st.DataObject, advertise: Advertise, places: list[int]
) -> None:
    kind = response_type(api_key, version)
    answer = data.draw(answers(api_key, version))
    content = content_of(answer)
    sent = streamed(api_key, version, cut(content, places), advertise)
    assert len(sent) == len(content)
    came = answer_in(sent, kind)
    wanted = advertised(answer, advertise).node_endpoints
    left_out = len(wanted) - len(came.node_endpoints)
    assert came == replace(answer, node_endpoints=wanted[: len(wanted) - left_out])
    if len(content_of(replace(answer, node_endpoints=wanted))) == len(content):
        assert not left_out


@every_version
def test_byte_by_byte_as_whole(api_key: int, version: int) -> None:
    content = content_of(rich(response_type(api_key, version)))
    single = [content[place : place + 1] for place in range(len(content))]
    assert streamed(api_key, version, single, to("gw", 9092)) == streamed(api_key, version, [content], to("gw", 9092))


@every_version
def test_without_a_change_all_bytes_stay_as_they_are(api_key: int, version: int) -> None:
    content = content_of(rich(response_type(api_key, version)))
    for chunks in ([content], cut(content, [50, 51, 700])):
        assert streamed(api_key, version, chunks, lambda _, host, port: (host, port)) == content


@every_version
def test_addresses_of_the_same_length_are_rewritten_as_in_a_whole_answer(api_key: int, version: int) -> None:
    content = rewrite(
        api_key, version, content_of(rich(response_type(api_key, version))), lambda *_: ("broker-2.internal", 9092)
    )
    sent = streamed(api_key, version, [content], lambda *_: ("gateway.example.c", 19092))
    assert sent == rewrite(api_key, version, content, lambda *_: ("gateway.example.c", 19092))


@pytest.mark.parametrize("shorter", [*range(2, 8), 126, 127, 128, 129, 130, 131, 132, 133, 140])
def test_room_that_is_left_is_taken_up_by_an_unknown_tagged_field(shorter: int) -> None:
    content = content_of(addresses("x" * 190))
    sent = streamed(FETCH, 17, [content], lambda *_: ("y" * (190 - shorter), 1))
    assert len(sent) == len(content)
    (endpoint,) = answer_in(sent, response_type(FETCH, 17)).node_endpoints
    assert (endpoint.host, endpoint.port) == ("y" * (190 - shorter), 1)


@pytest.mark.parametrize("shorter", [2, 128, 129])
def test_another_client_skips_that_field(shorter: int) -> None:
    content = content_of(replace(addresses("x" * 190), responses=()))
    sent = streamed(FETCH, 17, [content], lambda *_: ("y" * (190 - shorter), 1))
    response = FetchResponse.decode(sent[5:], version=17)
    assert [(each.host, each.port) for each in response.node_endpoints] == [("y" * (190 - shorter), 1)]
    assert len(response.unknown_tags) == 1


@pytest.mark.parametrize("longer", [-1, 1, 100])
def test_a_node_for_which_there_is_no_room_is_left_out(longer: int) -> None:
    answer = addresses("x" * 90)
    content = content_of(answer)
    sent = streamed(FETCH, 17, [content], lambda *_: ("y" * (90 + longer), 1))
    assert len(sent) == len(content)
    assert b"xxxx" not in sent
    assert answer_in(sent, response_type(FETCH, 17)) == replace(answer, node_endpoints=())


@every_version
def test_the_first_nodes_are_kept_when_there_is_no_room_for_all(api_key: int, version: int) -> None:
    kind = response_type(api_key, version)
    answer: Any = rich(kind)
    endpoint = replace(answer.node_endpoints[0], host="x" * 20, rack=None)
    endpoints = tuple(replace(endpoint, node_id=node_id) for node_id in range(5))
    content = content_of(replace(answer, node_endpoints=endpoints))
    sent = streamed(api_key, version, [content], to("y" * 22, 100))
    kept = [(each.node_id, each.host, each.port) for each in answer_in(sent, kind).node_endpoints]
    assert kept == [(node_id, "y" * 22, 100 + node_id) for node_id in range(4)]


ENDPOINTS = b"\x00\x10\x02" + bytes(3) + b"\x01\x05xxxx" + b"\x00\x00\x23\x84\x00" + b"\x00"
FETCH_HEAD = bytes(4) + b"\x00" + bytes(10) + b"\x01"


def test_tagged_fields_of_the_future_stay_before_and_behind_the_padding() -> None:
    unknown = b"\x63\x01a", b"\xff\x7f\x01b"
    content = FETCH_HEAD + b"\x03" + ENDPOINTS + b"".join(unknown)
    sent = streamed(FETCH, 17, [content], lambda *_: ("", 1))
    shortened = b"\x00\x0c\x02" + bytes(3) + b"\x01\x01" + b"\x00\x00\x00\x01\x00" + b"\x00"
    assert sent == FETCH_HEAD + b"\x04" + shortened + unknown[0] + b"\x7f\x02\x00\x00" + unknown[1]


def test_as_many_tagged_fields_as_need_a_longer_count_leave_room_for_padding() -> None:
    unknown = b"".join(bytes([tag, 0]) for tag in range(1, 127))
    content = FETCH_HEAD + b"\x7f" + ENDPOINTS + unknown
    sent = streamed(FETCH, 17, [content], lambda *_: ("y", 1))
    assert len(sent) == len(content)
    (endpoint,) = answer_in(sent, response_type(FETCH, 17)).node_endpoints
    assert endpoint.host == "y"


def test_padding_finds_a_number_where_the_short_ones_are_used() -> None:
    unknown = b"".join(bytes([tag, 0]) for tag in range(1, 128))
    content = FETCH_HEAD + b"\x80\x01" + ENDPOINTS + unknown
    for host in ("y", "yy", "z" * 50):
        sent = streamed(FETCH, 17, [content], lambda *_, host=host: (host, 1))
        assert len(sent) == len(content)
        assert b"xxxx" not in sent
        answer_in(sent, response_type(FETCH, 17))


def test_more_tagged_fields_than_there_are_numbers_are_malformed() -> None:
    short = b"".join(bytes([tag, 0]) for tag in range(1, 128))
    long = b"".join(bytes([tag & 0x7F | 0x80, tag >> 7, 0]) for tag in range(128, 16384))
    content = FETCH_HEAD + b"\x80\x80\x01" + ENDPOINTS + short + long
    with pytest.raises(MalformedMessage):
        streamed(FETCH, 17, [content], lambda *_: ("y", 1))


@every_version
@settings(max_examples=40, deadline=None)
@given(place=st.integers(0, 10_000), change=st.binary(min_size=1, max_size=6), size=st.integers(1, 500))
def test_a_damaged_answer_keeps_its_length_or_is_malformed(
    api_key: int, version: int, place: int, change: bytes, size: int
) -> None:
    content = content_of(rich(response_type(api_key, version)))
    place %= len(content)
    damaged = content[:place] + change + content[place + len(change) :]
    chunks = [damaged[start : start + size] for start in range(0, len(damaged), size)]
    with suppress(MalformedMessage):
        assert len(streamed(api_key, version, chunks, to("gw", 9092))) == len(damaged)


@every_version
def test_an_answer_that_ends_early_is_malformed(api_key: int, version: int) -> None:
    content = content_of(rich(response_type(api_key, version)))
    for end in range(1, len(content)):
        with pytest.raises(MalformedMessage):
            streamed(api_key, version, cut(content[:end], [100]), to("gw", 9092))


def long_fetch(partitions: int, size: int) -> bytes:
    kind = response_type(FETCH, 17)
    answer: Any = rich(kind)
    topic = answer.responses[0]
    partition = replace(topic.partitions[0], records=bytes(size))
    return content_of(replace(answer, responses=(replace(topic, partitions=(partition,) * partitions),)))


def test_records_are_given_on_as_they_come_and_not_copied() -> None:
    content = long_fetch(partitions=1, size=1_000_000)
    answer = AddressesAtEnd(FETCH, 17, len(content), to("gw", 9092))
    for start in range(0, 900_000, 65536):
        chunk = content[start : start + 65536]
        answer.receive_data(chunk)
        assert answer.take() is chunk


def test_more_bytes_than_announced_are_a_mistake_of_the_caller() -> None:
    answer = AddressesAtEnd(FETCH, 17, 10, to("gw", 9092))
    with pytest.raises(LocalProtocolError):
        answer.receive_data(bytes(11))


def test_a_length_beyond_the_answer_is_malformed_at_once() -> None:
    content = long_fetch(partitions=1, size=100_000)
    answer = AddressesAtEnd(FETCH, 17, 90_000, to("gw", 9092))
    with pytest.raises(MalformedMessage) as caught:
        answer.receive_data(content[:4096])
    assert caught.value.reason == "a length beyond its end"


def test_what_comes_behind_the_records_is_bounded() -> None:
    answer = AddressesAtEnd(FETCH, 17, 2 * MAX_TAIL_BYTES, to("gw", 9092))
    answer.receive_data(FETCH_HEAD)
    answer.receive_data(bytes(MAX_TAIL_BYTES))
    with pytest.raises(MalformedMessage):
        answer.receive_data(b"\x00")


def test_an_answer_that_goes_on_behind_its_addresses_cannot_be_streamed() -> None:
    with pytest.raises(LocalProtocolError):
        AddressesAtEnd(3, 12, 100, to("gw", 9092))
