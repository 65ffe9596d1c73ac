import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt_protocol.errors import InvalidFrameLength, LocalProtocolError
from kafka_dt_protocol.wire.frames import FrameSplitter, frame

LIMIT = 1000


def drain(splitter: FrameSplitter) -> list[bytes]:
    frames = []
    while (content := splitter.next_frame()) is not None:
        frames.append(content)
    return frames


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(bounds)]


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(0, 400), max_size=12))
def test_any_chunking_gives_the_same_frames(payloads: list[bytes], places: list[int]) -> None:
    splitter = FrameSplitter(LIMIT)
    received = []
    for chunk in cut(b"".join(map(frame, payloads)), places):
        splitter.receive_data(chunk)
        received += drain(splitter)
    assert received == payloads
    assert splitter.buffered == 0


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_byte_by_byte_gives_the_same_frames(payloads: list[bytes]) -> None:
    splitter = FrameSplitter(LIMIT)
    received = []
    for byte in b"".join(map(frame, payloads)):
        splitter.receive_data(bytes([byte]))
        received += drain(splitter)
    assert received == payloads


def test_a_frame_may_be_empty() -> None:
    splitter = FrameSplitter(LIMIT)
    splitter.receive_data(frame(b"") + frame(b""))
    assert drain(splitter) == [b"", b""]


@pytest.mark.parametrize("length", [-1, -(2**31), LIMIT + 1, 2**31 - 1])
def test_a_bad_length_is_refused_before_the_content_arrives(length: int) -> None:
    splitter = FrameSplitter(LIMIT)
    splitter.receive_data(length.to_bytes(4, "big", signed=True))
    with pytest.raises(InvalidFrameLength) as caught:
        splitter.next_frame()
    assert (caught.value.length, caught.value.limit) == (length, LIMIT)


def test_three_bytes_of_a_bad_length_are_not_judged() -> None:
    splitter = FrameSplitter(LIMIT)
    splitter.receive_data(b"\xff\xff\xff")
    assert splitter.next_frame() is None


def test_the_longest_frame_is_taken() -> None:
    splitter = FrameSplitter(LIMIT)
    splitter.receive_data(frame(bytes(LIMIT)))
    assert splitter.next_frame() == bytes(LIMIT)


def test_good_frames_before_a_bad_length_are_given_first() -> None:
    splitter = FrameSplitter(LIMIT)
    splitter.receive_data(frame(b"good") + b"\xff\xff\xff\xff")
    assert splitter.next_frame() == b"good"
    for _ in range(2):
        with pytest.raises(InvalidFrameLength):
            splitter.next_frame()


def test_a_raised_limit_holds_for_the_frames_that_follow() -> None:
    splitter = FrameSplitter(5)
    splitter.receive_data(frame(b"login") + frame(b"longer than five"))
    assert splitter.next_frame() == b"login"
    splitter.max_bytes = LIMIT
    assert splitter.next_frame() == b"longer than five"


def test_a_lowered_limit_does_not_hit_a_frame_already_begun() -> None:
    splitter = FrameSplitter(LIMIT)
    splitter.receive_data(frame(b"longer than five")[:6])
    assert splitter.next_frame() is None
    splitter.max_bytes = 5
    splitter.receive_data(frame(b"longer than five")[6:])
    assert splitter.next_frame() == b"longer than five"


def test_buffered_counts_what_waits() -> None:
    splitter = FrameSplitter(LIMIT)
    splitter.receive_data(frame(b"abc") + frame(b"de")[:5])
    assert splitter.buffered == 12
    splitter.next_frame()
    assert splitter.buffered == 5


def test_an_announced_length_costs_no_memory() -> None:
    splitter = FrameSplitter(2**31 - 1)
    splitter.receive_data((2**31 - 1).to_bytes(4, "big"))
    assert splitter.next_frame() is None
    assert splitter._data.__alloc__() < 100


def test_a_long_stream_of_small_frames_in_one_chunk_is_split_in_linear_time() -> None:
    splitter = FrameSplitter(LIMIT)
    splitter.receive_data(frame(b"x") * 400_000)
    assert len(drain(splitter)) == 400_000


def test_a_long_frame_in_many_chunks_is_joined_in_linear_time() -> None:
    splitter = FrameSplitter(8_000_000)
    payload = bytes(8_000_000)
    stream = frame(payload)
    for start in range(0, len(stream), 40):
        assert splitter.next_frame() is None
        splitter.receive_data(stream[start : start + 40])
    assert splitter.next_frame() == payload


@pytest.mark.interpreted
def test_a_payload_longer_than_a_length_can_say_is_our_mistake() -> None:
    class Longest(bytes):
        def __len__(self) -> int:
            return 2**31

    with pytest.raises(LocalProtocolError):
        frame(Longest())
