"""Messages <-> the record batches of the topic.

    content = batch([message, ...], now_ms)
    found = read(content, offset=7)      # Found(next_offset=..., messages=(...), unreadable=0)

kio reads and writes the batches. A batch that is compressed, or that kio cannot read, is counted and left out: nodes
write none, and the settings of the topic keep what they write as it is.

Source: KIP-98 (record batches); org.apache.kafka.common.record.DefaultRecordBatch.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.serial.errors import SerialError
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from kafka_dt.kraft.news.message import Revocation
from kafka_dt_protocol.wire.times import to_timestamp

_LENGTH_END: Final = 12
"""The length of a batch counts from here."""
_HEAD: Final = struct.Struct(">qiibIhi")
"""Base offset, length, epoch of the leader, magic, checksum, attributes, offset of the last record from the base."""
_MAGIC: Final = 2
_COMPRESSED_OR_CONTROL: Final = 0b10_0111
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Found:
    """What an answer to a fetch had."""

    next_offset: int
    """Where to go on."""
    messages: Sequence[Revocation]
    unreadable: int
    """How many batches and records were no messages."""


def batch(messages: Sequence[Revocation], now_ms: int) -> bytes:
    """Return a record batch of messages, at least one; the token's id is the key of a record."""
    now = cast("TZAwareMicros", to_timestamp(now_ms))
    records = tuple(
        Record(
            attributes=i8(0),
            timestamp=now,
            offset=i64(number),
            key=message.token_id.encode(),
            value=message.encode(),
            headers=(),
        )
        for number, message in enumerate(messages)
    )
    buffer = io.BytesIO()
    made = NewRecordBatch(
        producer_id=i64(_NONE),
        producer_epoch=i16(_NONE),
        base_sequence=i32(_NONE),
        records=records,
        attributes=i16(0),
    )
    write_new_batch(buffer, made)
    return buffer.getvalue()


def read(content: bytes, offset: int) -> Found:
    """Read the batches of an answer; the last one may be cut off.

    Args:
        content: of the answer.
        offset: that was asked for; records before it are not new.
    """
    messages: list[Revocation] = []
    unreadable, next_offset = 0, offset
    for place, last_offset, readable in _batches(content):
        try:
            found = read_batch(content, place)[0].records if readable else None
        except (SerialError, TypeError, ValueError, OverflowError, OSError):
            found = None
        if found is None:
            unreadable += 1
        else:
            read_ones = [Revocation.decode(record.value) for record in found if record.offset >= offset]
            messages += [message for message in read_ones if message is not None]
            unreadable += read_ones.count(None)
        next_offset = max(next_offset, last_offset + 1)
    return Found(next_offset, messages, unreadable)


def _batches(content: bytes) -> Iterator[tuple[int, int, bool]]:
    """Give the place of each whole batch, the offset of its last record, and whether its records can be read."""
    place = 0
    while place + _HEAD.size <= len(content):
        base_offset, length, _, magic, _, attributes, last_offset_delta = _HEAD.unpack_from(content, place)
        end = place + _LENGTH_END + length
        if length < _HEAD.size - _LENGTH_END or end > len(content):
            return
        yield place, base_offset + last_offset_delta, magic == _MAGIC and not attributes & _COMPRESSED_OR_CONTROL
        place = end
