"""Untrusted bytes -> kio's entities, with every length checked before it is used.

The reader of an entity is built from its layout when it is first needed and kept. It stands in place of kio's native
one, which trusts the peer: see docs/decisions/0001.

MalformedMessage is raised for a message that ends early, a length below -1, null where the schema has none, a count
beyond the bytes that are left, text that is not UTF-8 or over 32767 bytes, and a varint over 5 bytes. Unknown tagged
fields are skipped. Bytes after the entity are left to the caller. Instants and durations beyond Python's saturate.

Limits: a message costs memory in proportion to the bytes that really arrived, and at most `max_elements` array
elements and tagged fields together.

Source: Kafka protocol guide, "Protocol Primitive Types"; KIP-482; KIP-893;
org.apache.kafka.common.protocol.ByteBufferAccessor.
"""

import struct
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, cast
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.static.protocol import Entity

from kafka_dt_protocol.errors import LocalProtocolError, MalformedMessage
from kafka_dt_protocol.wire.layout import (
    FIXED_FORMATS,
    MAX_TEXT_BYTES,
    NULL_ENTITY,
    PRESENT_ENTITY,
    FieldLayout,
    entity_layout,
)
from kafka_dt_protocol.wire.times import to_duration, to_timestamp

E = TypeVar("E", bound=Entity)

MAX_ELEMENTS: Final = 100_000
"""Array elements and tagged fields of one message, counted through all its levels, where the caller says nothing.

Requests have far lower limits, each API its own (`kafka_dt_protocol.api.registry`).
"""

_MORE: Final = 0x80
"""The bit of a varint's byte that says that another follows."""

_MAX_VARINT_BYTES: Final = 5
_ERROR_CODES: Final = MappingProxyType({int(code): code for code in ErrorCode})


def decode(entity_type: type[E], buffer: bytes, offset: int = 0, *, max_elements: int = MAX_ELEMENTS) -> tuple[E, int]:
    """Decode one entity; gives it with the offset of the first byte after it.

    Args:
        entity_type: one of kio's entity types.
        buffer: the frame; all of it has arrived.
        offset: where the entity begins in it.
        max_elements: how many array elements and tagged fields are taken.

    Raises:
        MalformedMessage: the bytes are no such entity.
    """
    cursor = _Cursor(buffer, offset, max_elements)
    try:
        entity = _entity_reader(entity_type)(cursor)
    except (struct.error, IndexError):
        raise MalformedMessage("it ends early") from None
    except UnicodeDecodeError:
        raise MalformedMessage("text that is not UTF-8") from None
    return cast("E", entity), cursor.offset


def skip_tagged_fields(buffer: bytes, offset: int, *, max_elements: int) -> int:
    """Skip tagged fields of which none is known, as those of a request header; arguments and errors as of `decode`."""
    cursor = _Cursor(buffer, offset, max_elements)
    try:
        _read_no_tagged_fields(cursor, {})
    except IndexError:
        raise MalformedMessage("it ends early") from None
    return cursor.offset


def read_varint(buffer: bytes, offset: int) -> tuple[int, int]:
    """Read an unsigned varint (KIP-482); gives it with the offset behind it, and raises IndexError at the end.

    Raises:
        MalformedMessage: it has more than 5 bytes.
    """
    value = buffer[offset]
    if value < _MORE:
        return value, offset + 1
    value -= _MORE
    for place in range(1, _MAX_VARINT_BYTES):
        byte = buffer[offset + place]
        value |= (byte & ~_MORE) << (7 * place)
        if byte < _MORE:
            return value, offset + place + 1
    raise MalformedMessage("a varint over 5 bytes")


class _Cursor:
    """A place in a message, and what may still be taken from it."""

    __slots__ = ("buffer", "elements", "end", "offset")

    def __init__(self, buffer: bytes, offset: int, max_elements: int) -> None:
        self.buffer = buffer
        self.offset = offset
        self.end = len(buffer)
        self.elements = max_elements

    def expect(self, count: int) -> None:
        """Judge an announced number of elements, each of at least one byte, before any is read."""
        if count > self.end - self.offset:
            raise MalformedMessage("a count beyond its end")
        self.elements -= count
        if self.elements < 0:
            raise MalformedMessage("too many elements")


_Reader: TypeAlias = Callable[[_Cursor], Any]


@cache
def _entity_reader(entity_type: type[Entity]) -> _Reader:
    layout = entity_layout(entity_type)
    plain = tuple((field.name, _field_reader(field)) for field in layout.plain)
    if not layout.flexible:
        return lambda cursor: entity_type(**{name: read(cursor) for name, read in plain})
    read_tagged_fields = _tagged_fields_reader(layout.tagged)

    def read_entity(cursor: _Cursor) -> Entity:
        values = {name: read(cursor) for name, read in plain}
        read_tagged_fields(cursor, values)
        return entity_type(**values)

    return read_entity


def _field_reader(field: FieldLayout) -> _Reader:
    if not field.is_array:
        return _value_reader(field, nullable=field.nullable)
    read_length = _read_compact_length if field.flexible else _read_int32
    read_item = _value_reader(field, nullable=field.nullable_items)
    return _array_reader(read_length, read_item, nullable=field.nullable)


def _value_reader(field: FieldLayout, *, nullable: bool) -> _Reader:
    if field.entity is not None:
        read_entity = _entity_reader(field.entity)
        return _nullable_entity_reader(read_entity) if nullable else read_entity
    if field.kafka_type == "string":
        read_length = _read_compact_length if field.flexible else _read_int16
        return _text_reader(_chunk_reader(read_length, nullable=nullable, limit=MAX_TEXT_BYTES))
    if field.kafka_type in {"bytes", "records"}:
        read_length = _read_compact_length if field.flexible else _read_int32
        return _chunk_reader(read_length, nullable=nullable)
    try:
        return (_NULLABLE_READERS if nullable else _READERS)[field.kafka_type]
    except KeyError:
        raise LocalProtocolError(f"no reader for {field.kafka_type}, {nullable=}") from None


def _tagged_fields_reader(tagged: tuple[FieldLayout, ...]) -> Callable[[_Cursor, dict[str, Any]], None]:
    readers = {field.tag: (field.name, _field_reader(field)) for field in tagged}
    defaults = tuple((field.name, field.default) for field in tagged)

    def read_tagged_fields(cursor: _Cursor, values: dict[str, Any]) -> None:
        count = _read_varint(cursor)
        if count:
            cursor.expect(count)
            for _ in range(count):
                read_tagged_field(cursor, values)
        for name, default in defaults:
            values.setdefault(name, default)

    def read_tagged_field(cursor: _Cursor, values: dict[str, Any]) -> None:
        tag = _read_varint(cursor)
        size = _read_varint(cursor)
        end = cursor.offset + size
        if end > cursor.end:
            raise MalformedMessage("a tagged field beyond its end")
        if tag in readers:
            name, read = readers[tag]
            if name in values:
                raise MalformedMessage("a known tagged field twice")
            values[name] = read(cursor)
            if cursor.offset != end:
                raise MalformedMessage("a tagged field of another size than announced")
        cursor.offset = end

    return read_tagged_fields


def _array_reader(read_length: _Reader, read_item: _Reader, *, nullable: bool) -> _Reader:
    def read_array(cursor: _Cursor) -> tuple[Any, ...] | None:
        length = read_length(cursor)
        if length < 0:
            _expect_null(length, nullable=nullable)
            return None
        cursor.expect(length)
        return tuple([read_item(cursor) for _ in range(length)])

    return read_array


def _nullable_entity_reader(read_entity: _Reader) -> _Reader:
    def read_nullable_entity(cursor: _Cursor) -> Entity | None:
        marker = _read_int8(cursor)
        if marker == NULL_ENTITY:
            return None
        if marker != PRESENT_ENTITY:
            raise MalformedMessage("a nullable entity neither there nor null")
        return cast("Entity", read_entity(cursor))

    return read_nullable_entity


def _chunk_reader(read_length: _Reader, *, nullable: bool, limit: int | None = None) -> _Reader:
    def read_chunk(cursor: _Cursor) -> bytes | None:
        length = read_length(cursor)
        if length < 0:
            _expect_null(length, nullable=nullable)
            return None
        if limit is not None and length > limit:
            raise MalformedMessage("text that is too long")
        start = cursor.offset
        end = start + length
        if end > cursor.end:
            raise MalformedMessage("a length beyond its end")
        cursor.offset = end
        return cursor.buffer[start:end]

    return read_chunk


def _text_reader(read_chunk: _Reader) -> _Reader:
    def read_text(cursor: _Cursor) -> str | None:
        chunk = read_chunk(cursor)
        return None if chunk is None else chunk.decode()

    return read_text


def _expect_null(length: int, *, nullable: bool) -> None:
    if length != -1:
        raise MalformedMessage("a negative length")
    if not nullable:
        raise MalformedMessage("null where there must be a value")


def _fixed_reader(layout: str) -> _Reader:
    fixed = struct.Struct(layout)
    unpack_from, size = fixed.unpack_from, fixed.size

    def read_fixed(cursor: _Cursor) -> Any:
        offset = cursor.offset
        cursor.offset = offset + size
        return unpack_from(cursor.buffer, offset)[0]

    return read_fixed


_read_int8: Final = _fixed_reader(FIXED_FORMATS["int8"])
_read_int16: Final = _fixed_reader(FIXED_FORMATS["int16"])
_read_int32: Final = _fixed_reader(FIXED_FORMATS["int32"])
_read_int64: Final = _fixed_reader(FIXED_FORMATS["int64"])
_read_any_float64: Final = _fixed_reader(FIXED_FORMATS["float64"])
_read_uuid_bytes: Final = _fixed_reader(">16s")


def _read_varint(cursor: _Cursor) -> int:
    value = cursor.buffer[cursor.offset]
    if value < _MORE:
        cursor.offset += 1
        return value
    value, cursor.offset = read_varint(cursor.buffer, cursor.offset)
    return value


def _read_compact_length(cursor: _Cursor) -> int:
    return _read_varint(cursor) - 1


def _read_bool(cursor: _Cursor) -> bool:
    return bool(_read_int8(cursor))


def _read_float64(cursor: _Cursor) -> float:
    value: float = _read_any_float64(cursor)
    if not isfinite(value):
        raise MalformedMessage("a number that is not finite")
    return value


def _read_uuid(cursor: _Cursor) -> UUID:
    return UUID(bytes=_read_uuid_bytes(cursor))


def _read_nullable_uuid(cursor: _Cursor) -> UUID | None:
    """On the wire, none is all zeros."""
    value = _read_uuid_bytes(cursor)
    return UUID(bytes=value) if any(value) else None


def _read_error_code(cursor: _Cursor) -> ErrorCode:
    """Take a code that a newer broker may have for the unknown error, as Kafka's Errors does."""
    return _ERROR_CODES.get(_read_int16(cursor), ErrorCode.unknown_server_error)


def _read_nullable_timestamp(cursor: _Cursor) -> datetime | None:
    timestamp_ms = _read_int64(cursor)
    return None if timestamp_ms == -1 else to_timestamp(timestamp_ms)


_READERS: Final[Mapping[str, _Reader]] = MappingProxyType(
    {
        **{kafka_type: _fixed_reader(layout) for kafka_type, layout in FIXED_FORMATS.items()},
        "float64": _read_float64,
        "bool": _read_bool,
        "uuid": _read_uuid,
        "error_code": _read_error_code,
        "timedelta_i32": lambda cursor: to_duration(_read_int32(cursor)),
        "timedelta_i64": lambda cursor: to_duration(_read_int64(cursor)),
        "datetime_i64": lambda cursor: to_timestamp(_read_int64(cursor)),
    }
)
_NULLABLE_READERS: Final[Mapping[str, _Reader]] = MappingProxyType(
    {"uuid": _read_nullable_uuid, "datetime_i64": _read_nullable_timestamp}
)

_read_no_tagged_fields: Final = _tagged_fields_reader(())
