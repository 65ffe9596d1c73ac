"""Changes on a store that only keeps tokens: no change of another node is lost, and no deleted token comes back.

`VersionedStore` is what such a store can do: write a token that is still at a version. `GuardedChanges` makes the ids
and the HMACs with the keys of this node, and applies the rules.

A change is decided on what the cache holds and written guarded by the version it was decided on. If another node was
first, the token is read again and the rule is applied again, to its present state, up to `CHANGE_WITHIN_S`. Random
pauses between the attempts give each of many nodes that renew one token its turn. Changes of one token within a process
wait for each other, because all but the first would conflict. An expiry that has passed is confirmed by a read, because
another node may have renewed the token a moment ago. A deletion that was asked for needs no guard, because no other
change takes away the right to it, and so it waits for no other: a renewer with many requests cannot hold it up.

Source: docs/architecture.md#no-lost-update-no-resurrection; a broker writes without a guard (kafka.zk.KafkaZkClient
setOrCreateDelegationToken)
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from kafka_dt.tokens.changes import ID_BYTES
from kafka_dt.tokens.errors import StoreUnavailable, TokenAuthorizationFailed, TokenExpired, TokenNotFound
from kafka_dt.tokens.sharing import KeyedLocks
from kafka_dt.tokens.store import KeyedTokens, StoredToken, TokenSource
from kafka_dt.tokens.token import DelegationToken, Token

if TYPE_CHECKING:
    from kafka_dt.tokens.cache import KnownTokens
    from kafka_dt.tokens.changes import Change, NewToken
    from kafka_dt.tokens.keyring import Keyring
    from kafka_dt.tokens.manager import TokenLimits

_LOG = logging.getLogger(__name__)

CHANGE_WITHIN_S: Final = 10.0
"""How long a change waits for others of the same token, and is decided anew: less than clients wait for an answer."""
PAUSE_STEP_S: Final = 0.005
"""How much longer the pause after a conflict may be than the one after the conflict before; the first is none."""
LONGEST_PAUSE_S: Final = 0.05
MAX_IDS: Final = 10
"""How many ids are drawn for a new token before the random generator is given up."""


@dataclass(eq=False)
class VersionConflict(Exception):
    """A guarded write was refused, because the stored token is not the one the writer had seen.

    It is raised by a store and answered by `GuardedChanges`, which looks again; it never reaches a client.
    """

    token_id: str
    version: int | None
    """The version the writer had seen; None for a create, whose id was taken."""

    def __str__(self) -> str:
        if self.version is None:
            return f"Delegation token id {self.token_id} is taken."
        return f"Delegation token {self.token_id} is no longer at version {self.version}."


class VersionedStore(TokenSource, KeyedTokens, Protocol):
    """A store that can compare and set: the contract of `store.py` holds for it, and this.

    A write happens only if the stored version is the given one, where one is given. If it differs, nothing is written
    and VersionConflict is raised; the caller reads the new state. If the token is gone, the listener is told None and
    TokenNotFound is raised. A write that is cut off before the answer raises StoreUnavailable: its outcome is unknown.
    """

    async def create(self, token: Token) -> StoredToken:
        """Write a new token; returns it with its version.

        Raises:
            VersionConflict: the id is taken.
            TokenTooLarge: it cannot be stored.
            TokenLimitExceeded: it has more bytes than the settings allow.
        """

    async def update(self, token: Token, version: int) -> StoredToken:
        """Write a token that is stored at `version`; returns it with its new version."""

    async def delete(self, token_id: str, version: int | None) -> None:
        """Delete a token that is stored at `version`, None = at any; the listener has been told None by the end."""


class GuardedChanges:
    """Implements TokenChanges on a VersionedStore.

    Args:
        store: where changes are written; it reports their outcome to the cache.
        cache: what changes are decided on.
        keyring: makes the HMACs; its keys may change.
        limits: the lifetimes of new tokens.
        now_ms: the clock, in milliseconds since 1970 in UTC.
        random_bytes: returns that many bytes that no attacker can guess.
        jitter: a number from 0 up to 1, so that nodes do not try again at the same moment.
    """

    __slots__ = ("_cache", "_jitter", "_keyring", "_limits", "_locks", "_now_ms", "_random_bytes", "_store")

    def __init__(
        self,
        store: VersionedStore,
        cache: KnownTokens,
        keyring: Keyring,
        limits: TokenLimits,
        *,
        now_ms: Callable[[], int],
        random_bytes: Callable[[int], bytes],
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._cache = cache
        self._keyring = keyring
        self._limits = limits
        self._now_ms = now_ms
        self._random_bytes = random_bytes
        self._jitter = jitter
        self._locks = KeyedLocks()

    @property
    def removes_expired(self) -> bool:
        """False: every node removes them."""
        return False

    @property
    def hmac_sizes(self) -> Collection[int]:
        """The length of the HMACs that the keys make."""
        return (self._keyring.hmac_bytes,)

    async def create(self, wanted: NewToken) -> DelegationToken:
        """Make a token under a new id, with the key that is current now.

        Raises:
            TokenAuthorizationFailed: the requester left it to the store whether it may create the token, which this
                one cannot say.
        """
        if wanted.own is not None:
            raise TokenAuthorizationFailed(wanted.requester, wanted.owner)
        keyring, limits = self._keyring, self._limits
        for _ in range(MAX_IDS):
            # Taken once: the ring may change while the store is asked, and the HMAC has to be that of the id.
            key = keyring.current
            token = wanted.token(
                key.id, self._now_ms(), limits.max_lifetime_ms, limits.expiry_time_ms, self._random_bytes(ID_BYTES)
            )
            try:
                stored = await self._store.create(token)
            except VersionConflict:
                continue  # the id is taken: a miracle, or a broken random generator
            if keyring.get(key.id) is None:
                await self._take_back(stored)
                continue  # the key has left the ring meanwhile, and no node would accept the token
            return DelegationToken(stored.token, key.hmac(token.token_id, keyring.algorithm))
        raise StoreUnavailable("every new token id was taken, or the secret key changed each time")

    async def change(self, token_id: str, hmac: bytes, change: Change) -> int:
        """Apply a change, again while other processes are faster."""
        if change.deletes:
            return await self._change_once(token_id, hmac, change)
        loop = asyncio.get_running_loop()
        give_up_s, longest_pause_s = loop.time() + CHANGE_WITHIN_S, 0.0
        async with self._locks.hold(token_id):
            confirmed = False
            while loop.time() < give_up_s:
                try:
                    return await self._change_once(token_id, hmac, change)
                except TokenExpired:
                    if confirmed:
                        raise
                except VersionConflict:
                    await asyncio.sleep(longest_pause_s * self._jitter())
                    longest_pause_s = min(longest_pause_s + PAUSE_STEP_S, LONGEST_PAUSE_S)
                await self._store.read(token_id)
                confirmed = True
        raise StoreUnavailable(f"token {token_id} is being changed by others all the time")

    async def remove(self, token_id: str, past_ms: int) -> Token | None:
        """Delete a token if it expired before an instant; every process may try, and one of them gets it."""
        held = self._cache.held(token_id)
        if held is None or not held.token.is_expired(past_ms):
            return None
        try:
            await self._store.delete(token_id, held.version)
        except TokenNotFound:
            return None
        except VersionConflict:
            # Another node has just changed it: the cache learns how, and the next purge decides.
            await self._store.read(token_id)
            return None
        return held.token

    async def _take_back(self, stored: StoredToken) -> None:
        """Delete a token that no other process has seen yet."""
        with suppress(TokenNotFound, VersionConflict):  # another node was faster
            await self._store.delete(stored.token.token_id, stored.version)
        _LOG.info("Took back delegation token %s: its secret key has left the ring", stored.token.token_id)

    async def _change_once(self, token_id: str, hmac: bytes, change: Change) -> int:
        held = self._cache.held(token_id)
        # While this waited its key may have left the ring.
        if held is None or not held.delegation.has_hmac(hmac):
            raise TokenNotFound(token_id)
        now_ms = self._now_ms()
        changed = change.decide(held.token, now_ms)
        if changed is None:
            # Who may delete a token never changes, so those who change it all the time cannot keep it alive.
            await self._store.delete(token_id, None)
            return now_ms
        stored = await self._store.update(changed, held.version)
        return stored.token.expiry_timestamp_ms
