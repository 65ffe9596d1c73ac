"""A client's requests on their way through: where each begins, what it asks for, and its bytes as they come.

Feed what the socket gave to `receive_data`. `next_start` tells what the next frame is as soon as its first bytes say
so; then `take` gives the bytes of this frame, its length in front included, piece by piece until `finished`. The stream
reads and waits for only the beginning of a frame. A broker answers every request except a Produce with acks=0. Clients
have acks within the first hundred bytes.

Limits: a length is judged when its four bytes are there. The stream's memory is what waits in it (`buffered`),
and how much that may be is the caller's business; while `next_start` gives None this is less than MAX_HEAD_BYTES,
what the last `receive_data` brought not counted.

Source: Kafka protocol guide, "Common Request and Response Structure"; KIP-98, KIP-482;
org.apache.kafka.common.requests.ProduceRequest.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from kafka_dt_protocol.api.table import MAX_TAGGED_FIELDS
from kafka_dt_protocol.errors import InvalidFrameLength, LocalProtocolError, MalformedMessage
from kafka_dt_protocol.wire.chunks import Chunks
from kafka_dt_protocol.wire.decoding import read_varint
from kafka_dt_protocol.wire.layout import MAX_TEXT_BYTES

MAX_HEAD_BYTES: Final = 128 * 1024
"""How far into a Produce acks may stand: behind a client id and a transactional id, each of 32 KiB at most."""

_USUAL_HEAD_BYTES: Final = 256
"""Acks stand within so many bytes unless the client id or the transactional id is long."""

_PRODUCE: Final = 0
_FIRST_TRANSACTIONAL_PRODUCE: Final = 3
_FIRST_FLEXIBLE_PRODUCE: Final = 9

_LENGTH: Final = Struct(">i")
_HEAD: Final = Struct(">ihhi")
"""Length, API key, API version, correlation id."""
_SHORT: Final = Struct(">h")
_MIN_CONTENT_BYTES: Final = _HEAD.size - _LENGTH.size


class RequestStart(NamedTuple):
    """What the first bytes of a request say; a tuple, because it is made for every request."""

    api_key: int
    """Any number: whether there is such an API, and in this version, is not judged here."""
    api_version: int
    correlation_id: int
    answered: bool
    """Whether an answer comes: not to a Produce with acks=0."""


class RequestStream:
    """Takes a client's bytes in any pieces and gives them on, frame by frame.

    Args:
        max_bytes: the longest content of a frame that is taken.
    """

    __slots__ = ("_chunks", "_left", "_needed", "_usual", "given", "max_bytes")

    max_bytes: int
    """May be changed at any time; applies to the frames that begin from then on."""

    given: int
    """How many frames have been begun; not to be changed by others."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.given = 0
        self._chunks = Chunks()
        self._left = 0
        self._needed = 0
        self._usual = _Opening(-1, _HEAD.size, b"", 0)

    @property
    def finished(self) -> bool:
        """Whether the frame under way has been taken whole, or none is; `next_start` comes next."""
        return not self._left

    @property
    def buffered(self) -> int:
        """How many bytes have arrived that were not taken, length bytes included."""
        return self._chunks.size

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the client; call `take` next, or `next_start` where `finished` says so."""
        self._chunks.append(data)

    def next_start(self) -> RequestStart | None:
        """Begin with the next frame, or give None if too little of it has arrived; then call `take`.

        Raises:
            InvalidFrameLength: its length is negative or over `max_bytes`; the stream is of no more use.
            MalformedMessage: it is no request; the stream is of no more use.
            LocalProtocolError: the frame before has not been taken whole.
        """
        if self._left:
            raise LocalProtocolError("the frame before has not been taken")
        usual = self._usual
        head = self._chunks.peek(usual.end)
        if len(head) < _HEAD.size:
            if len(head) >= _LENGTH.size:
                self._judge(_LENGTH.unpack_from(head)[0], _MIN_CONTENT_BYTES)
            return None
        length, api_key, api_version, correlation_id = _HEAD.unpack_from(head)
        if not _MIN_CONTENT_BYTES <= length <= self.max_bytes:
            self._judge(length, _MIN_CONTENT_BYTES)
        end = _LENGTH.size + length
        answered = True
        if api_key == _PRODUCE:
            # A producer's requests all begin alike.
            known = usual.end <= end and api_version == usual.api_version and head[_HEAD.size :] == usual.head
            acks = usual.acks if known else self._acks(api_version, end)
            if acks is None:
                return None
            answered = acks != 0
        self._needed = 0
        self._left = end
        self.given += 1
        return RequestStart(api_key, api_version, correlation_id, answered)

    def next_length(self) -> int | None:
        """Do as `next_start`, but give only the length in bytes: a SASL token may come as a bare frame (KIP-43)."""
        if self._left:
            raise LocalProtocolError("the frame before has not been taken")
        head = self._chunks.peek(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return None
        length: int = _LENGTH.unpack(head)[0]
        self._judge(length, 0)
        self._left = _LENGTH.size + length
        self.given += 1
        return length

    def take(self) -> bytes:
        """Give what has arrived of the frame under way, one piece of it; b"" if nothing has (`buffered`)."""
        data = self._chunks.take(self._left)
        self._left -= len(data)
        return data

    def _judge(self, length: int, least: int) -> None:
        if not 0 <= length <= self.max_bytes:
            raise InvalidFrameLength(length, self.max_bytes)
        if length < least:
            raise MalformedMessage("no header")

    def _acks(self, api_version: int, end: int) -> int | None:
        """Read the acks of the Produce that comes next, whose frame has `end` bytes; None if they are still to come.

        What is missing is remembered, so that bytes that come one by one are not read again for each.
        """
        chunks = self._chunks
        asked = max(self._needed, _USUAL_HEAD_BYTES)
        while chunks.size >= self._needed:
            try:
                head = chunks.peek(min(asked, end))
                acks, behind = _read_acks(head, api_version)
            except _Incomplete as incomplete:
                self._needed = asked = incomplete.needed
                if asked > end:
                    raise MalformedMessage("it ends early") from None
                if asked > MAX_HEAD_BYTES:
                    raise MalformedMessage("too much before acks") from None
            else:
                if behind <= _USUAL_HEAD_BYTES:
                    self._usual = _Opening(api_version, behind, head[_HEAD.size : behind], acks)
                return acks
        return None


class _Opening(NamedTuple):
    """How the last Produce began."""

    api_version: int
    end: int
    """Behind its acks."""
    head: bytes
    """From behind its correlation id to there."""
    acks: int


class _Incomplete(Exception):
    """The first bytes of a frame do not reach far enough."""

    def __init__(self, needed: int) -> None:
        super().__init__(needed)
        self.needed = needed


def _read_acks(head: bytes, api_version: int) -> tuple[int, int]:
    """Read acks out of the first bytes of a Produce, its length in front included; gives what is behind as well."""
    flexible = api_version >= _FIRST_FLEXIBLE_PRODUCE
    offset = _skip_text(head, _HEAD.size)
    if flexible:
        offset = _skip_tagged_fields(head, offset)
    if api_version >= _FIRST_TRANSACTIONAL_PRODUCE:
        offset = _skip_compact_text(head, offset) if flexible else _skip_text(head, offset)
    return _read_short(head, offset), offset + _SHORT.size


def _read_short(head: bytes, offset: int) -> int:
    if len(head) < offset + _SHORT.size:
        raise _Incomplete(offset + _SHORT.size)
    value: int = _SHORT.unpack_from(head, offset)[0]
    return value


def _skip_text(head: bytes, offset: int) -> int:
    length = _read_short(head, offset)
    if length < -1:
        raise MalformedMessage("a negative length")
    return offset + _SHORT.size + max(length, 0)


def _skip_compact_text(head: bytes, offset: int) -> int:
    length, offset = _read_varint(head, offset)
    if length > MAX_TEXT_BYTES + 1:
        raise MalformedMessage("text that is too long")
    return offset + max(length - 1, 0)


def _skip_tagged_fields(head: bytes, offset: int) -> int:
    count, offset = _read_varint(head, offset)
    if count > MAX_TAGGED_FIELDS:
        raise MalformedMessage("too many elements")
    for _ in range(count):
        _, offset = _read_varint(head, offset)
        size, offset = _read_varint(head, offset)
        offset += size
    return offset


def _read_varint(head: bytes, offset: int) -> tuple[int, int]:
    try:
        return read_varint(head, offset)
    except IndexError:
        raise _Incomplete(max(offset, len(head)) + 1) from None
