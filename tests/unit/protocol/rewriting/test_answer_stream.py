"""Forward answers to the client unchanged except their addresses, and each to its own request."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_response_schema

from kafka_dt_protocol.api.responses import build
from kafka_dt_protocol.errors import (
    InvalidFrameLength,
    LocalProtocolError,
    MalformedMessage,
    RemoteProtocolError,
    UnexpectedAnswer,
    UnsupportedVersion,
)
from kafka_dt_protocol.rewriting import answer_stream
from kafka_dt_protocol.rewriting.answer_stream import (
    COLLECT_BYTES,
    MAX_COLLECTED_BYTES,
    MAX_OWN_BYTES,
    AnswerStream,
    Forward,
    OwnAnswer,
)
from kafka_dt_protocol.rewriting.node_addresses import known_versions
from kafka_dt_protocol.rewriting.replacing import NODES_IN_A_ROW, rewrite
from kafka_dt_protocol.rewriting.request_stream import RequestStart
from kafka_dt_protocol.wire.decoding import decode
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.frames import FrameSplitter, frame

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, HEARTBEAT, NOBODY_KNOWS = 0, 1, 3, 10, 12, 999
PRODUCE_VERSION, FIND_COORDINATOR_VERSION = 11, 6
FETCH_VERSION, METADATA_VERSION = 16, 12
ID = 7
HERE = ("gateway.example", 19092)
NOWHERE = timedelta(0)


def advertise(_node_id: int, _host: str, _port: int) -> tuple[str, int]:
    return HERE


def start(api_key: int, api_version: int = 0, correlation_id: int = ID, *, answered: bool = True) -> RequestStart:
    return RequestStart(api_key, api_version, correlation_id, answered)


def entities_of(api_key: int, api_version: int) -> Any:
    return import_module(load_response_schema(api_key, api_version).__module__)


def content_of(entity: Any, correlation_id: int = ID) -> bytes:
    header: Any = entity.__header_schema__
    return encode(header(correlation_id=correlation_id)) + encode(entity)


@cache
def metadata(correlation_id: int = ID, host: str = "kafka-1.internal") -> bytes:
    kinds = entities_of(METADATA, METADATA_VERSION)
    broker = kinds.MetadataResponseBroker(node_id=1, host=host, port=9092, rack=None)
    answer = build(
        kinds.MetadataResponse, brokers=(broker,), cluster_id="c", controller_id=1, topics=(), throttle_time=NOWHERE
    )
    return content_of(answer, correlation_id)


@cache
def fetch(records: int, correlation_id: int = ID, host: str = "kafka-1.internal") -> bytes:
    """Make an answer that sends its client to another leader."""
    kinds = entities_of(FETCH, FETCH_VERSION)
    partition = build(
        kinds.PartitionData,
        partition_index=0,
        error_code=6,
        high_watermark=7,
        aborted_transactions=(),
        records=b"r" * records,
    )
    topic = build(kinds.FetchableTopicResponse, topic_id=None, partitions=(partition,))
    node = kinds.NodeEndpoint(node_id=1, host=host, port=9092, rack=None)
    answer = build(
        kinds.FetchResponse,
        throttle_time=NOWHERE,
        error_code=0,
        session_id=0,
        responses=(topic,),
        node_endpoints=(node,),
    )
    return content_of(answer, correlation_id)


def plain(body: bytes, correlation_id: int = ID) -> bytes:
    return struct.pack(">i", correlation_id) + body


def expecting(*starts: RequestStart) -> AnswerStream:
    stream = AnswerStream(advertise)
    for each in starts:
        stream.expect(each)
    return stream


@cache
def coordinators(count: int, correlation_id: int = ID) -> bytes:
    kinds = entities_of(FIND_COORDINATOR, FIND_COORDINATOR_VERSION)
    node = {"node_id": 1, "host": "kafka-1.internal", "port": 9092}
    coordinator = build(kinds.Coordinator, key="g", **node, error_code=0, error_message=None)
    answer = build(kinds.FindCoordinatorResponse, throttle_time=NOWHERE, coordinators=(coordinator,) * count)
    return content_of(answer, correlation_id)


@cache
def produced(partitions: int) -> bytes:
    kinds = entities_of(PRODUCE, PRODUCE_VERSION)
    partition = build(kinds.PartitionProduceResponse, index=1, error_code=3, base_offset=-1, record_errors=())
    topic = build(kinds.TopicProduceResponse, name="t", partition_responses=(partition,) * partitions)
    return content_of(build(kinds.ProduceResponse, responses=(topic,), throttle_time=NOWHERE))


def drain(stream: AnswerStream) -> list[Forward | OwnAnswer]:
    return list(iter(stream.next, None))


def forwarded(stream: AnswerStream) -> bytes:
    return b"".join(each.data for each in drain(stream) if isinstance(each, Forward))


def whole(stream: AnswerStream, *contents: bytes) -> bytes:
    stream.receive_data(b"".join(map(frame, contents)))
    return forwarded(stream)


def cut(data: bytes, places: list[int]) -> Iterator[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return (data[a:b] for a, b in itertools.pairwise(bounds) if a < b)


def metadata_of(data: bytes) -> Any:
    entity, _ = decode(load_response_schema(METADATA, METADATA_VERSION), data, 4 + 4 + 1)
    return entity


def fetch_of(data: bytes) -> Any:
    entity, _ = decode(load_response_schema(FETCH, FETCH_VERSION), data, 4 + 4 + 1)
    return entity


# What comes out


def test_an_answer_without_addresses_is_passed_on() -> None:
    stream = expecting(start(HEARTBEAT), start(NOBODY_KNOWS, 99, 8))
    contents = plain(b"body"), plain(b"", 8)
    assert whole(stream, *contents) == b"".join(map(frame, contents))
    assert stream.outstanding == 0


def test_what_is_passed_on_is_passed_on_in_the_pieces_it_came_in() -> None:
    data = frame(plain(bytes(1_000_000)))
    pieces = list(cut(data, [65536 * n for n in range(16)]))
    stream = expecting(start(HEARTBEAT))
    for piece in pieces:
        stream.receive_data(piece)
        given = stream.next()
        assert isinstance(given, Forward)
        assert given.data is piece
        assert stream.next() is None
    assert stream.outstanding == stream.buffered == 0


def test_the_addresses_of_an_answer_are_those_the_client_can_reach() -> None:
    (broker,) = metadata_of(whole(expecting(start(METADATA, METADATA_VERSION)), metadata())).brokers
    assert (broker.node_id, broker.host, broker.port) == (1, *HERE)


def test_an_answer_whose_addresses_stay_is_not_copied() -> None:
    data = frame(metadata(ID, HERE[0]).replace((9092).to_bytes(4), HERE[1].to_bytes(4)))
    stream = expecting(start(METADATA, METADATA_VERSION))
    stream.receive_data(data)
    given = stream.next()
    assert isinstance(given, Forward)
    assert given.data is data


def test_a_short_answer_with_records_has_its_addresses_whatever_their_length() -> None:
    data = whole(expecting(start(FETCH, FETCH_VERSION)), fetch(100, ID, "k1"))
    (node,) = fetch_of(data).node_endpoints
    assert (node.host, node.port) == HERE
    assert int.from_bytes(data[:4]) == len(data) - 4 > len(fetch(100, ID, "k1"))


@pytest.mark.parametrize(("host", "found"), [("kafka-1.internal.example", [HERE]), ("k1", [])])
def test_a_long_answer_with_records_has_its_length_and_those_addresses_that_fit(
    host: str, found: list[tuple[str, int]]
) -> None:
    content = fetch(COLLECT_BYTES, ID, host)
    data = whole(expecting(start(FETCH, FETCH_VERSION)), content)
    assert data[:4] == frame(content)[:4]
    assert len(data) == 4 + len(content)
    told = fetch_of(data)
    assert [(node.host, node.port) for node in told.node_endpoints] == found
    assert told.responses == fetch_of(frame(content)).responses


def test_a_long_answer_with_records_is_passed_on_while_it_comes() -> None:
    data = frame(fetch(1_000_000))
    pieces = list(cut(data, [65536 * n for n in range(16)]))
    stream = expecting(start(FETCH, FETCH_VERSION))
    kept = 0
    for piece in pieces[:-1]:
        stream.receive_data(piece)
        given = drain(stream)
        assert sum(len(each.data) for each in given if isinstance(each, Forward)) == len(piece)
        kept += given[-1] == Forward(piece) and given[-1].data is piece
    assert kept == len(pieces) - 2
    assert stream.outstanding == 1
    stream.receive_data(pieces[-1])
    assert len(forwarded(stream)) == len(pieces[-1])
    assert stream.outstanding == 0


@pytest.mark.interpreted
def test_an_answer_of_another_length_than_announced_is_our_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost:
        def __init__(self, *_: object) -> None: ...
        def receive_data(self, data: bytes) -> None: ...
        def take(self) -> bytes:
            return b""

    monkeypatch.setattr(answer_stream, "AddressesAtEnd", Lost)
    with pytest.raises(LocalProtocolError):
        whole(expecting(start(FETCH, FETCH_VERSION)), fetch(COLLECT_BYTES))


def test_what_we_have_asked_for_ourselves_is_not_for_the_client() -> None:
    stream = expecting(start(HEARTBEAT, 0, 1))
    stream.expect_own(2)
    stream.expect(start(HEARTBEAT, 0, 3))
    first, own, third = plain(b"first", 1), plain(b"own", 2), plain(b"third", 3)
    stream.receive_data(b"".join(map(frame, (first, own, third))))
    assert drain(stream) == [Forward(frame(first)), OwnAnswer(own), Forward(frame(third))]


def test_an_answer_to_ourselves_may_be_long_where_that_is_said() -> None:
    stream = AnswerStream(advertise)
    stream.expect_own(1, long=True)
    stream.expect_own(2)
    long = plain(bytes(MAX_OWN_BYTES), 1)
    stream.receive_data(frame(long) + frame(plain(bytes(MAX_OWN_BYTES), 2)))
    assert stream.next() == OwnAnswer(long)
    with pytest.raises(InvalidFrameLength):
        stream.next()


def test_no_answer_is_waited_for_that_does_not_come() -> None:
    stream = expecting(start(PRODUCE, 9, 1, answered=False), start(HEARTBEAT, 0, 2))
    assert stream.outstanding == 1
    assert whole(stream, plain(b"", 2)) == frame(plain(b"", 2))


def test_no_answer_is_outstanding_when_the_upstream_has_gone() -> None:
    stream = expecting(start(HEARTBEAT), start(METADATA, METADATA_VERSION))
    stream.give_up()
    assert stream.outstanding == 0


def test_an_answer_is_outstanding_until_its_last_byte() -> None:
    for content, expected in ((plain(b"body"), start(HEARTBEAT)), (metadata(), start(METADATA, METADATA_VERSION))):
        stream = expecting(expected)
        for byte in frame(content):
            assert stream.outstanding == 1
            stream.receive_data(bytes([byte]))
            drain(stream)
        assert stream.outstanding == 0


# Any cut

ANSWERS = {
    "plain": (start(HEARTBEAT), plain(b"heartbeat" * 10)),
    "empty": (start(NOBODY_KNOWS), plain(b"")),
    "metadata": (start(METADATA, METADATA_VERSION), metadata()),
    "fetch": (start(FETCH, FETCH_VERSION), fetch(40)),
    "long fetch": (start(FETCH, FETCH_VERSION), fetch(300)),
    "own": (None, plain(b"challenge")),
}


def described(kinds: list[str]) -> tuple[AnswerStream, bytes]:
    stream = AnswerStream(advertise)
    for kind in kinds:
        expected, _ = ANSWERS[kind]
        if expected is None:
            stream.expect_own(ID)
        else:
            stream.expect(expected)
    return stream, b"".join(frame(ANSWERS[kind][1]) for kind in kinds)


def received(kinds: list[str], pieces: list[bytes]) -> tuple[list[bytes], list[OwnAnswer]]:
    """Give the frames that the client gets, and what we get."""
    stream, _ = described(kinds)
    client = FrameSplitter(2**20)
    own = []
    for piece in pieces:
        stream.receive_data(piece)
        for each in drain(stream):
            if isinstance(each, OwnAnswer):
                own.append(each)
            else:
                client.receive_data(each.data)
    assert stream.outstanding == stream.buffered == 0
    frames = list(iter(client.next_frame, None))
    assert client.buffered == 0
    return frames, own


@given(st.lists(st.sampled_from(list(ANSWERS)), max_size=5), st.lists(st.integers(0, 3000), max_size=12))
def test_any_cut_of_the_bytes_gives_the_same_answers(kinds: list[str], places: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer_stream, "COLLECT_BYTES", 200)
        _, data = described(kinds)
        expected = received(kinds, [data])
        assert received(kinds, list(cut(data, places))) == expected
        assert len(expected[0]) + len(expected[1]) == len(kinds)


def test_byte_by_byte_gives_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_stream, "COLLECT_BYTES", 200)
    kinds = list(ANSWERS)
    _, data = described(kinds)
    assert received(kinds, [bytes([byte]) for byte in data]) == received(kinds, [data])


@given(
    st.lists(st.sampled_from(list(ANSWERS)), min_size=1, max_size=3),
    st.binary(max_size=60),
    st.lists(st.integers(0, 3000), max_size=5),
)
def test_whatever_an_upstream_sends_is_passed_on_or_refused(kinds: list[str], body: bytes, places: list[int]) -> None:
    stream, _ = described(kinds)
    try:
        for piece in cut(frame(plain(body)) + body, places):
            stream.receive_data(piece)
            drain(stream)
    except RemoteProtocolError:
        pass


# What cannot be


def test_an_answer_that_nobody_asked_for_is_refused_at_its_first_byte() -> None:
    stream = expecting(start(HEARTBEAT))
    whole(stream, plain(b""))
    stream.receive_data(b"\0")
    with pytest.raises(UnexpectedAnswer) as caught:
        stream.next()
    assert caught.value.due is None


@pytest.mark.parametrize("api", [start(HEARTBEAT), start(METADATA, METADATA_VERSION), start(FETCH, FETCH_VERSION)])
def test_the_answer_to_another_request_is_refused_before_any_of_it_is_passed_on(api: RequestStart) -> None:
    stream = expecting(api, start(HEARTBEAT, 0, 8))
    stream.receive_data(frame(plain(bytes(100), 8))[:8])
    with pytest.raises(UnexpectedAnswer) as caught:
        stream.next()
    assert caught.value.due == ID


@pytest.mark.parametrize(
    ("expected", "limit"),
    [
        (start(HEARTBEAT), 2**31 - 1),
        (start(FETCH, FETCH_VERSION), 2**31 - 1),
        (start(METADATA, METADATA_VERSION), MAX_COLLECTED_BYTES),
        (None, MAX_OWN_BYTES),
    ],
)
@pytest.mark.parametrize("more", [b"", bytes(50)])
def test_a_length_that_cannot_be_is_refused_at_once(expected: RequestStart | None, limit: int, more: bytes) -> None:
    for length in (-1, limit + 1):
        if length < 2**31:
            stream = expecting(*([expected] if expected else []))
            if expected is None:
                stream.expect_own(ID)
            stream.receive_data(struct.pack(">i", length) + more)
            with pytest.raises(InvalidFrameLength) as caught:
                stream.next()
            assert (caught.value.length, caught.value.limit) == (length, limit)


@pytest.mark.parametrize("length", range(4))
def test_a_frame_too_short_for_a_header_is_no_answer(length: int) -> None:
    stream = expecting(start(HEARTBEAT))
    stream.receive_data(struct.pack(">i", length))
    with pytest.raises(MalformedMessage):
        stream.next()


def test_an_answer_that_does_not_hold_what_it_should_is_refused() -> None:
    with pytest.raises(MalformedMessage):
        whole(expecting(start(METADATA, METADATA_VERSION)), metadata()[:-9])
    with pytest.raises(MalformedMessage):
        whole(expecting(start(FETCH, FETCH_VERSION)), fetch(COLLECT_BYTES)[:-90])


@pytest.mark.parametrize("answered", [True, False])
def test_a_request_whose_answer_might_hold_addresses_nobody_knows_of_is_refused(answered: bool) -> None:
    known = known_versions(METADATA)
    assert known is not None
    stream = AnswerStream(advertise)
    with pytest.raises(UnsupportedVersion):
        stream.expect(start(METADATA, known.stop, answered=answered))
    assert stream.outstanding == 0


def test_many_coordinators_are_rewritten_in_parts_and_what_comes_behind_them_waits() -> None:
    count = 20 * NODES_IN_A_ROW
    stream = expecting(start(FIND_COORDINATOR, FIND_COORDINATOR_VERSION), start(HEARTBEAT))
    content = coordinators(count)
    stream.receive_data(frame(content) + frame(plain(b"next")))
    parts = 0
    while not (given := drain(stream)):
        assert stream.at_work
        assert (stream.outstanding, stream.buffered) == (2, len(content) + len(frame(plain(b"next"))))
        parts += 1
    assert parts >= count // NODES_IN_A_ROW
    assert [each.data for each in given if isinstance(each, Forward)] == [
        frame(rewrite(FIND_COORDINATOR, FIND_COORDINATOR_VERSION, content, advertise)),
        frame(plain(b"next")),
    ]
    assert (stream.at_work, stream.outstanding, stream.buffered) == (False, 0, 0)


def test_many_coordinators_that_end_early_are_malformed_when_that_is_seen() -> None:
    stream = expecting(start(FIND_COORDINATOR, FIND_COORDINATOR_VERSION))
    stream.receive_data(frame(coordinators(20 * NODES_IN_A_ROW)[:-20]))
    assert drain(stream) == []
    with pytest.raises(MalformedMessage, match="ends early"):
        list(iter(lambda: stream.next() or stream.at_work, False))


def test_a_long_answer_about_many_partitions_is_passed_on_as_it_comes() -> None:
    content = frame(produced(10_000))
    stream = expecting(start(PRODUCE, PRODUCE_VERSION))
    begun = b""
    for offset in range(0, len(content), COLLECT_BYTES):
        stream.receive_data(content[offset : offset + COLLECT_BYTES])
        begun += forwarded(stream)
        assert len(begun) >= offset
    assert begun == content
