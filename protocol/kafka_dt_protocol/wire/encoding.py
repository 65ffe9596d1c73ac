"""Entities -> bytes, for what we send: answers on the server, requests in the client.

The writer of an entity is built from its layout when it is first needed and kept. It writes the bytes of kio's own
writer in a fraction of its time, durations exact to the millisecond, and never a string that a peer would have to
refuse. Tagged fields are written where they differ from their default. An `EncodedArray` and `encode_pieces` serve long
answers whose parts seldom change: such an answer is never one string of bytes.

A value that does not fit the wire (a number out of range, None where null is not allowed) is a mistake of the caller
and raises LocalProtocolError.

Source: Kafka protocol guide, "Protocol Primitive Types"; KIP-482; KIP-893;
org.apache.kafka.common.protocol.ByteBufferAccessor.
"""

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from uuid import UUID

from kio.static.protocol import Entity

from kafka_dt_protocol.errors import LocalProtocolError
from kafka_dt_protocol.wire.layout import (
    FIXED_FORMATS,
    MAX_TEXT_BYTES,
    NULL_ENTITY,
    PRESENT_ENTITY,
    FieldLayout,
    entity_layout,
)
from kafka_dt_protocol.wire.times import from_duration, from_timestamp

_MORE: Final = 0x80
"""The bit of a varint's byte that says that another follows."""

_LOW_BITS: Final = 0x7F
_NO_UUID: Final = bytes(16)

_Writer: TypeAlias = Callable[[bytearray, Any], None]


class Pieces:
    """The bytes of a message, in pieces that are not joined.

    They are plain bytes in tuples, because Python's garbage collector forgets such a tuple after one look. At a list,
    and at objects of a class of ours, it looks again each time, and it stops everything else meanwhile.
    """

    __slots__ = ("batches", "size")

    def __init__(self) -> None:
        self.batches: list[tuple[bytes, ...]] = []
        self.size = 0
        """How long they are together, in bytes."""

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self.batches)

    def put_first(self, piece: bytes) -> None:
        """Put a piece in front of the others, in one with the first."""
        self.batches[0] = (piece + self.batches[0][0],)
        self.size += len(piece)

    def put_last(self, piece: bytes) -> None:
        """Put a piece behind the others."""
        self.batches.append((piece,))
        self.size += len(piece)


class EncodedArray(Pieces):
    """The elements of an array of entities, each a piece; it takes the array's place in a field of the encoded entity.

    That they fit is up to the caller.
    """

    __slots__ = ("_count",)

    def __init__(self, elements: Iterable[bytes] = ()) -> None:
        super().__init__()
        self._count = 0
        self.add(tuple(elements))

    def __len__(self) -> int:
        return self._count

    def add(self, batch: tuple[bytes, ...]) -> None:
        """Append some elements."""
        self.batches.append(batch)
        self.size += sum(map(len, batch))
        self._count += len(batch)


def encode(entity: Entity) -> bytes:
    """Encode an instance of any of kio's entity types.

    Raises:
        LocalProtocolError: a value does not fit its type on the wire.
    """
    return b"".join(encode_pieces(entity))


def encode_pieces(entity: Entity) -> Pieces:
    """Encode as `encode`, in pieces: each element of an `EncodedArray` in a field of the entity is one of them."""
    plain, write_tagged_fields, write_length = _entity_writers(type(entity))
    pieces, out = Pieces(), bytearray()
    try:
        for get, write, is_array in plain:
            value = get(entity)
            if is_array and isinstance(value, EncodedArray):
                write_length(out, len(value))
                pieces.put_last(bytes(out))
                pieces.batches += value.batches
                pieces.size += value.size
                out.clear()
            else:
                write(out, value)
        if write_tagged_fields is not None:
            write_tagged_fields(out, entity)
    except (struct.error, UnicodeEncodeError) as error:
        raise LocalProtocolError(f"{type(entity).__qualname__} does not fit the wire: {error}") from error
    pieces.put_last(bytes(out))
    return pieces


def encode_varint(value: int) -> bytes:
    """Write a number of 0 or more as an unsigned varint (KIP-482)."""
    out = bytearray()
    _write_varint(out, value)
    return bytes(out)


_FieldWriters: TypeAlias = tuple[tuple[Callable[[Any], Any], _Writer, bool], ...]
"""For each field that is always there how it is read and written, and whether it is an array."""


@cache
def _entity_writers(entity_type: type[Entity]) -> tuple[_FieldWriters, _Writer | None, _Writer]:
    """Give the writers of the plain fields, that of all tagged ones, and that of the length of an array."""
    layout = entity_layout(entity_type)
    return (
        tuple((attrgetter(field.name), _field_writer(field), field.is_array) for field in layout.plain),
        _tagged_fields_writer(layout.tagged) if layout.flexible else None,
        _write_compact_length if layout.flexible else _write_int32,
    )


@cache
def _entity_writer(entity_type: type[Entity]) -> _Writer:
    plain, write_tagged_fields, _ = _entity_writers(entity_type)

    def write_entity(out: bytearray, entity: Entity) -> None:
        for get, write, _ in plain:
            write(out, get(entity))
        if write_tagged_fields is not None:
            write_tagged_fields(out, entity)

    return write_entity


def _field_writer(field: FieldLayout) -> _Writer:
    if not field.is_array:
        return _value_writer(field, nullable=field.nullable)
    write_length = _write_compact_length if field.flexible else _write_int32
    write_item = _value_writer(field, nullable=field.nullable_items)
    return _array_writer(write_length, write_item, nullable=field.nullable)


def _value_writer(field: FieldLayout, *, nullable: bool) -> _Writer:
    if field.entity is not None:
        write_entity = _entity_writer(field.entity)
        return _nullable_entity_writer(write_entity) if nullable else write_entity
    if field.kafka_type == "string":
        write_length = _write_compact_length if field.flexible else _write_int16
        return _text_writer(write_length, nullable=nullable)
    if field.kafka_type in {"bytes", "records"}:
        write_length = _write_compact_length if field.flexible else _write_int32
        return _bytes_writer(write_length, nullable=nullable)
    try:
        return (_NULLABLE_WRITERS if nullable else _WRITERS)[field.kafka_type]
    except KeyError:
        raise LocalProtocolError(f"no writer for {field.kafka_type}, {nullable=}") from None


def _tagged_fields_writer(tagged: tuple[FieldLayout, ...]) -> _Writer:
    if not tagged:
        return lambda out, _entity: out.append(0)
    writers = [(field.tag, attrgetter(field.name), _field_writer(field), field.default) for field in tagged]

    def write_tagged_fields(out: bytearray, entity: Entity) -> None:
        present = [(tag, write, value) for tag, get, write, default in writers if (value := get(entity)) != default]
        _write_varint(out, len(present))
        for tag, write, value in present:
            content = bytearray()
            write(content, value)
            _write_varint(out, tag or 0)
            _write_varint(out, len(content))
            out += content

    return write_tagged_fields


def _array_writer(write_length: _Writer, write_item: _Writer, *, nullable: bool) -> _Writer:
    def write_array(out: bytearray, items: Collection[Any] | None) -> None:
        if items is None:
            _write_null(out, write_length, nullable=nullable)
            return
        write_length(out, len(items))
        for item in items:
            write_item(out, item)

    return write_array


def _nullable_entity_writer(write_entity: _Writer) -> _Writer:
    def write_nullable_entity(out: bytearray, entity: Entity | None) -> None:
        if entity is None:
            _write_int8(out, NULL_ENTITY)
        else:
            _write_int8(out, PRESENT_ENTITY)
            write_entity(out, entity)

    return write_nullable_entity


def _text_writer(write_length: _Writer, *, nullable: bool) -> _Writer:
    def write_text(out: bytearray, text: str | None) -> None:
        if text is None:
            _write_null(out, write_length, nullable=nullable)
            return
        content = text.encode()
        if len(content) > MAX_TEXT_BYTES:
            raise LocalProtocolError(f"a text of {len(content)} bytes is longer than {MAX_TEXT_BYTES}")
        write_length(out, len(content))
        out += content

    return write_text


def _bytes_writer(write_length: _Writer, *, nullable: bool) -> _Writer:
    def write_bytes(out: bytearray, content: bytes | None) -> None:
        if content is None:
            _write_null(out, write_length, nullable=nullable)
            return
        write_length(out, len(content))
        out += content

    return write_bytes


def _write_null(out: bytearray, write_length: _Writer, *, nullable: bool) -> None:
    if not nullable:
        raise LocalProtocolError("None for a field that cannot be null")
    write_length(out, -1)


def _fixed_writer(layout: str) -> _Writer:
    pack = struct.Struct(layout).pack

    def write_fixed(out: bytearray, value: object) -> None:
        out += pack(value)

    return write_fixed


_write_int8: Final = _fixed_writer(FIXED_FORMATS["int8"])
_write_int16: Final = _fixed_writer(FIXED_FORMATS["int16"])
_write_int32: Final = _fixed_writer(FIXED_FORMATS["int32"])
_write_int64: Final = _fixed_writer(FIXED_FORMATS["int64"])


def _write_varint(out: bytearray, value: int) -> None:
    while value > _LOW_BITS:
        out.append(value & _LOW_BITS | _MORE)
        value >>= 7
    out.append(value)


def _write_compact_length(out: bytearray, length: int) -> None:
    _write_varint(out, length + 1)


def _write_uuid(out: bytearray, value: UUID | None) -> None:
    """On the wire, none is all zeros."""
    out += _NO_UUID if value is None else value.bytes


def _write_nullable_timestamp(out: bytearray, timestamp: datetime | None) -> None:
    _write_int64(out, -1 if timestamp is None else from_timestamp(timestamp))


_WRITERS: Final[Mapping[str, _Writer]] = MappingProxyType(
    {
        **{kafka_type: _fixed_writer(layout) for kafka_type, layout in FIXED_FORMATS.items()},
        "bool": _fixed_writer(">?"),
        "uuid": _write_uuid,
        "error_code": _write_int16,
        "timedelta_i32": lambda out, duration: _write_int32(out, from_duration(duration)),
        "timedelta_i64": lambda out, duration: _write_int64(out, from_duration(duration)),
        "datetime_i64": lambda out, timestamp: _write_int64(out, from_timestamp(timestamp)),
    }
)
_NULLABLE_WRITERS: Final[Mapping[str, _Writer]] = MappingProxyType(
    {"uuid": _write_uuid, "datetime_i64": _write_nullable_timestamp}
)
