"""What stands in front of strings, bytes, arrays and tagged fields: how long they are.

Every reader takes a buffer and an offset and gives the number and the offset behind it, without moving anything, so
that it can be called again when more bytes are there. Null is -1 in all of them. A buffer that ends early raises one of
`ENDS_EARLY`; what it means is for the caller to say.

Source: Kafka protocol guide, "Protocol Primitive Types"; KIP-482.
"""

import struct
from collections.abc import Callable
from typing import Final, TypeAlias

from kafka_dt_protocol.errors import MalformedMessage
from kafka_dt_protocol.wire.layout import FIXED_FORMATS, FieldLayout

ENDS_EARLY: Final = (IndexError, struct.error)
"""What a reader raises where the buffer has no more bytes."""

LengthReader: TypeAlias = Callable[[bytes, int], tuple[int, int]]

_MORE: Final = 0x80
"""The bit of a varint's byte that says that another follows."""

_MAX_VARINT_BYTES: Final = 5
_INT16: Final = struct.Struct(FIXED_FORMATS["int16"])
_INT32: Final = struct.Struct(FIXED_FORMATS["int32"])


def read_varint(buffer: bytes, offset: int) -> tuple[int, int]:
    """Read an unsigned varint (KIP-482).

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


def read_int32(buffer: bytes, offset: int) -> tuple[int, int]:
    """Read a signed number of four bytes."""
    value: int = _INT32.unpack_from(buffer, offset)[0]
    return value, offset + _INT32.size


def length_reader(field: FieldLayout, *, of_array: bool) -> LengthReader:
    """Choose the reader of what stands before a field.

    Args:
        field: a string, bytes, records, or an array.
        of_array: whether the number of an array's items is meant rather than the length of one.
    """
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
