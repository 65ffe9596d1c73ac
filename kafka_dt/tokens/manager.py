"""The rules of delegation tokens: who may create, renew, expire and see them, in which order that is checked.

The order of checks is a broker's. Whether this connection may ask at all (64), and whether the requester may have
tokens for another owner (65), is checked by the caller; then, here: the owner's type is valid and renewers are users
(67), tokens are enabled (61), a new token is not too large (42) and within the limits that an operator has set (44,
89), the token exists (62), the requester is its owner or a renewer (63), it has not expired (66). The numbers are
Kafka's error codes, which `kafka_dt.server` assigns. Where a broker overflows, timestamps are capped instead.

While the store is cut off, changes are refused at once; logins and describe go on with what is known until it is too
stale. Of two stores each stops only what is asked about its own tokens; only a describe needs both.

Source: KIP-48, KIP-373; kafka.server.DelegationTokenManagerZk, kafka.server.KafkaApis
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kafka_dt.tokens.changes import Change, Expiry, NewToken, OwnConnection, Renewal, forget
from kafka_dt.tokens.creation_limits import CreationCounts, CreationLimits, Creations
from kafka_dt.tokens.errors import (
    StoreUnavailable,
    TokenNotFound,
    TokensDisabled,
)
from kafka_dt.tokens.lookup import ReadThrough
from kafka_dt.tokens.principal import Principal
from kafka_dt.tokens.purge import compare_clocks, remove_expired
from kafka_dt.tokens.sharing import SharedRun
from kafka_dt.tokens.store import NEVER_MS
from kafka_dt.tokens.token import DelegationToken, Token

if TYPE_CHECKING:
    from kafka_dt.tokens.cache import TokenCache
    from kafka_dt.tokens.sharing import Turns
    from kafka_dt.tokens.store import TokenChanges, TokenSource

_LOG = logging.getLogger(__name__)

NEWS_WITHIN_S: Final = 5.0
"""How long a login waits for a catch-up when the cache is too old: less than clients wait for an answer."""


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """The settings that the rules obey."""

    max_lifetime_ms: int = 7 * 24 * 60 * 60 * 1_000
    """`delegation.token.max.lifetime.ms`: the most, and the default, from issue to max timestamp."""
    expiry_time_ms: int = 24 * 60 * 60 * 1_000
    """`delegation.token.expiry.time.ms`: from issue to expiry timestamp, and the period of a renewal without one."""
    creations: CreationLimits = field(default_factory=CreationLimits)
    """How many tokens there may be, and how large."""


class TokenManager:
    """Creates, renews, expires, describes and finds delegation tokens.

    Args:
        source: tells which tokens there are; from now on it reports to `cache`.
        changes: makes and changes them; None where tokens are disabled: then every request raises TokensDisabled,
            nothing is found, and the source is not asked.
        cache: what this process knows of them.
        limits: the lifetimes.
        now_ms: the clock, in milliseconds since 1970 in UTC.
        creation_counts: shared with the other processes of a node; None where there are none.
    """

    def __init__(
        self,
        source: TokenSource,
        changes: TokenChanges | None,
        cache: TokenCache,
        limits: TokenLimits,
        *,
        now_ms: Callable[[], int],
        creation_counts: CreationCounts | None = None,
    ) -> None:
        self._source = source
        self._changes = changes
        self._cache = cache
        self._limits = limits
        self._now_ms = now_ms
        self._catch_up = SharedRun(source.catch_up)
        self._read_through = ReadThrough(source, cache, self._catch_up, now_ms)
        counts = creation_counts or CreationCounts.alone()
        self._creations = Creations(limits.creations, cache, counts, now_ms)
        self.clock_ahead_ms: int | None = None
        """How far the clock was ahead of the store's at the last comparison; negative: behind, None: there was none."""
        if cache.keyring is not None:
            cache.keyring.on_change(self._read_through.forget_misses)
        if self.enabled:
            source.on_change(cache.apply)

    @property
    def enabled(self) -> bool:
        """Whether there is a secret key, without which there are no tokens."""
        return self._changes is not None

    def staleness_ms(self) -> int | None:
        """Return for how long changes may have gone unnoticed, in milliseconds; None where there are no tokens."""
        return self._source.staleness_ms() if self.enabled else None

    def is_stale(self, token_id: str | None = None) -> bool:
        """Whether what is known of a token, or of any token (None), is too old: a revocation may be missing.

        Then `find` raises StoreUnavailable. False where there are no tokens.
        """
        return self.enabled and _too_stale_ms(self._source_for(token_id)) > 0

    async def start(self) -> None:
        """Fill the cache. Requests may come before it is done: what they need is read, or waited for.

        Raises:
            StoreUnavailable: the store was cut off; start again when it is connected.
        """
        if self.enabled:
            await self._source.load()

    async def create(
        self,
        owner: Principal,
        requester: Principal,
        renewers: Iterable[Principal],
        max_lifetime_ms: int,
        *,
        own: OwnConnection | None = None,
    ) -> DelegationToken:
        """Create a token; the arguments are those of NewToken.

        Raises:
            InvalidPrincipalType, TokensDisabled, TokenTooLarge, TokenLimitExceeded, StoreUnavailable, TooManyCreates:
                checked in this order; how many tokens the owner has, and how many bytes the token, comes last.
        """
        wanted = NewToken(owner, requester, tuple(renewers), max_lifetime_ms, own)
        wanted.require_types()
        changes = self._require_enabled()
        wanted.require_size(self._limits.creations)
        _require_connection(self._source.source_of(None))
        async with self._creations.admitted(owner, requester):
            created = await changes.create(wanted)
        _LOG.info("Created delegation token %s of %s, asked for by %s", created.token.token_id, owner, requester)
        return created

    async def renew(
        self,
        requester: Principal,
        hmac: bytes,
        period_ms: int,
        *,
        on_token: Callable[[Token], None] = forget,
        own: OwnConnection | None = None,
    ) -> int:
        """Apply a Renewal to the token with that raw HMAC, and return the expiry timestamp in milliseconds.

        Raises:
            TokensDisabled, StoreUnavailable, TokenNotFound, TokenOwnerMismatch, TokenExpired: checked in this order.
        """
        renewal = Renewal(requester, period_ms, self._limits.expiry_time_ms, on_token, own)
        return await self._change(hmac, renewal)

    async def expire(
        self,
        requester: Principal,
        hmac: bytes,
        period_ms: int,
        *,
        by_super_user: bool = False,
        on_token: Callable[[Token], None] = forget,
        own: OwnConnection | None = None,
    ) -> int:
        """Apply an Expiry to the token with that raw HMAC; returns its expiry timestamp, and raises as `renew`."""
        return await self._change(hmac, Expiry(requester, period_ms, by_super_user, on_token, own))

    async def describe(
        self,
        requester: Principal,
        owners: Collection[Principal] | None,
        visible: Callable[[Token], bool],
        turns: Turns,
    ) -> AsyncIterator[list[str]]:
        """Give the ids of the tokens that concern `owners` and that `requester` may see, with expired ones, in batches.

        What was changed on any node before `catch_up_if_possible` is seen. The store is not waited for.

        Args:
            requester: who asks; it sees the tokens that it owns, renews or has asked for.
            owners: whose tokens are asked for, as owner, renewer or requester, compared exactly; None = everybody's.
            visible: asked for the other tokens, once each; it should remember its answer for an owner.
            turns: the work pauses between these.

        Raises:
            TokensDisabled: no secret key is set.
            StoreUnavailable: what is known is too stale.
        """
        self._require_enabled()
        if owners is not None and not owners:
            return
        _refuse_if_stale(self._source)
        async for batch in self._cache.select(requester, owners, visible, turns):
            yield batch

    async def catch_up_if_possible(self) -> None:
        """Catch up; where the store cannot be asked, go on with the cache if it is not too stale.

        Raises:
            TokensDisabled: no secret key is set.
            StoreUnavailable: the store is cut off, and what is known is too stale.
        """
        self._require_enabled()
        try:
            await self._catch_up.join()
        except StoreUnavailable:
            _refuse_if_stale(self._source)

    def work_of_describe(self, owners: Collection[Principal] | None) -> int:
        """Return about how many tokens and owners a describe of `owners` looks at; None = everybody's.

        A token that concerns several of them counts several times.
        """
        if owners is None:
            return len(self._cache)
        return len(owners) + sum(map(self._cache.count_concerning, owners))

    def find(self, token_id: str) -> DelegationToken | None:
        """Return a token that this process knows; expired ones too, so a login has to ask `is_expired`.

        Raises:
            StoreUnavailable: what is known is too stale, so the token may have been revoked.
        """
        if not self.enabled:
            return None
        _refuse_if_stale(self._source.source_of(token_id))
        return self._cache.get(token_id)

    async def lookup(self, token_id: str) -> DelegationToken | None:
        """Return a token as `find` does, and read the store if this process does not know it yet.

        `lookup.py` says how that is bounded against guessing. After an outage, or when this process has stood still, it
        waits for a catch-up, up to `NEWS_WITHIN_S`.

        Raises:
            StoreUnavailable: as `find`; or the token is not known here and the store cannot be asked.
        """
        if not self.enabled:
            return None
        if self._cache.get(token_id) is None:
            await self._read_through.lookup(token_id)
        # A server that is cut off from the others may have answered.
        if _too_stale_ms(self._source.source_of(token_id)):
            with suppress(TimeoutError, StoreUnavailable):
                async with asyncio.timeout(NEWS_WITHIN_S):
                    await self._catch_up.join()
        return self.find(token_id)

    def can_ask(self, token_id: str | None = None) -> bool:
        """Whether the store of a token, or every store (None), can be asked now; true where tokens are disabled."""
        source = self._source_for(token_id)
        return not self.enabled or (source.connected and not _too_stale_ms(source))

    async def prove(self, token_id: str | None = None) -> None:
        """Read every change acknowledged anywhere before the call, though a server may be cut off from the others.

        Args:
            token_id: the changes in the store of this token are enough; None = those in every store.

        Raises:
            StoreUnavailable: the store cannot be asked.
        """
        if self.enabled:
            await self._source_for(token_id).prove()

    async def remove_expired(self, on_removed: Callable[[Token], None] | None = None) -> int:
        """Delete every token that has expired by our clock and by the store's; returns how many were deleted here.

        `purge.py` says how. Raises StoreUnavailable if the store is cut off; what is left is for the next time.
        """
        changes = self._changes
        if changes is None or changes.removes_expired:
            return 0
        clocks = await compare_clocks(self._source.time_ms, self._now_ms)
        self.clock_ahead_ms = clocks.ahead_ms
        return await remove_expired(changes, self._cache, clocks, on_removed or forget)

    async def _change(self, hmac: bytes, change: Change) -> int:
        changes = self._require_enabled()
        token = await self._identify(hmac, changes.hmac_sizes)
        expiry_timestamp_ms = await changes.change(token.token_id, hmac, change)
        if isinstance(change, Expiry) and change.period_ms < 0:
            _LOG.info("Deleted delegation token %s of %s", token.token_id, token.owner)
        else:
            _LOG.info("Delegation token %s of %s ends at %d", token.token_id, token.owner, expiry_timestamp_ms)
        return expiry_timestamp_ms

    async def _identify(self, hmac: bytes, sizes: Collection[int]) -> Token:
        """Find the token with that HMAC. Callers with unknown ones share a look into the store: guessing is no load."""
        if self._cache.by_hmac(hmac) is None and len(hmac) in sizes:
            try:
                await self._catch_up.join()
            except StoreUnavailable:
                if self._cache.by_hmac(hmac) is None:  # another of several stores may have it
                    raise
        found = self._cache.by_hmac(hmac)
        _require_connection(self._source if found is None else self._source.source_of(found.token.token_id))
        if found is None:
            raise TokenNotFound
        return found.token

    def _source_for(self, token_id: str | None) -> TokenSource:
        return self._source if token_id is None else self._source.source_of(token_id)

    def _require_enabled(self) -> TokenChanges:
        if self._changes is None:
            raise TokensDisabled
        return self._changes


def _require_connection(source: TokenSource) -> None:
    if not source.connected:
        raise StoreUnavailable("it is not connected")


def _refuse_if_stale(source: TokenSource) -> None:
    staleness_ms = _too_stale_ms(source)
    if staleness_ms >= NEVER_MS:
        raise StoreUnavailable("it is not known which tokens were revoked")
    if staleness_ms:
        raise StoreUnavailable(f"changes have not been heard of for {staleness_ms} ms")


def _too_stale_ms(source: TokenSource) -> int:
    """Return the staleness of what is known of a source's tokens if it is too large; else 0."""
    staleness_ms = source.staleness_ms()
    return staleness_ms if staleness_ms > source.max_staleness_ms else 0
