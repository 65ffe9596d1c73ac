"""Share ended tokens between the workers of a node: a revoked token is refused at once by all of them.

Workers hear of each other's changes from ZooKeeper, which takes a moment, or for ever when it hangs. So a worker that
learns of a revocation posts it on a `Board`, memory that all of them map, before the client has its answer. The others
look there before they complete a login by token, and several times a second (`Revocations.look`): they end the sessions
of the token without asking ZooKeeper. They *suspect* the token until they have read all changes from the store, which
may know more by now, such as a renewal. If the store cannot be asked then, a suspected token is refused.

Each worker has a ring of its own on the board, which it alone writes, so there are no locks. A reader that falls behind
by more than a ring learns that (`Overtaken`), and suspects all tokens. Only ids in the form of Kafka's are posted.

Limit: a slot that another core does not see completely yet looks unwritten (its checksum does not fit), and is read the
next time.

Source: docs/architecture.md#revocation-is-bounded; docs/decisions/0011-what-proves-freshness.md.
"""

from __future__ import annotations

import asyncio
import mmap
import struct
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_dt.tokens import CachedToken, StoreUnavailable, Token, ends_sooner, has_token_id_form

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
        """Post a revocation, for all to see when this returns; a name without the form of a token id is left out."""
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


HEAR_SECONDS: Final = 5.0
"""How long a login waits for the news before it is refused, which clients do not try again: less than their patience,
and more than a slow ZooKeeper takes."""


class Revocations:
    """Says whether this worker has heard of every revocation of a token on its node.

    Args:
        board: shared by the workers.
        prove: returns when it is proved that every change acknowledged before the call is known here, in the store of
            a token or in all stores (None); raises StoreUnavailable if that cannot be had.
        held: gives a token as this worker knows it, None if it does not.
        end_sessions: called with the id and the end of a token that another worker has seen ending, and this one not
            yet; a deleted one has ended already.
    """

    def __init__(
        self,
        board: Board,
        prove: Callable[[str | None], Awaitable[None]],
        held: Callable[[str], CachedToken | None],
        end_sessions: Callable[[str, int], None],
    ) -> None:
        self._board = board
        self._prove = prove
        self._held = held
        self._end_sessions = end_sessions
        self._read = board.heads()
        self._looks = 0
        self._suspected: dict[str, int] = {}
        """Token ids, each with the look that found it on the board."""
        self._all_suspected: int | None = None
        """The look that found that the board had been overtaken, until all changes have been read."""

    def token_changed(self, token_id: str, before: Token | None, after: Token | None) -> None:
        """Post a change that ends a token sooner; the cache calls this before the change is answered."""
        if ends_sooner(before, after):
            held = self._held(token_id)
            end_ms = GONE if after is None else after.end_timestamp_ms
            revision = None if held is None else held.revision
            self._board.post(token_id, end_ms, FINAL if revision is None else revision)

    def look(self) -> bool:
        """Take note of what the other workers have posted since the last look; False if some cannot be seen yet."""
        heads = self._board.heads()
        if heads == self._read:
            return True
        self._looks += 1
        for worker, (begin, end) in enumerate(zip(self._read, heads, strict=True)):
            self._read[worker] = end if worker == self._board.number else self._look_at(worker, begin, end)
        return heads == self._read

    def heard_about(self, token_id: str) -> bool:
        """Whether what is known here of a token can be believed; if not, `hear` comes first."""
        return self.look() and self._all_suspected is None and token_id not in self._suspected

    async def hear(self, token_id: str | None = None) -> bool:
        """Read all changes of the stores; False if one cannot be asked now: a token that looks live may be revoked.

        With `token_id` the store of that token is enough: then it can be believed, also if it has ended meanwhile, and
        others stay suspected.
        """
        try:
            async with asyncio.timeout(HEAR_SECONDS):
                while not await self._heard(token_id):
                    pass  # another worker has ended the token since
        except (TimeoutError, StoreUnavailable):
            return False
        return True

    async def keep_up(self) -> None:
        """Hear the news if any token is suspected."""
        self.look()
        if self._suspected or self._all_suspected is not None:
            await self.hear()

    async def _heard(self, token_id: str | None) -> bool:
        """Read all changes; False if the token may have ended since this began."""
        self.look()
        asked, posted = self._looks, self._board.heads()
        await self._prove(token_id)
        self._suspected = {
            each: look for each, look in self._suspected.items() if look > asked or token_id not in {None, each}
        }
        if token_id is None:
            if self._all_suspected is not None and self._all_suspected <= asked:
                self._all_suspected = None
            return True
        # What was posted before has been told by the store, also if it cannot be seen on the board yet.
        if self._board.heads() == posted:
            return True
        return self.look() and token_id not in self._suspected and (self._all_suspected or 0) <= asked

    def _look_at(self, worker: int, begin: int, end: int) -> int:
        """Take note of what a worker has posted; returns how far that could be read."""
        try:
            found = self._board.read(worker, begin, end)
        except Overtaken:
            self._all_suspected = self._looks
            return end
        for revocation in found:
            self._suspect(revocation)
        return begin + len(found)

    def _suspect(self, revocation: Revocation) -> None:
        held = self._held(revocation.token_id)
        # One that is not known is suspected as well: it may be about to be read, as it was before. One that is known as
        # it was later is not: it may have been renewed since.
        if held is None or not held.is_as_new_as(revocation.revision):
            self._suspected[revocation.token_id] = self._looks
            self._end_sessions(revocation.token_id, revocation.end_timestamp_ms)
