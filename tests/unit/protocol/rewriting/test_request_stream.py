"""A client's bytes are passed on unchanged, in the pieces that they came in, and each request is told by its start."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema

from kafka_dt_protocol.api.responses import build
from kafka_dt_protocol.api.table import MAX_TAGGED_FIELDS
from kafka_dt_protocol.errors import InvalidFrameLength, LocalProtocolError, MalformedMessage
from kafka_dt_protocol.rewriting.request_stream import MAX_HEAD_BYTES, RequestStart, RequestStream
from kafka_dt_protocol.wire.encoding import encode
from kafka_dt_protocol.wire.frames import frame

LIMIT = 2**20
PRODUCE = 0
FETCH = 1
PRODUCE_VERSIONS = range(14)


@dataclass
class Passed:
    """A request as it came through."""

    start: RequestStart
    data: bytes


def drain(stream: RequestStream, under_way: list[Passed]) -> None:
    """Take all that can be taken; the last of the requests may go on."""
    while True:
        if stream.finished:
            start = stream.next_start()
            if start is None:
                return
            under_way.append(Passed(start, b""))
        data = stream.take()
        if not data:
            return
        under_way[-1].data += data


def cut(data: bytes, places: list[int]) -> Iterator[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return (data[a:b] for a, b in itertools.pairwise(bounds) if a < b)


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def text(value: bytes | None) -> bytes:
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value


def compact(value: bytes | None) -> bytes:
    return b"\0" if value is None else varint(len(value) + 1) + value


def produce(
    version: int,
    acks: int,
    *,
    client_id: bytes | None = b"producer-1",
    transactional_id: bytes | None = None,
    tags: tuple[bytes, ...] = (),
    records: bytes = b"",
) -> bytes:
    """Make the content of a Produce; what stands behind acks is not looked at."""
    flexible = version >= 9
    header = struct.pack(">hhi", PRODUCE, version, 7) + text(client_id)
    if flexible:
        header += varint(len(tags)) + b"".join(varint(tag) + varint(len(data)) + data for tag, data in enumerate(tags))
    transactional = b""
    if version >= 3:
        transactional = compact(transactional_id) if flexible else text(transactional_id)
    return header + transactional + struct.pack(">hi", acks, 30_000) + records


def request(api_key: int, version: int, correlation_id: int, rest: bytes = b"") -> bytes:
    return struct.pack(">hhi", api_key, version, correlation_id) + rest


NAMES = st.none() | st.binary(max_size=300)
PRODUCES = st.builds(
    produce,
    st.sampled_from(PRODUCE_VERSIONS),
    st.sampled_from([-1, 0, 1]),
    client_id=NAMES,
    transactional_id=NAMES,
    tags=st.lists(st.binary(max_size=200), max_size=3).map(tuple),
    records=st.binary(max_size=300),
)
OTHERS = st.builds(
    request, st.integers(1, 99), st.integers(0, 20), st.integers(-(2**31), 2**31 - 1), st.binary(max_size=300)
)
REQUESTS = st.lists(PRODUCES | OTHERS, max_size=6)
PLACES = st.lists(st.integers(0, 5000), max_size=12)


@given(REQUESTS, PLACES)
def test_any_cut_of_the_bytes_gives_the_same_requests(contents: list[bytes], places: list[int]) -> None:
    stream = RequestStream(LIMIT)
    passed: list[Passed] = []
    for piece in cut(b"".join(map(frame, contents)), places):
        stream.receive_data(piece)
        drain(stream, passed)
    assert [each.data for each in passed] == [frame(content) for content in contents]
    for each, content in zip(passed, contents, strict=True):
        start = each.start
        assert (start.api_key, start.api_version, start.correlation_id) == struct.unpack_from(">hhi", content)
    assert stream.buffered == 0


def test_a_produce_that_comes_in_pieces_keeps_no_later_request_waiting() -> None:
    long, short = frame(produce(9, 1, client_id=b"a producer with a long name")), frame(produce(0, 1, client_id=None))
    stream = RequestStream(LIMIT)
    passed: list[Passed] = []
    for piece in (long, long[:14], long[14:] + short):
        stream.receive_data(piece)
        drain(stream, passed)
    assert [each.data for each in passed] == [long, long, short]


@given(PRODUCES)
def test_byte_by_byte_gives_the_same_request(content: bytes) -> None:
    whole = RequestStream(LIMIT)
    whole.receive_data(frame(content))
    stream = RequestStream(LIMIT)
    passed: list[Passed] = []
    for byte in frame(content):
        stream.receive_data(bytes([byte]))
        drain(stream, passed)
    assert passed == [Passed(start, frame(content)) for start in [whole.next_start()] if start]


@given(st.binary(max_size=200), PLACES)
def test_whatever_comes_is_passed_on_or_refused(data: bytes, places: list[int]) -> None:
    stream = RequestStream(LIMIT)
    passed: list[Passed] = []
    try:
        for piece in cut(data, places):
            stream.receive_data(piece)
            drain(stream, passed)
    except (InvalidFrameLength, MalformedMessage):
        pass
    assert data.startswith(b"".join(each.data for each in passed))


@given(st.binary(max_size=60), st.sampled_from(PRODUCE_VERSIONS), PLACES)
def test_a_produce_of_any_bytes_is_judged_the_same_however_it_is_cut(
    body: bytes, version: int, places: list[int]
) -> None:
    data = frame(request(PRODUCE, version, 7, body))

    def judged(pieces: list[bytes]) -> RequestStart | str:
        stream = RequestStream(LIMIT)
        try:
            for piece in pieces:
                stream.receive_data(piece)
                if start := stream.next_start():
                    return start
        except MalformedMessage as error:
            return error.reason
        return "it has not begun"

    assert judged(list(cut(data, places))) == judged([data]) != "it has not begun"


# Acks


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@pytest.mark.parametrize("acks", [-1, 0, 1, 2])
@pytest.mark.parametrize("transactional_id", [None, b"", b"payments-7"])
def test_only_a_produce_with_acks_0_is_not_answered(version: int, acks: int, transactional_id: bytes | None) -> None:
    stream = RequestStream(LIMIT)
    stream.receive_data(frame(produce(version, acks, transactional_id=transactional_id)))
    start = stream.next_start()
    assert start is not None
    assert start.answered is (acks != 0)


@pytest.mark.parametrize("version", [version for version in PRODUCE_VERSIONS if version >= 3])  # kio has no older
@pytest.mark.parametrize("transactional_id", [None, "payments-7"])
def test_acks_stand_where_the_schema_has_them(version: int, transactional_id: str | None) -> None:
    entity_type: Any = load_request_schema(PRODUCE, version)
    entity = build(entity_type, transactional_id=transactional_id, acks=0, timeout=timedelta(0), topic_data=())
    header_type: Any = entity.__header_schema__
    header = header_type(request_api_key=PRODUCE, request_api_version=version, correlation_id=7, client_id="producer-1")
    stream = RequestStream(LIMIT)
    stream.receive_data(frame(encode(header) + encode(entity)))
    start = stream.next_start()
    assert start is not None
    assert not start.answered


def test_every_other_request_is_answered_whatever_its_body() -> None:
    stream = RequestStream(LIMIT)
    stream.receive_data(frame(request(FETCH, 4, 7, bytes(100))))
    start = stream.next_start()
    assert start == RequestStart(FETCH, 4, 7, answered=True)


@pytest.mark.parametrize("version", [2, 3, 9])
def test_a_produce_begins_when_its_acks_are_there_and_not_before(version: int) -> None:
    records = bytes(100_000)
    data = frame(produce(version, 0, client_id=b"c" * 400, transactional_id=b"t" * 400, records=records))
    acks_end = len(data) - len(records) - 4
    stream = RequestStream(LIMIT)
    stream.receive_data(data[: acks_end - 1])
    assert stream.next_start() is None
    stream.receive_data(data[acks_end - 1 : acks_end])
    start = stream.next_start()
    assert start is not None
    assert not start.answered
    assert stream.take() + stream.take() == data[:acks_end]


@given(
    st.lists(
        st.builds(
            produce,
            st.sampled_from([2, 3, 8, 9, 13]),
            st.sampled_from([0, 1]),
            client_id=st.sampled_from([None, b"a", b"b"]),
            transactional_id=st.sampled_from([None, b"", b"t"]),
            tags=st.sampled_from([(), (b"tag",)]),
        ),
        max_size=6,
    ).map(lambda contents: contents * 2)
)
def test_acks_are_those_of_each_produce_whatever_the_one_before_was(contents: list[bytes]) -> None:
    alone = []
    for each in contents:
        stream = RequestStream(LIMIT)
        stream.receive_data(frame(each))
        alone.append(stream.next_start())
    together = RequestStream(LIMIT)
    together.receive_data(b"".join(map(frame, contents)))
    for expected in alone:
        assert together.next_start() == expected
        together.take()


def test_a_produce_that_begins_like_the_last_one_and_ends_before_its_acks_is_malformed() -> None:
    usual = frame(produce(9, 1))
    stream = RequestStream(LIMIT)
    stream.receive_data(usual)
    stream.next_start()
    stream.take()
    stream.receive_data((len(usual) - 4 - 4 - 2).to_bytes(4) + usual[4:])
    with pytest.raises(MalformedMessage, match="it ends early"):
        stream.next_start()


@pytest.mark.parametrize("version", [2, 8, 13])
def test_the_longest_names_stand_before_acks(version: int) -> None:
    stream = RequestStream(LIMIT)
    stream.receive_data(frame(produce(version, 0, client_id=b"c" * 32767, transactional_id=b"t" * 32767)))
    start = stream.next_start()
    assert start is not None
    assert not start.answered


BEFORE_ACKS = {
    "it ends early": produce(9, 1, transactional_id=b"t" * 50)[:-6],
    "a negative length": request(PRODUCE, 3, 7, b"\xff\xfe" + bytes(50)),
    "text that is too long": produce(9, 1, transactional_id=b"t" * 32768),
    "too many elements": produce(9, 1, tags=(b"",) * (MAX_TAGGED_FIELDS + 1)),
    "too much before acks": produce(9, 1, tags=(bytes(MAX_HEAD_BYTES),)),
    "a varint over 5 bytes": request(PRODUCE, 9, 7, b"\xff\xff" + b"\x80" * 20),
}


@pytest.mark.parametrize("reason", BEFORE_ACKS)
def test_what_stands_before_acks_is_bounded(reason: str) -> None:
    stream = RequestStream(LIMIT)
    stream.receive_data(frame(BEFORE_ACKS[reason]))
    with pytest.raises(MalformedMessage, match=reason):
        stream.next_start()


def test_a_long_beginning_is_refused_before_it_arrives() -> None:
    stream = RequestStream(LIMIT)
    stream.receive_data(frame(BEFORE_ACKS["too much before acks"])[:100])
    with pytest.raises(MalformedMessage):
        stream.next_start()


def test_names_that_come_byte_by_byte_are_not_read_again_for_each() -> None:
    data = frame(produce(9, 0, client_id=b"c" * 32767, transactional_id=b"t" * 32767))
    stream = RequestStream(LIMIT)
    begun = 0
    for byte in data:  # if each were to be looked at with all before it, this would take minutes
        stream.receive_data(bytes([byte]))
        begun += stream.finished and stream.next_start() is not None
    assert begun == 1


# Lengths


@pytest.mark.parametrize("length", [-1, -(2**31), LIMIT + 1, 2**31 - 1])
def test_a_bad_length_is_refused_before_the_content_arrives(length: int) -> None:
    stream = RequestStream(LIMIT)
    stream.receive_data(length.to_bytes(4, "big", signed=True))
    with pytest.raises(InvalidFrameLength) as caught:
        stream.next_start()
    assert (caught.value.length, caught.value.limit) == (length, LIMIT)


@pytest.mark.parametrize("length", range(8))
def test_a_frame_too_short_for_a_header_is_no_request(length: int) -> None:
    for more in (b"", bytes(20)):
        stream = RequestStream(LIMIT)
        stream.receive_data(length.to_bytes(4) + more)
        with pytest.raises(MalformedMessage):
            stream.next_start()


def test_a_raised_limit_holds_for_the_frames_that_follow() -> None:
    stream = RequestStream(20)
    stream.receive_data(frame(request(FETCH, 0, 1)) + frame(request(FETCH, 0, 2, bytes(20))))
    assert stream.next_start()
    stream.take()
    stream.max_bytes = LIMIT
    assert stream.next_start()


# Bare tokens


def test_a_frame_without_header_is_told_by_its_length() -> None:
    stream = RequestStream(LIMIT)
    stream.receive_data(frame(b"token") + frame(b"") + frame(request(FETCH, 0, 1))[:3])
    assert stream.next_length() == 5
    assert not stream.finished
    assert stream.take() == frame(b"token")
    assert stream.finished
    assert stream.next_length() == 0
    assert stream.take() == frame(b"")
    assert stream.next_length() is None
    assert stream.finished


def test_the_length_of_a_bare_token_is_judged() -> None:
    stream = RequestStream(LIMIT)
    stream.receive_data(b"\xff\xff\xff\xff")
    with pytest.raises(InvalidFrameLength):
        stream.next_length()


# What is taken


def test_long_frames_are_passed_on_in_the_pieces_they_came_in() -> None:
    data = frame(produce(9, 1, records=bytes(1_000_000)))
    pieces = [data[start : start + 65536] for start in range(0, len(data), 65536)]
    stream = RequestStream(LIMIT)
    for piece in pieces:
        stream.receive_data(piece)
    assert stream.next_start()
    for piece in pieces:
        assert stream.take() is piece
    assert stream.finished


def test_nothing_is_taken_of_the_next_frame() -> None:
    first, second = frame(request(FETCH, 0, 1, bytes(10))), frame(request(FETCH, 0, 2))
    stream = RequestStream(LIMIT)
    stream.receive_data(first + second)
    stream.next_start()
    assert stream.take() == first
    assert stream.take() == b""
    assert stream.buffered == len(second)


def test_a_frame_that_was_not_taken_must_be_before_the_next() -> None:
    stream = RequestStream(LIMIT)
    stream.receive_data(frame(request(FETCH, 0, 1)))
    stream.next_start()
    with pytest.raises(LocalProtocolError):
        stream.next_start()
    with pytest.raises(LocalProtocolError):
        stream.next_length()
