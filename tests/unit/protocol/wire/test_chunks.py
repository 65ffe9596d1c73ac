"""A queue of bytes gives what it was given, whole pieces as they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_dt_protocol.wire.chunks import JOINED_BYTES, Chunks

PIECES = st.lists(st.binary(min_size=1, max_size=12), max_size=12)


def filled(pieces: list[bytes]) -> Chunks:
    chunks = Chunks()
    for piece in pieces:
        chunks.append(piece)
    return chunks


@given(PIECES, st.lists(st.integers(0, 30), max_size=20))
def test_what_is_taken_is_what_was_put_in(pieces: list[bytes], amounts: list[int]) -> None:
    chunks, left = filled(pieces), b"".join(pieces)
    for amount in amounts:
        assert chunks.size == len(left)
        assert chunks.peek(amount) == left[:amount]
        taken = chunks.take(amount)
        assert left.startswith(taken)
        assert len(taken) <= amount
        assert taken or not amount or not left
        left = left[len(taken) :]
    assert chunks.take_exactly(len(left)) == left
    assert chunks.size == 0


@given(PIECES, PIECES, st.integers(0, 50))
def test_more_may_come_when_some_has_been_taken(first: list[bytes], then: list[bytes], amount: int) -> None:
    chunks, all_bytes = filled(first), b"".join(first + then)
    taken = chunks.take(amount)
    for piece in then:
        chunks.append(piece)
    assert taken + chunks.take_exactly(len(all_bytes) - len(taken)) == all_bytes


def test_whole_pieces_are_not_copied() -> None:
    pieces = [bytes(JOINED_BYTES), bytes(10 * JOINED_BYTES), bytes(JOINED_BYTES)]
    chunks = filled(pieces)
    for piece in pieces:
        assert chunks.take(100 * JOINED_BYTES) is piece


def test_a_piece_that_is_just_what_is_wanted_is_not_copied() -> None:
    piece = b"whole"
    assert filled([piece]).take_exactly(5) is piece


def test_bytes_that_come_one_by_one_are_joined() -> None:
    chunks = filled([b"x"] * (3 * JOINED_BYTES))
    assert len(chunks._later) == 3
    assert chunks.take_exactly(3 * JOINED_BYTES) == b"x" * (3 * JOINED_BYTES)
