"""Count the open connections of a node: each worker its own, in memory that all of them share.

A worker writes its own row and reads all rows, so no lock is needed: it counts a connection first, looks at the sums
then, and takes its count back if they are too large. So two workers that take the last place at the same moment may
both refuse it, and never both keep it. The row of a worker that was killed counts until its successor begins with an
empty one; the sums are too large until then, never too small.

An address stands in a row under its keyed hash of 64 bits, at one of `WAYS` places that the hash chooses. If all of
them are taken by other addresses it is counted by this worker alone: with 2,000 addresses at once that happens once in
millions, with 16,000, which is more than a row is made for, now and then.
"""

from __future__ import annotations

import hashlib
import mmap
from collections import Counter
from functools import lru_cache
from typing import Final

MAX_LISTENERS: Final = 64
SETS: Final = 2048
WAYS: Final = 8
KNOWN_ADDRESSES: Final = 1024
"""How many addresses' hashes are kept."""

_WORD_BYTES: Final = 8
_TOTAL: Final = 0
_LISTENERS: Final = 1
_ADDRESSES: Final = _LISTENERS + MAX_LISTENERS
_SET_WORDS: Final = 2 * WAYS
_ROW_WORDS: Final = _ADDRESSES + SETS * _SET_WORDS


class ConnectionCounts:
    """The connections of one worker, and the sums of its node.

    Args:
        memory: of `row_bytes` for each worker, the same for all of them.
        number: which worker this is, from 0.
        node: what the workers of the node have in common; keys the hashes.
    """

    def __init__(self, memory: bytearray | mmap.mmap, number: int, node: str) -> None:
        self._words = memoryview(memory).cast("Q")
        self._row = number * _ROW_WORDS
        self._words[self._row : self._row + _ROW_WORDS] = memoryview(bytes(row_bytes())).cast("Q")
        self._key_of = lru_cache(KNOWN_ADDRESSES)(_Keys(node.encode()).of)
        self._homeless: Counter[str] = Counter()

    @classmethod
    def shared(cls, descriptor: int, number: int, node: str) -> ConnectionCounts:
        """Give the counts that an open file holds, the same file for all workers."""
        return cls(mmap.mmap(descriptor, 0), number, node)

    def add(self, listener: int, change: int) -> None:
        """Count a connection of a listener, +1 or -1.

        Args:
            listener: its place among those of the node, from 0.
            change: +1 or -1.
        """
        self._words[self._row + _TOTAL] += change
        self._words[self._row + _LISTENERS + listener] += change

    def add_address(self, address: str, change: int) -> None:
        """Count a connection of an address, +1 or -1."""
        key = self._key_of(address)
        if not self._homeless[address] and (place := self._place(key, new=change > 0)) is not None:
            self._words[place] = key
            self._words[place + 1] += change
            return
        self._homeless[address] += change
        if not self._homeless[address]:
            del self._homeless[address]  # else the table would grow with every address that ever came

    @property
    def total(self) -> int:
        """How many connections the node has."""
        return self._sum(_TOTAL)

    def of_listener(self, listener: int) -> int:
        """Say how many of them have come by a listener."""
        return self._sum(_LISTENERS + listener)

    def of_address(self, address: str) -> int:
        """Say how many of them come from an address."""
        key = self._key_of(address)
        first = _first(key)
        found = self._homeless.get(address, 0)
        for row in range(0, len(self._words), _ROW_WORDS):
            places = self._words[row + first : row + first + _SET_WORDS].tolist()
            found += sum(places[at + 1] for at in range(0, _SET_WORDS, 2) if places[at] == key)
        return found

    def _sum(self, column: int) -> int:
        return sum(self._words[column::_ROW_WORDS].tolist())

    def _place(self, key: int, *, new: bool) -> int | None:
        """Find where a key stands in this worker's row, or could."""
        first = self._row + _first(key)
        free = None
        for place in range(first, first + _SET_WORDS, 2):
            if not self._words[place + 1]:
                free = place if free is None else free
            elif self._words[place] == key:
                return place
        return free if new else None


class _Keys:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def of(self, address: str) -> int:
        digest = hashlib.blake2b(address.encode(), key=self._secret, digest_size=_WORD_BYTES)
        return int.from_bytes(digest.digest())


def row_bytes() -> int:
    """Say how much memory a worker's row takes."""
    return _ROW_WORDS * _WORD_BYTES


def _first(key: int) -> int:
    return _ADDRESSES + key % SETS * _SET_WORDS
