"""Messages in record batches, among whatever else is in a topic."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.kraft.news.exchange import MOST_AT_ONCE
from kafka_dt.kraft.news.message import Revocation
from kafka_dt.kraft.news.records import Found, batch, read
from kafka_dt.kraft.news.topic import FETCH_BYTES
from kafka_dt.tokens.token import MAX_TIMESTAMP_MS
from tests.support.tokens.store_contract import new_token

NOW_MS = 1_764_000_000_000
MESSAGES = [Revocation.of(new_token().token_id, bytes(64), number) for number in range(5)]
ATTRIBUTES_AT = 21


def at(offset: int, content: bytes) -> bytes:
    """A batch as a broker hands it out, which has given it its place."""
    return struct.pack(">q", offset) + content[8:]


def test_messages_are_read_from_an_offset_on() -> None:
    content = at(10, batch(MESSAGES[:3], NOW_MS)) + at(13, batch(MESSAGES[3:], NOW_MS))
    assert read(content, 10) == Found(15, MESSAGES, 0)
    assert read(content, 11) == Found(15, MESSAGES[1:], 0), "a broker begins with a whole batch"
    assert read(b"", 15) == Found(15, [], 0)


def test_as_many_messages_as_are_written_at_once_fit_into_the_topic() -> None:
    longest = Revocation.of(MESSAGES[0].token_id, bytes(64), MAX_TIMESTAMP_MS)
    assert len(batch([longest] * MOST_AT_ONCE, NOW_MS)) < FETCH_BYTES


def test_a_batch_that_is_cut_off_is_left_for_the_next_time() -> None:
    whole, next_one = at(0, batch(MESSAGES[:2], NOW_MS)), at(2, batch(MESSAGES[2:], NOW_MS))
    for length in range(len(next_one)):
        assert read(whole + next_one[:length], 0) == Found(2, MESSAGES[:2], 0)


def test_what_others_write_is_counted_and_left_out() -> None:
    good = at(1, batch(MESSAGES, NOW_MS))
    compressed = bytearray(at(0, batch(MESSAGES[:1], NOW_MS)))
    compressed[ATTRIBUTES_AT + 1] |= 1
    assert read(bytes(compressed) + good, 0) == Found(6, MESSAGES, 1)
    damaged = bytearray(at(0, batch(MESSAGES[:1], NOW_MS)))
    damaged[-1] ^= 1
    assert read(bytes(damaged) + good, 0) == Found(6, MESSAGES, 1)


def test_a_batch_without_timestamps_is_left_out() -> None:
    """kio takes no instant before 1970, which is how some producers say that there is none."""
    good = at(5, batch(MESSAGES, NOW_MS))
    assert read(at(0, batch(MESSAGES, -1)) + good, 0) == Found(10, MESSAGES, 1)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_left_out(content: bytes) -> None:
    assert read(content, 7).next_offset >= 7


@given(st.data())
def test_a_batch_with_any_change_is_read_or_left_out(data: st.DataObject) -> None:
    content = bytearray(at(0, batch(MESSAGES, NOW_MS)))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    found = read(bytes(content), 0)
    assert set(found.messages) <= set(MESSAGES)
