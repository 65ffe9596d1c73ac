"""The bytes of a connection that wait to be written, in order; a long answer is given in parts.

out = OutgoingBytes()
out.put(frame(answer))
socket.send(out.take())
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import Final

from kafka_dt_protocol.wire.encoding import Pieces

LONG_WRITE_BYTES: Final = 256 * 1024
"""How much of a long answer is given to the caller at once."""


class OutgoingBytes:
    """Bytes to be written."""

    __slots__ = ("_batches", "at_length", "size")

    def __init__(self) -> None:
        self._batches: deque[tuple[bytes, ...]] = deque()
        self.size = 0
        """How many bytes wait."""
        self.at_length = False
        """Whether an answer of more than `LONG_WRITE_BYTES` has not been given whole."""

    def put(self, piece: bytes) -> None:
        """Add a short answer."""
        self._batches.append((piece,))
        self.size += len(piece)

    def put_pieces(self, pieces: Pieces) -> None:
        """Add an answer that may be long."""
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
