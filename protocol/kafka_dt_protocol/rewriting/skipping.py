"""Walk over fields without decoding them, however their bytes are cut.

`program` turns the layout of fields into steps. A `Walk` takes them one after the other, is handed the bytes as they
come, and knows where it stands between two of them. A step looks at nothing but lengths: the records of a Fetch answer
cost one step, whether they are 10 bytes or 10 MB. `skip` takes all the steps through bytes that have arrived whole.

A reader of lengths takes a buffer and an offset and gives the number and the offset behind it, without moving
anything, so that it can be called again when more bytes are there. Null is -1 in all of them. A buffer that ends early
raises one of `ENDS_EARLY`. Nullable entities (KIP-893), which no answer with addresses has, are refused by `program`.

Source: Kafka protocol guide, "Protocol Primitive Types"; KIP-482.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from struct import calcsize
from types import MappingProxyType
from typing import Final, TypeAlias

from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage
from kafka_dt_protocol.wire.decoding import read_varint
from kafka_dt_protocol.wire.layout import FIXED_FORMATS, FieldLayout, entity_layout

_SIZES: Final = MappingProxyType(
    {
        **{kafka_type: calcsize(layout) for kafka_type, layout in FIXED_FORMATS.items()},
        "bool": 1,
        "uuid": 16,
        "error_code": 2,
        "timedelta_i32": 4,
        "timedelta_i64": 8,
        "datetime_i64": 8,
    }
)
"""Bytes of the types that always have the same number of them."""

ENDS_EARLY: Final = (IndexError, struct.error)
"""What a reader raises where the buffer has no more bytes."""

LengthReader: TypeAlias = Callable[[bytes, int], tuple[int, int]]

_INT16: Final = struct.Struct(FIXED_FORMATS["int16"])
_INT32: Final = struct.Struct(FIXED_FORMATS["int32"])


class Walk:
    """A place in a program, and how many more rounds its loops have."""

    __slots__ = ("place", "rounds", "steps")

    def __init__(self, steps: Program) -> None:
        self.steps = steps
        self.place = 0
        self.rounds: list[int] = []

    @property
    def finished(self) -> bool:
        """Whether all steps have been taken; what they skip may still have to come."""
        return self.place == len(self.steps)

    def skip(self, buffer: bytes, offset: int) -> int:
        """Take as many steps as the bytes allow, from an offset within them; gives where the next step begins.

        That may be beyond the buffer's end: so many bytes are to be skipped when they come. If it is within the buffer
        and the walk is not `finished`, the bytes from there on are too few to tell; call again with them and more.

        Raises:
            MalformedMessage: the bytes are no such fields.
        """
        steps, count, end = self.steps, len(self.steps), len(buffer)
        try:
            while self.place < count and offset <= end:
                offset = steps[self.place](self, buffer, offset)
        except ENDS_EARLY:
            pass  # a step changes nothing before it has read what it needs
        return offset


Step: TypeAlias = Callable[[Walk, bytes, int], int]
"""Gives the offset behind what it skips, and moves the walk to the step that comes next."""


@dataclass(frozen=True, slots=True)
class OverBytes:
    """The one kind of step that looks at nothing."""

    size: int

    def __call__(self, walk: Walk, _buffer: bytes, offset: int) -> int:
        """Take it."""
        walk.place += 1
        return offset + self.size


Program: TypeAlias = tuple[Step, ...]
"""Steps only know how far they jump, so that programs can be put one behind the other."""


def skip(steps: Program, buffer: bytes, offset: int) -> int:
    """Take all the steps; gives the offset of the first byte behind what was skipped.

    Raises:
        MalformedMessage: the bytes are no such fields, or not all of them.
    """
    if not steps:
        return offset
    walk = Walk(steps)
    offset = walk.skip(buffer, offset)
    if offset > len(buffer) or not walk.finished:
        raise MalformedMessage("it ends early")
    return offset


def program(fields: Iterable[FieldLayout], *, tagged: bool) -> Program:
    """Make the steps over plain fields of an entity, in order, and with `tagged` over tagged fields behind them.

    Raises:
        LocalProtocolError: a field of a form that cannot be skipped.
    """
    steps: list[Step] = []
    _add_fields(steps, fields)
    if tagged:
        _add_tagged_fields(steps)
    return tuple(steps)


def _add_fields(steps: list[Step], fields: Iterable[FieldLayout]) -> None:
    """Neighbours of fixed size become one step."""
    size = 0
    for field in fields:
        if not field.is_array and field.kafka_type in _SIZES:
            size += _SIZES[field.kafka_type]
            continue
        if size:
            steps.append(OverBytes(size))
            size = 0
        _add_field(steps, field)
    if size:
        steps.append(OverBytes(size))


def _add_field(steps: list[Step], field: FieldLayout) -> None:
    if not field.is_array:
        _add_value(steps, field, nullable=field.nullable)
        return
    read_count = length_reader(field, of_array=True)
    if field.kafka_type in _SIZES:
        steps.append(_over_chunk(read_count, _SIZES[field.kafka_type]))
        return
    _add_loop(steps, read_count, lambda: _add_value(steps, field, nullable=field.nullable_items))


def _add_loop(steps: list[Step], read_count: LengthReader, add_round: Callable[[], None]) -> None:
    head = len(steps)
    steps.append(_over_chunk(read_count))  # keeps the place until the loop's end is known
    add_round()
    size = len(steps) - head
    steps.append(_next_round(size - 1))
    steps[head] = _loop(read_count, size)


def _add_tagged_fields(steps: list[Step]) -> None:
    _add_loop(steps, read_varint, lambda: steps.append(_over_tagged_field))


def _add_value(steps: list[Step], field: FieldLayout, *, nullable: bool) -> None:
    if field.entity is None:
        steps.append(_over_chunk(length_reader(field, of_array=False)))
        return
    if nullable:
        raise LocalProtocolError(f"{field.name} cannot be skipped: an entity that may be null")
    layout = entity_layout(field.entity)
    _add_fields(steps, layout.plain)
    if layout.flexible:
        _add_tagged_fields(steps)


def _over_chunk(read_length: LengthReader, item_size: int = 1) -> Step:
    def over_chunk(walk: Walk, buffer: bytes, offset: int) -> int:
        length, offset = read_length(buffer, offset)
        walk.place += 1
        return offset + length * item_size if length > 0 else offset

    return over_chunk


def _over_tagged_field(walk: Walk, buffer: bytes, offset: int) -> int:
    _, offset = read_varint(buffer, offset)
    size, offset = read_varint(buffer, offset)
    walk.place += 1
    return offset + size


def _loop(read_count: LengthReader, size: int) -> Step:
    """Begin as many rounds as are announced, or go to behind the loop's last step, which is so many steps further."""

    def loop(walk: Walk, buffer: bytes, offset: int) -> int:
        count, offset = read_count(buffer, offset)
        if count > 0:
            walk.rounds.append(count)
            walk.place += 1
        else:
            walk.place += size + 1
        return offset

    return loop


def _next_round(size: int) -> Step:
    """Go back to the first of so many steps, or leave the loop."""

    def next_round(walk: Walk, _buffer: bytes, offset: int) -> int:
        walk.rounds[-1] -= 1
        if walk.rounds[-1]:
            walk.place -= size
        else:
            walk.rounds.pop()
            walk.place += 1
        return offset

    return next_round


def read_int32(buffer: bytes, offset: int) -> tuple[int, int]:
    """Read a signed number of four bytes."""
    value: int = _INT32.unpack_from(buffer, offset)[0]
    return value, offset + _INT32.size


def length_reader(field: FieldLayout, *, of_array: bool) -> LengthReader:
    """Choose the reader of the length in front of a string, bytes, records, or of an array."""
    if field.flexible:
        return _read_compact_length
    if field.kafka_type == "string" and not of_array:
        return _read_int16_length
    return _read_int32_length


def _read_compact_length(buffer: bytes, offset: int) -> tuple[int, int]:
    value, offset = read_varint(buffer, offset)
    return value - 1, offset


def _read_int16_length(buffer: bytes, offset: int) -> tuple[int, int]:
    value: int = _INT16.unpack_from(buffer, offset)[0]
    return _expect_length(value), offset + _INT16.size


def _read_int32_length(buffer: bytes, offset: int) -> tuple[int, int]:
    value, offset = read_int32(buffer, offset)
    return _expect_length(value), offset


def _expect_length(value: int) -> int:
    if value < -1:
        raise MalformedMessage("a negative length")
    return value
