"""A revoked token is refused at once on the whole node, not on the one worker that was told to end it.

Workers hear of each other's changes from ZooKeeper, which takes a moment, or for ever when it hangs. So a worker that
learns of a revocation posts it on a board that all of them share (`board.py`) before the client has its
answer. The others look there before they complete a login by token, and several times a second (`look`): they end the
sessions of the token without asking ZooKeeper. The token itself is *in doubt* for them until they have read all changes
from the store, which may know more by now, such as a renewal.

If the store cannot be asked then, a token in doubt is refused; others log in. After more revocations than the board
holds all tokens are in doubt. `keep_up`, for the background, reads the changes when there is any doubt.

Source: docs/architecture.md#revocation-is-bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from kafka_dt.identity.revocation.board import FINAL, GONE, Board, Overtaken, Revocation
from kafka_dt.tokens import CachedToken, StoreUnavailable, Token, ends_sooner

HEAR_SECONDS: Final = 5.0
"""How long a login waits for the news before it is refused, which clients do not try again: less than their patience,
and more than a slow ZooKeeper takes."""


class Revocations:
    """Says whether this worker has heard of every revocation of a token on its node.

    Args:
        board: shared by the workers.
        hear_all: returns when it is proved that every change acknowledged before the call is known here; raises
            StoreUnavailable if that cannot be had.
        held: gives a token as this worker knows it, None if it does not.
        end_sessions: called with the id and the end of a token that another worker has seen ending, and this one not
            yet; a deleted one has ended already.
    """

    def __init__(
        self,
        board: Board,
        hear_all: Callable[[], Awaitable[None]],
        held: Callable[[str], CachedToken | None],
        end_sessions: Callable[[str, int], None],
    ) -> None:
        self._board = board
        self._hear_all = hear_all
        self._held = held
        self._end_sessions = end_sessions
        self._read = board.heads()
        self._looks = 0
        self._in_doubt: dict[str, int] = {}
        """Token ids, each with the look that found it on the board."""
        self._all_in_doubt: int | None = None
        """The look that found that the board had been overtaken, until the news have been heard."""

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
        return self.look() and self._all_in_doubt is None and token_id not in self._in_doubt

    async def hear(self) -> bool:
        """Read all changes of the store; False if it cannot be asked now: a token that looks live may be revoked."""
        self.look()
        asked = self._looks
        try:
            async with asyncio.timeout(HEAR_SECONDS):
                await self._hear_all()
        except (TimeoutError, StoreUnavailable):
            return False
        self._in_doubt = {token_id: look for token_id, look in self._in_doubt.items() if look > asked}
        if self._all_in_doubt is not None and self._all_in_doubt <= asked:
            self._all_in_doubt = None
        return True

    async def keep_up(self) -> None:
        """Hear the news if any token is in doubt."""
        self.look()
        if self._in_doubt or self._all_in_doubt is not None:
            await self.hear()

    def _look_at(self, worker: int, begin: int, end: int) -> int:
        """Take note of what a worker has posted; returns how far that could be read."""
        try:
            found = self._board.read(worker, begin, end)
        except Overtaken:
            self._all_in_doubt = self._looks
            return end
        for revocation in found:
            self._doubt(revocation)
        return begin + len(found)

    def _doubt(self, revocation: Revocation) -> None:
        held = self._held(revocation.token_id)
        # One that is not known is in doubt as well: it may be about to be read, as it was before. One that is known as
        # it was later is not: it may have been renewed since.
        if held is None or not held.is_as_new_as(revocation.revision):
            self._in_doubt[revocation.token_id] = self._looks
            self._end_sessions(revocation.token_id, revocation.end_timestamp_ms)
