"""How many tokens each requester has asked for in the present minute, counted by all workers of a node together.

The workers share memory: each writes its own counters and reads those of all. A requester falls into one counter of
each worker by a keyed hash, so that no client can choose a name that falls into another's. Two requesters that share a
counter by chance share a limit.

A minute is one of the clock. Workers that count at the same moment do not see each other: a limit may be exceeded by as
many as there are workers.

Source: docs/architecture.md#no-request-stops-a-node; `kafka_dt.identity.revocation` shares memory in the same
way.
"""

from __future__ import annotations

import hashlib
import mmap
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafka_dt.tokens.principal import Principal

COUNTERS: Final = 16_384
"""How many counters each worker has."""
MINUTE_MS: Final = 60_000
_FORMAT: Final = "Q"
_COUNTER_BYTES: Final = 8
_COUNT_BITS: Final = 24
"""The lower bits of a counter are the count, the others the minute that it is of."""
_MOST: Final = 2**_COUNT_BITS - 1


def counts_bytes(workers: int) -> int:
    """Say how much memory so many workers share."""
    return workers * COUNTERS * _COUNTER_BYTES


class CreationCounts:
    """The counters of all workers of a node.

    Args:
        memory: of `counts_bytes`, all zeros at first, the same for all workers.
        number: which worker this is, from 0.
        key: of the hash; the same for all workers, and unknown to clients.
    """

    __slots__ = ("_counters", "_first", "_key")

    def __init__(self, memory: bytearray | mmap.mmap, number: int, key: bytes) -> None:
        self._counters = memoryview(memory).cast(_FORMAT)
        self._first = number * COUNTERS
        self._key = key

    @classmethod
    def shared(cls, descriptor: int, number: int, key: bytes) -> CreationCounts:
        """Give the counters that an open file holds, the same file for all workers."""
        return cls(mmap.mmap(descriptor, 0), number, key)

    @classmethod
    def alone(cls) -> CreationCounts:
        """Give the counters of a process that shares them with no other."""
        return cls(bytearray(counts_bytes(1)), 0, b"")

    def count_below(self, limit: int, requester: Principal, now_ms: int) -> bool:
        """Count one more unless the limit is reached; says whether it was counted.

        Args:
            limit: how many a requester may have in a minute.
            requester: who asks for a token.
            now_ms: milliseconds since 1970 in UTC.
        """
        minute = now_ms // MINUTE_MS
        counter = self._counter(requester)
        if sum(_count(value, minute) for value in self._counters[counter::COUNTERS]) >= limit:
            return False
        place = self._first + counter
        # An aligned store of eight bytes, which no reader sees half done.
        self._counters[place] = minute << _COUNT_BITS | min(_count(self._counters[place], minute) + 1, _MOST)
        return True

    def _counter(self, requester: Principal) -> int:
        name = str(requester).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(name, digest_size=4, key=self._key).digest()) % COUNTERS


def _count(value: int, minute: int) -> int:
    return value & _MOST if value >> _COUNT_BITS == minute else 0
