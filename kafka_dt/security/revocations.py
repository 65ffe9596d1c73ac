"""A revoked token is refused at once on the whole node, not on the one worker that was told to end it.

Workers hear of each other's changes from ZooKeeper, which takes a moment. So they share a board of counters: a worker
that learns of a revocation counts it there before the client has its answer, and a worker that completes a login by
token first looks whether anything was counted since it last heard all news. Only then it asks the store, otherwise the
look costs the comparison of a few bytes.

Source: DESIGN.md, "Revocation is bounded".
"""

from __future__ import annotations

import asyncio
import mmap
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from kafka_dt.tokens import StoreUnavailable, Token, ends_sooner

HEAR_SECONDS: Final = 1.0
"""How long a login waits for the news before it is refused."""
MAX_WORKERS: Final = mmap.PAGESIZE // 8
"""How many counters the board has."""


class Board(Protocol):
    """Counts the revocations that the processes of a node know of."""

    def count(self) -> None:
        """Count one revocation, for all to see when this returns."""

    def read(self) -> bytes:
        """Give the counters of all; equal bytes mean that nothing was counted in between."""


class SharedBoard:
    """A page of memory that the workers of a node share, with one counter for each, which it alone writes.

    Args:
        descriptor: an open file of one page, the same for all workers.
        number: which worker this is, from 0.
    """

    def __init__(self, descriptor: int, number: int) -> None:
        self._counters = memoryview(mmap.mmap(descriptor, mmap.PAGESIZE)).cast("Q")
        self._number = number % MAX_WORKERS

    def count(self) -> None:
        """Count one revocation, for all to see when this returns."""
        # An aligned store of eight bytes, which no reader sees half done.
        self._counters[self._number] = (self._counters[self._number] + 1) % 2**64

    def read(self) -> bytes:
        """Give the counters of all."""
        return self._counters.tobytes()


class Revocations:
    """Says whether this worker has heard of every revocation on its node.

    Args:
        board: shared by the workers.
        hear_all: returns when every change acknowledged before the call is known here; raises StoreUnavailable if that
            cannot be had.
    """

    def __init__(self, board: Board, hear_all: Callable[[], Awaitable[None]]) -> None:
        self._board = board
        self._hear_all = hear_all
        self._heard = board.read()

    def token_changed(self, _token_id: str, before: Token | None, after: Token | None) -> None:
        """Count a change that ends a token sooner; the cache calls this before the change is answered."""
        if ends_sooner(before, after):
            self._board.count()

    @property
    def all_heard(self) -> bool:
        """Whether nothing was counted since this worker heard all news."""
        return self._board.read() == self._heard

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
