"""A revoked token is refused at once on the whole node, not on the one worker that was told to end it.

Workers hear of each other's changes from ZooKeeper, which takes a moment. So they share a board of counters, many for
each worker: a worker that learns of a revocation counts it in the one that the token id falls into, before the client
has its answer, and a worker that completes a login by token first looks whether anything was counted there since it
last heard all news. Only then it asks the store, otherwise the look costs the comparison of a few numbers.

If the store cannot be asked then, this token is refused: it may be the one. Others are not, so that logins go on while
ZooKeeper is away. The fewer revocations were counted since the last news, the fewer tokens share a counter with one;
hence `keep_up`, for the background.

Source: DESIGN.md, "Revocation is bounded".
"""

from __future__ import annotations

import asyncio
import mmap
import zlib
from collections.abc import Awaitable, Callable
from typing import Final

from kafka_dt.tokens import StoreUnavailable, Token, ends_sooner

HEAR_SECONDS: Final = 5.0
"""How long a login waits for the news before it is refused, which clients do not try again: less than their patience,
and more than a slow ZooKeeper takes."""
COUNTERS: Final = 32_768
"""How many counters each worker has on the board."""
_FORMAT: Final = "I"
_COUNTER_BYTES: Final = 4


def board_bytes(workers: int) -> int:
    """Say how large the board of so many workers is."""
    return workers * COUNTERS * _COUNTER_BYTES


class Board:
    """The counters of all workers of a node; each worker writes its own and reads all.

    Args:
        memory: of `board_bytes`, the same for all workers.
        number: which worker this is, from 0.
    """

    def __init__(self, memory: bytearray | mmap.mmap, number: int) -> None:
        self._counters = memoryview(memory).cast(_FORMAT)
        self._first = number * COUNTERS

    @classmethod
    def shared(cls, descriptor: int, number: int) -> Board:
        """Give the board that an open file holds, the same file for all workers."""
        return cls(mmap.mmap(descriptor, 0), number)

    def count(self, token_id: str) -> None:
        """Count a revocation, for all to see when this returns."""
        place = self._first + _counter(token_id)
        # An aligned store of four bytes, which no reader sees half done.
        self._counters[place] = (self._counters[place] + 1) % 2**32

    def about(self, token_id: str) -> list[int]:
        """Give the counters that a token falls into, one of each worker."""
        return _about(self._counters, token_id)

    def read(self) -> bytes:
        """Give all counters; equal bytes mean that nothing was counted in between."""
        return self._counters.tobytes()


class Revocations:
    """Says whether this worker has heard of every revocation of a token on its node.

    Args:
        board: shared by the workers.
        hear_all: returns when every change acknowledged before the call is known here; raises StoreUnavailable if that
            cannot be had.
    """

    def __init__(self, board: Board, hear_all: Callable[[], Awaitable[None]]) -> None:
        self._board = board
        self._hear_all = hear_all
        self._heard = board.read()

    def token_changed(self, token_id: str, before: Token | None, after: Token | None) -> None:
        """Count a change that ends a token sooner; the cache calls this before the change is answered."""
        if ends_sooner(before, after):
            self._board.count(token_id)

    def heard_about(self, token_id: str) -> bool:
        """Whether what is known here of a token can be believed; if not, `hear` comes first."""
        return self._board.about(token_id) == _about(memoryview(self._heard).cast(_FORMAT), token_id)

    async def hear(self) -> bool:
        """Hear all news; False if they cannot be had now: a token may be revoked that is taken for live here."""
        counted = self._board.read()
        try:
            async with asyncio.timeout(HEAR_SECONDS):
                await self._hear_all()
        except (TimeoutError, StoreUnavailable):
            return False
        self._heard = counted
        return True

    async def keep_up(self) -> None:
        """Hear the news if anything was counted since they were heard, so that few tokens are in doubt."""
        if self._board.read() != self._heard:
            await self.hear()


def _counter(token_id: str) -> int:
    return zlib.crc32(token_id.encode("utf-8", "surrogatepass")) % COUNTERS


def _about(counters: memoryview, token_id: str) -> list[int]:
    found: list[int] = counters[_counter(token_id) :: COUNTERS].tolist()
    return found
