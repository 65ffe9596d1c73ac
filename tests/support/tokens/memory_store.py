"""A VersionedStore in memory: a second implementation of the interface, for tests of the domain.

It stands in for the real store where a test needs to decide who is first, when news arrives and when the connection
breaks. That the real one keeps the same contract is tested against a real ZooKeeper, with the same
`VersionedStoreContract`.

Several stores attached to one `MemoryTokenDatabase` are several nodes. News of other nodes reaches a node's listener
only by `deliver`, `catch_up` or `load`, as over a network as slow as a test wants it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection

from kafka_dt.tokens import ChangeListener, StoredToken, StoreUnavailable, Token, TokenNotFound, VersionConflict

MAX_STALENESS_MS = 30_000


class MemoryTokenDatabase:
    """What all nodes share: the tokens, and the ids that were changed, in order."""

    def __init__(self) -> None:
        self.tokens: dict[str, StoredToken] = {}
        self.changed_ids: list[str] = []
        self.now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000

    def put(self, token: Token, version: int) -> StoredToken:
        stored = StoredToken(token, version, revision=len(self.changed_ids) + 1)
        self.tokens[token.token_id] = stored
        self.changed_ids.append(token.token_id)
        return stored

    def remove(self, token_id: str) -> None:
        del self.tokens[token_id]
        self.changed_ids.append(token_id)


class MemoryTokenStore:
    """One node's connection to a MemoryTokenDatabase."""

    def __init__(self, database: MemoryTokenDatabase) -> None:
        self.database = database
        self.connected = True
        self.stale_ms = 0
        self.max_staleness_ms = MAX_STALENESS_MS
        self.reads: list[str] = []
        self.catch_ups = 0
        self.before_write: Callable[[], None] = lambda: None
        """Called when a write has reached the database and is not yet decided: the place to be faster."""
        self.can_read: Callable[[Token], bool] = lambda _: True
        """Asked of each token that arrives; one that it refuses counts as gone."""
        self.unreadable: set[str] = set()
        self._listener: ChangeListener | None = None
        self._heard = 0

    def source_of(self, token_id: str | None) -> MemoryTokenStore:
        del token_id
        return self

    def staleness_ms(self) -> int:
        return self.stale_ms

    def on_change(self, listener: ChangeListener) -> None:
        assert self._listener is None, "a store has one listener"
        self._listener = listener

    async def load(self) -> None:
        await self._travel()
        self._heard = len(self.database.changed_ids)
        for token_id in list(self.database.tokens):
            self._report(token_id)

    async def read(self, token_id: str) -> StoredToken | None:
        self.reads.append(token_id)
        await self._travel()
        return self._report(token_id)

    async def create(self, token: Token) -> StoredToken:
        await self._travel()
        self.before_write()
        if token.token_id in self.database.tokens:
            raise VersionConflict(token.token_id, None)
        stored = self.database.put(token, version=0)
        self._report(token.token_id)
        return stored

    async def update(self, token: Token, version: int) -> StoredToken:
        await self._write(token.token_id, version)
        stored = self.database.put(token, version + 1)
        self._report(token.token_id)
        return stored

    async def delete(self, token_id: str, version: int | None) -> None:
        await self._write(token_id, version)
        self.database.remove(token_id)
        self._report(token_id)

    async def catch_up(self) -> None:
        self.catch_ups += 1
        await self._travel()
        self.deliver()
        self.stale_ms = 0

    async def prove(self) -> None:
        await self.catch_up()

    async def time_ms(self) -> int:
        await self._travel()
        return self.database.now_ms()

    async def reread_unreadable(self) -> None:
        for token_id in list(self.unreadable):
            await self._travel()
            self._report(token_id)

    @property
    def unreadable_tokens(self) -> int:
        return len(self.unreadable)

    @property
    def untried(self) -> Collection[str]:
        return self.unreadable

    def on_unknown_key(self, hook: Callable[[], None]) -> None:
        """Nothing here needs a key."""

    def deliver(self) -> None:
        """Let the changes of other nodes arrive here."""
        news = self.database.changed_ids[self._heard :]
        self._heard += len(news)
        for token_id in news:
            self._report(token_id)

    async def _write(self, token_id: str, version: int | None) -> None:
        await self._travel()
        self.before_write()
        held = self.database.tokens.get(token_id)
        if held is None:
            self._report(token_id)
            raise TokenNotFound(token_id)
        if version not in {None, held.version}:
            raise VersionConflict(token_id, version)

    async def _travel(self) -> None:
        self._require_connection()
        await asyncio.sleep(0)
        self._require_connection()

    def _require_connection(self) -> None:
        if not self.connected:
            raise StoreUnavailable("the test has cut it off")

    def _report(self, token_id: str) -> StoredToken | None:
        stored = self.database.tokens.get(token_id)
        self.unreadable.discard(token_id)
        if stored is not None and not self.can_read(stored.token):
            self.unreadable.add(token_id)
            stored = None
        if self._listener is not None:
            self._listener(token_id, stored)
        return stored
