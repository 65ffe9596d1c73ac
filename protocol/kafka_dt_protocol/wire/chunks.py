"""Bytes that wait in the pieces they came in, to be handed on without being copied.

A gateway that passes a long frame on need not join it as `FrameSplitter` does. `Chunks` copies only where a piece is
cut. What a stranger sends byte by byte is joined up to some kilobytes, so that a waiting byte costs about a byte. The
work is linear in the bytes, however they are cut.
"""

from __future__ import annotations

from collections import deque
from typing import Final

JOINED_BYTES: Final = 4096
"""Pieces that wait are joined up to this length: a piece of one byte would take forty."""


class Chunks:
    """A queue of bytes."""

    __slots__ = ("_first", "_later", "_offset", "size")

    size: int
    """How many bytes wait; not to be changed by others."""

    def __init__(self) -> None:
        self.size = 0
        self._first = b""
        self._offset = 0
        self._later: deque[bytes] = deque()

    def append(self, data: bytes) -> None:
        """Take bytes in at the end."""
        if not self.size:
            self._first = data
            self._offset = 0
        else:
            later = self._later
            if later and len(later[-1]) + len(data) <= JOINED_BYTES:
                later[-1] += data
            else:
                later.append(data)
        self.size += len(data)

    def peek(self, count: int) -> bytes:
        """Give the first bytes and leave them there: as many as asked for, or all if there are fewer."""
        start = self._offset
        head = self._first[start : start + count]
        return head if len(head) == count or not self._later else self._joined(head, count)

    def take(self, at_most: int) -> bytes:
        """Give the first bytes, those of one piece at most; nothing only if nothing is there, or asked for."""
        first, start = self._first, self._offset
        if at_most < len(first) - start:
            self._offset = start + at_most
            data = first[start : start + at_most]
        else:
            data = first[start:] if start else first
            self._first = self._later.popleft() if self._later else b""
            self._offset = 0
        self.size -= len(data)
        return data

    def take_exactly(self, count: int) -> bytes:
        """Give so many bytes in one piece; the caller knows that they are there."""
        data = self.take(count)
        if len(data) == count:
            return data
        pieces = [data]
        count -= len(data)
        while count:
            pieces.append(self.take(count))
            count -= len(pieces[-1])
        return b"".join(pieces)

    def _joined(self, head: bytes, count: int) -> bytes:
        pieces = [head]
        count -= len(head)
        for chunk in self._later:
            pieces.append(chunk[:count])
            count -= len(pieces[-1])
            if not count:
                break
        return b"".join(pieces)
