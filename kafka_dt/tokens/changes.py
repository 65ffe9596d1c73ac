"""Changing a token so that no change of somebody else is lost and no deleted token comes back.

A change is decided on what the cache holds and written guarded by the version it was decided on. If somebody else was
first, the token is read again and the rule is applied again, to what is there now. Changes of one token within a
process wait for each other, because all but the first would conflict; changes of different tokens do not.

What must not be refused on an old copy is confirmed first: an HMAC that is not known and an expiry that has passed are
looked up once more in the store, because another node may have made or renewed the token a moment ago. Concurrent
callers with unknown HMACs share that look, so guessing is no load.

Source: DESIGN "No lost update, no resurrection"; a broker writes without a guard (kafka.zk.KafkaZkClient
setOrCreateDelegationToken)
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafka_dt.tokens.errors import StoreUnavailable, TokenExpired, TokenNotFound, VersionConflict
from kafka_dt.tokens.sharing import KeyedLocks
from kafka_dt.tokens.token import Token

if TYPE_CHECKING:
    from kafka_dt.tokens.cache import TokenCache
    from kafka_dt.tokens.sharing import SharedRun
    from kafka_dt.tokens.store import TokenStore

Rule = Callable[[Token, int], Token | None]
"""Given a token and the time: what is to become of it, None to delete it; raises a TokenError to refuse."""

_LOG = logging.getLogger(__name__)

MAX_ATTEMPTS: Final = 10
"""How often a change is decided anew because others change the same token; nobody fights that long by accident."""


class GuardedChanges:
    """Applies rules to stored tokens.

    Args:
        store: where changes are written; it reports their outcome to the cache.
        cache: what changes are decided on.
        catch_up: a shared run of the store's catch_up.
        now_ms: the clock, in milliseconds since 1970 in UTC.
    """

    __slots__ = ("_cache", "_catch_up", "_locks", "_now_ms", "_store")

    def __init__(self, store: TokenStore, cache: TokenCache, catch_up: SharedRun, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._cache = cache
        self._catch_up = catch_up
        self._now_ms = now_ms
        self._locks = KeyedLocks()

    async def change(self, hmac: bytes, rule: Rule) -> int:
        """Apply `rule` to the token with that HMAC.

        Returns:
            The token's expiry timestamp in milliseconds; now, if it was deleted.

        Raises:
            TokenNotFound: there is no such token, or it is gone now.
            StoreUnavailable: the store cannot be asked, or others change this token all the time.
            TokenError: what the rule raises; TokenExpired only if the store says so too.
        """
        token_id = await self._identify(hmac)
        async with self._locks.hold(token_id):
            confirmed = False
            for _ in range(MAX_ATTEMPTS):
                try:
                    return await self._change_once(token_id, hmac, rule)
                except TokenExpired:
                    if confirmed:
                        raise
                except VersionConflict:
                    pass
                await self._store.read(token_id)
                confirmed = True
        raise StoreUnavailable(f"token {token_id} is being changed by others all the time")

    async def _identify(self, hmac: bytes) -> str:
        found = self._cache.by_hmac(hmac)
        if found is None:
            await self._catch_up.join()
            found = self._cache.by_hmac(hmac)
        if found is None:
            raise TokenNotFound
        return found.token.token_id

    async def _change_once(self, token_id: str, hmac: bytes, rule: Rule) -> int:
        held = self._cache.held(token_id)
        # While this waited its key may have left the ring.
        if held is None or not held.delegation.has_hmac(hmac):
            raise TokenNotFound(token_id)
        now_ms = self._now_ms()
        changed = rule(held.token, now_ms)
        if changed is None:
            await self._store.delete(token_id, held.version)
            _LOG.info("Deleted delegation token %s of %s", token_id, held.token.owner)
            return now_ms
        stored = await self._store.update(changed, held.version)
        _LOG.info("Delegation token %s of %s ends at %d", token_id, changed.owner, changed.expiry_timestamp_ms)
        return stored.token.expiry_timestamp_ms
