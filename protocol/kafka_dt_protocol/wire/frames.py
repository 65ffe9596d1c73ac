"""A stream of bytes <-> frames: every Kafka message travels behind its length, four bytes, big-endian.

Feed what the socket gave to `FrameSplitter.receive_data`, then call `next_frame` until it returns None. A length is
judged as soon as its four bytes are there, and nothing is allocated for it: the splitter holds exactly what has arrived
and was not yet taken. How much may wait is the caller's business (`buffered`). The work is linear in the bytes
received, however they are cut. `OutgoingFrames` holds what waits to be written; it gives a long answer in parts.

Source: Kafka protocol guide, "Common Request and Response Structure"; org.apache.kafka.common.network.NetworkReceive.
"""

from collections import deque
from dataclasses import dataclass
from itertools import chain
from struct import Struct
from typing import Final

from kafka_dt_protocol.errors import InvalidFrameLength, LocalProtocolError
from kafka_dt_protocol.wire.encoding import Pieces

LONG_WRITE_BYTES: Final = 256 * 1024
"""How much of a long answer is given to the caller at once."""

_LENGTH: Final = Struct(">i")
_MAX_LENGTH: Final = 2**31 - 1


def frame(payload: bytes) -> bytes:
    """Put its length in front of a message, or of a bare SASL token; either may be empty.

    Raises:
        LocalProtocolError: the payload is longer than a length can say.
    """
    return _length(len(payload)) + payload


def _length(size: int) -> bytes:
    if size > _MAX_LENGTH:
        raise LocalProtocolError(f"a message of {size} bytes is too long for a frame")
    return _LENGTH.pack(size)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a frame may be."""

    before_login_bytes: int
    """`sasl.server.max.receive.size`."""
    after_login_bytes: int
    """`socket.request.max.bytes`."""


class FrameSplitter:
    """Takes bytes in any chunks and gives whole frames.

    Args:
        max_bytes: the longest content of a frame that is taken.
    """

    max_bytes: int
    """May be changed at any time; applies to the frames whose length is read from then on."""
    given: int = 0
    """How many frames have been given."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._whole = b""
        self._data = bytearray()
        self._length: int | None = None

    @property
    def buffered(self) -> int:
        """How many bytes have arrived that are not part of a frame already given, length bytes included."""
        return len(self._whole) + len(self._data)

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the peer; call `next_frame` next."""
        if self._data or self._whole:
            self._join()
            self._data += data
        else:
            # Nearly always one whole frame, which then need not go through the buffer.
            self._whole = data

    def next_frame(self) -> bytes | None:
        """Give the content of the next frame, which may be empty, or None if it has not arrived in whole.

        Raises:
            InvalidFrameLength: the next length is negative or over `max_bytes`; the stream is of no more use.
        """
        if self._whole:
            whole = self._whole
            if (
                len(whole) >= _LENGTH.size
                and 0 <= _LENGTH.unpack_from(whole)[0] == len(whole) - _LENGTH.size <= self.max_bytes
            ):
                self._whole = b""
                self.given += 1
                return whole[_LENGTH.size :]
            self._join()
        data = self._data
        if self._length is None:
            if len(data) < _LENGTH.size:
                return None
            self._length = self._read_length()
        end = _LENGTH.size + self._length
        if len(data) < end:
            return None
        with memoryview(data) as view:
            content = bytes(view[_LENGTH.size : end])
        # A bytearray forgets its beginning without moving the rest.
        del data[:end]
        self._length = None
        self.given += 1
        return content

    def discard(self) -> None:
        """Forget what has arrived; the stream is of no more use."""
        self._whole = b""
        self._data = bytearray()

    def _join(self) -> None:
        self._data += self._whole
        self._whole = b""

    def _read_length(self) -> int:
        length: int = _LENGTH.unpack_from(self._data)[0]
        if not 0 <= length <= self.max_bytes:
            raise InvalidFrameLength(length, self.max_bytes)
        return length


class OutgoingFrames:
    """Frames that wait to be written, in order."""

    __slots__ = ("_batches", "at_length", "size")

    def __init__(self) -> None:
        self._batches: deque[tuple[bytes, ...]] = deque()
        self.size = 0
        """How many bytes wait."""
        self.at_length = False
        """Whether an answer of more than `LONG_WRITE_BYTES` has not been given whole."""

    def put(self, payload: bytes) -> None:
        """Frame a short message; raises as `frame`."""
        framed = _length(len(payload)) + payload
        self._batches.append((framed,))
        self.size += len(framed)

    def put_pieces(self, pieces: Pieces) -> None:
        """Frame a message that may be long; raises as `frame`."""
        pieces.put_first(_length(pieces.size))
        self._batches += pieces.batches
        self.size += pieces.size
        self.at_length = self.at_length or pieces.size > LONG_WRITE_BYTES

    def take(self) -> bytes:
        """Give the bytes to be written now: all there are, or about `LONG_WRITE_BYTES` of a long answer."""
        batches = self._batches
        if not batches:
            return b""
        if not self.at_length:
            data = b"".join(chain.from_iterable(batches))
            batches.clear()
            self.size = 0
            return data
        pieces: list[bytes] = []
        size = 0
        while batches and size < LONG_WRITE_BYTES:
            batch = batches.popleft()
            taken = 0
            while taken < len(batch) and size < LONG_WRITE_BYTES:
                size += len(batch[taken])
                taken += 1
            pieces += batch[:taken]
            if taken < len(batch):
                batches.appendleft(batch[taken:])
        self.size -= size
        self.at_length = bool(batches)
        return b"".join(pieces)

    def clear(self) -> None:
        """Forget what waits."""
        self._batches.clear()
        self.size = 0
        self.at_length = False
