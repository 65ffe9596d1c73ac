"""Any bytes in the topic of revocations, written by any program: messages are read, and the rest is left out.

The checksum of the first batch is made right, so that what is behind it is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from crc32c import crc32c

from kafka_dt.kraft.news.message import Revocation
from kafka_dt.kraft.news.records import batch, read

_HMAC: Final = bytes(64)
_MESSAGES: Final = [Revocation.of("AAAAAAAAAAAAAAAAAAAAAA", _HMAC, end_ms) for end_ms in (None, 0, 1_764_000_000_000)]
_LENGTH: Final = struct.Struct(">i")
_CHECKSUM: Final = struct.Struct(">I")
_LENGTH_AT: Final = 8
_LENGTH_END: Final = 12
_CHECKSUM_AT: Final = 17
_CHECKSUM_END: Final = 21


def seeds() -> Iterable[bytes]:
    yield b""
    yield from (message.encode() for message in _MESSAGES)
    yield batch(_MESSAGES, 1_764_000_000_000)
    yield batch(_MESSAGES[:1], 0) + batch(_MESSAGES[1:], 0)


def check(data: bytes) -> None:
    message = Revocation.decode(data)
    assert message is None or Revocation.decode(message.encode()) == message
    for content in (data, _with_checksum(data)):
        found = read(content, 3)
        assert found.next_offset >= 3


def _with_checksum(data: bytes) -> bytes:
    if len(data) < _CHECKSUM_END:
        return data
    (length,) = _LENGTH.unpack_from(data, _LENGTH_AT)
    end = _LENGTH_END + length
    checksum = _CHECKSUM.pack(crc32c(data[_CHECKSUM_END : max(end, _CHECKSUM_END)]))
    return data[:_CHECKSUM_AT] + checksum + data[_CHECKSUM_END:]
