"""Share ended tokens between the workers of a node, in memory that all of them map.

Each worker has a ring of its own on the board, which it alone writes: the token's id and when it ends. A reader
remembers for each worker how far it has read. There are no locks, so a worker that hangs holds up no other. A reader
that falls behind by more than a ring, such as one that stood still for long, learns that it did (`Overtaken`).

Only ids in the form of Kafka's are posted: no login can be by another one.

Limit: a slot that another core does not see completely yet looks unwritten (its checksum does not fit), and is read the
next time.

Source: docs/architecture.md#revocation-is-bounded; docs/decisions/0011-what-proves-freshness.md.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kafka_dt.tokens import has_token_id_form

SLOTS: Final = 16_384
"""How many revocations each worker's ring holds: some seconds of as many as ZooKeeper takes."""
GONE: Final = 0
"""The end of a token that was deleted."""
FINAL: Final = 2**63 - 1
"""The revision of a deletion: no change of that token is later."""

_HEAD_FORMAT: Final = "Q"
"""How many revocations a worker has posted so far."""
_HEAD_BYTES: Final = 8
_REVOCATION: Final = struct.Struct("<Qqq22s")
"""Its number, the end of the token, the revision, the token's id."""
_CHECKSUM: Final = struct.Struct("<I")
_SLOT_BYTES: Final = 56
_RING_BYTES: Final = SLOTS * _SLOT_BYTES


@dataclass(frozen=True, slots=True)
class Revocation:
    """A token that ends sooner than it was to."""

    token_id: str
    end_timestamp_ms: int
    """When it ends now, in milliseconds since 1970; GONE if it was deleted."""
    revision: int
    """The place of that change among all changes of the store; FINAL if it was deleted."""


class Overtaken(Exception):
    """A worker has posted more since the last look than its ring holds, so some of it cannot be read any more."""


def board_bytes(workers: int) -> int:
    """Say how large the board of so many workers is."""
    return workers * (_HEAD_BYTES + _RING_BYTES)


class Board:
    """The rings of all workers of a node, behind a number for each that says how much it has posted.

    Args:
        memory: of `board_bytes`, the same for all workers.
        number: which worker this is, from 0.
    """

    __slots__ = ("_heads", "_memory", "number")

    def __init__(self, memory: bytearray | mmap.mmap, number: int) -> None:
        whole = memoryview(memory)
        heads = len(whole) // (_HEAD_BYTES + _RING_BYTES) * _HEAD_BYTES
        self._heads = whole[:heads].cast(_HEAD_FORMAT)
        self._memory = whole[heads:]
        self.number = number

    @classmethod
    def shared(cls, descriptor: int, number: int) -> Board:
        """Give the board that an open file holds, the same file for all workers."""
        return cls(mmap.mmap(descriptor, 0), number)

    def post(self, token_id: str, end_timestamp_ms: int = GONE, revision: int = FINAL) -> None:
        """Post a revocation, for all to see when this returns.

        Args:
            token_id: any text; only the id of a token that could log in is posted.
            end_timestamp_ms: when the token ends now.
            revision: see `Revocation`.
        """
        if not has_token_id_form(token_id):
            return
        number = self._heads[self.number]
        slot = self._slot(self.number, number)
        _REVOCATION.pack_into(self._memory, slot, number, end_timestamp_ms, revision, token_id.encode("ascii"))
        _CHECKSUM.pack_into(self._memory, slot + _REVOCATION.size, self._checksum(slot))
        # Last of all: an aligned store of eight bytes, which no reader sees half done.
        self._heads[self.number] = number + 1

    def heads(self) -> list[int]:
        """Say how many revocations each worker has posted so far."""
        found: list[int] = self._heads.tolist()
        return found

    def read(self, worker: int, begin: int, end: int) -> Sequence[Revocation]:
        """Read the revocations of a worker from number `begin` to before number `end`, as far as they can be seen.

        Raises:
            Overtaken: some of them are not there any more.
        """
        if end - begin > SLOTS:
            raise Overtaken
        found: list[Revocation] = []
        for number in range(begin, end):
            slot = self._slot(worker, number)
            written, end_ms, revision, token_id = _REVOCATION.unpack_from(self._memory, slot)
            if _CHECKSUM.unpack_from(self._memory, slot + _REVOCATION.size)[0] != self._checksum(slot):
                break
            if written != number:
                if written > number:
                    raise Overtaken
                break
            found.append(Revocation(token_id.decode("ascii"), end_ms, revision))
        return found

    @staticmethod
    def _slot(worker: int, number: int) -> int:
        return worker * _RING_BYTES + number % SLOTS * _SLOT_BYTES

    def _checksum(self, slot: int) -> int:
        return zlib.crc32(self._memory[slot : slot + _REVOCATION.size])
