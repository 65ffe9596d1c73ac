"""Serve the tokens of two stores side by side: new ones are made in one of them, those of the other end in time.

    old, new = PartOfCache(cache), PartOfCache(cache)       # each store is built with its part
    both = TwoStores(new=Store(cluster_tokens, cluster_changes, new), old=Store(znodes, znode_changes, old))

It is one source and one set of changes, over one cache. A token belongs to the store that has reported it. A change of
it goes there, and only the staleness of that store stops its logins. What is asked about an unknown token needs both
stores: the answer that there is none, but not the answer that there is one. If both have a token of one id, which no
two stores make by chance, it is the new store's.

Source: docs/decisions/0027-two-stores-side-by-side.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.tokens.errors import StoreUnavailable

if TYPE_CHECKING:
    from kafka_dt.tokens.cache import CachedToken, KnownTokens
    from kafka_dt.tokens.changes import Change, NewToken
    from kafka_dt.tokens.store import ChangeListener, StoredToken, TokenChanges, TokenSource
    from kafka_dt.tokens.token import DelegationToken, Token


class PartOfCache:
    """The tokens in a cache that one of two stores has reported: its KnownTokens."""

    def __init__(self, cache: KnownTokens) -> None:
        self._cache = cache
        self._ids: dict[str, None] = {}

    def __contains__(self, token_id: str) -> bool:
        return token_id in self._ids

    def get(self, token_id: str) -> DelegationToken | None:
        """Return the token with that id, expired or not."""
        return self._cache.get(token_id) if token_id in self._ids else None

    def held(self, token_id: str) -> CachedToken | None:
        """Return the token with that id and the version that guards a change of it."""
        return self._cache.held(token_id) if token_id in self._ids else None

    def copied_ids(self) -> Collection[str]:
        """Return the ids of all of them, as they are now."""
        return self._ids.copy()

    def note(self, token_id: str, *, there: bool) -> None:
        """Take note that the store has reported a token, or that one is gone."""
        if there:
            self._ids[token_id] = None
        else:
            self._ids.pop(token_id, None)


@dataclass(frozen=True, slots=True)
class Store:
    """One of two stores."""

    source: TokenSource
    changes: TokenChanges
    known: PartOfCache


class TwoStores:
    """Implements TokenSource and TokenChanges.

    Args:
        new: where tokens are made.
        old: whose tokens are served until they end.
    """

    removes_expired: Final = False
    """A store that does is asked to remove its own, and removes none."""

    def __init__(self, *, new: Store, old: Store) -> None:
        self._new = new
        self._old = old

    @property
    def hmac_sizes(self) -> Collection[int]:
        """Those of both."""
        return {*self._new.changes.hmac_sizes, *self._old.changes.hmac_sizes}

    @property
    def connected(self) -> bool:
        """Whether both can be asked."""
        return self._new.source.connected and self._old.source.connected

    @property
    def max_staleness_ms(self) -> int:
        """The limit of the store that is nearer to its own, or farther beyond."""
        return self._staler.max_staleness_ms

    def source_of(self, token_id: str | None) -> TokenSource:
        """Return the source of the store that has a token, or that makes new ones; this one if no store has it."""
        if token_id is None or token_id in self._new.known:
            return self._new.source
        return self._old.source if token_id in self._old.known else self

    def staleness_ms(self) -> int:
        """Return the staleness of the store that is nearer to its limit, or farther beyond."""
        return self._staler.staleness_ms()

    def on_change(self, listener: ChangeListener) -> None:
        """Set the one listener."""

        def new_has(token_id: str, stored: StoredToken | None) -> None:
            if stored is None and token_id not in self._new.known:
                return  # it never had it: what is known is the old store's
            self._old.known.note(token_id, there=False)
            self._new.known.note(token_id, there=stored is not None)
            listener(token_id, stored)

        def old_has(token_id: str, stored: StoredToken | None) -> None:
            if token_id not in self._new.known:
                self._old.known.note(token_id, there=stored is not None)
                listener(token_id, stored)

        self._new.source.on_change(new_has)
        self._old.source.on_change(old_has)

    async def load(self) -> None:
        """Report the tokens of both."""
        await self._ask_both(lambda source: source.load())

    async def read(self, token_id: str) -> StoredToken | None:
        """Return the token of the store that has it.

        Raises:
            StoreUnavailable: one store cannot be asked, and the other does not have it.
        """
        source = self.source_of(token_id)
        if source is not self:
            return await source.read(token_id)
        reads = [asyncio.create_task(each.read(token_id)) for each in self._sources]
        try:
            return await _first_found(reads)
        finally:
            for read in reads:
                read.cancel()
            await asyncio.gather(*reads, return_exceptions=True)

    async def catch_up(self) -> None:
        """Catch up with both; if one cannot be asked, when the other has."""
        await self._ask_both(lambda source: source.catch_up())

    async def prove(self) -> None:
        """Prove both; if one cannot be asked, when the other has."""
        await self._ask_both(lambda source: source.prove())

    async def time_ms(self) -> int:
        """Return the time of the store from which nodes remove expired tokens: another one may not tell it."""
        store = self._old if self._new.changes.removes_expired else self._new
        return await store.source.time_ms()

    async def create(self, wanted: NewToken) -> DelegationToken:
        """Make a token in the new store."""
        return await self._new.changes.create(wanted)

    async def change(self, token_id: str, hmac: bytes, change: Change) -> int:
        """Change a token where it is."""
        return await self._store_of(token_id).changes.change(token_id, hmac, change)

    async def remove(self, token_id: str, past_ms: int) -> Token | None:
        """Remove an expired token where it is."""
        return await self._store_of(token_id).changes.remove(token_id, past_ms)

    @property
    def _sources(self) -> tuple[TokenSource, TokenSource]:
        return self._new.source, self._old.source

    def _store_of(self, token_id: str) -> Store:
        return self._new if token_id in self._new.known else self._old

    @property
    def _staler(self) -> TokenSource:
        return max(self._sources, key=lambda source: source.staleness_ms() - source.max_staleness_ms)

    async def _ask_both(self, ask: Callable[[TokenSource], Awaitable[None]]) -> None:
        """Ask both at the same time; an error of one is raised when the other has answered, too."""
        for outcome in await asyncio.gather(*map(ask, self._sources), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome


async def _first_found(reads: Collection[asyncio.Task[StoredToken | None]]) -> StoredToken | None:
    unavailable: StoreUnavailable | None = None
    for read in asyncio.as_completed(reads):
        try:
            stored = await read
        except StoreUnavailable as error:
            unavailable = error
        else:
            if stored is not None:
                return stored
    if unavailable is not None:
        raise unavailable
    return None
