"""The limits of new tokens: how many one owner may have, how often one requester may ask, how large one may be.

They keep one client from filling the store, in which brokers may live as well. They hold for super users, too. A
limit of `UNLIMITED` does not exist.

What an owner has is counted over all nodes, from what this process knows of them: tokens that other processes make at
the same moment may exceed the limit. Expired tokens do not count, whether or not they have been removed. How often a
requester asks is counted on each node for itself, with the attempts that fail for another reason.

Source: docs/architecture.md#no-request-stops-a-node; a broker has no such limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.tokens.creation_counts import MINUTE_MS
from kafka_dt.tokens.errors import TokenLimitExceeded, TooManyCreates
from kafka_dt.tokens.sharing import in_turns

if TYPE_CHECKING:
    from kafka_dt.tokens.cache import TokenCache
    from kafka_dt.tokens.creation_counts import CreationCounts
    from kafka_dt.tokens.principal import Principal

UNLIMITED: Final = -1
TOKENS_PER_OWNER: Final = "kafka.dt.tokens.per.owner.max"
CREATES_PER_MINUTE: Final = "kafka.dt.token.creates.per.minute.max"
RENEWERS: Final = "kafka.dt.token.renewers.max"
TOKEN_BYTES: Final = "kafka.dt.token.bytes.max"  # noqa: S105 - the name of a setting
RECOUNT_MS: Final = 1_000
"""How long the count of an owner's live tokens is believed, unless the number of its tokens changes."""
REMEMBERED_COUNTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class CreationLimits:
    """The settings of the same names; each is `UNLIMITED` unless given."""

    tokens_per_owner: int = UNLIMITED
    creates_per_minute: int = UNLIMITED
    renewers: int = UNLIMITED
    token_bytes: int = UNLIMITED
    """How many bytes a new token may have in the store; the store looks at it."""

    def require_renewers(self, renewers: Sequence[Principal]) -> None:
        """Refuse too many renewers.

        Raises:
            TokenLimitExceeded: there are.
        """
        if exceeds(len(renewers), self.renewers):
            raise TokenLimitExceeded(f"A delegation token with {len(renewers)} renewers", RENEWERS, self.renewers)

    def require_size(self, size: int) -> None:
        """Refuse a token of too many bytes.

        Raises:
            TokenLimitExceeded: it has.
        """
        if exceeds(size, self.token_bytes):
            raise TokenLimitExceeded(f"A delegation token of {size} bytes", TOKEN_BYTES, self.token_bytes)


class Creations:
    """Admits new tokens, one by one.

    Args:
        limits: the settings.
        cache: what this process knows of the tokens.
        counts: counts what requesters ask for.
        now_ms: the clock, in milliseconds since 1970 in UTC.
    """

    __slots__ = ("_cache", "_counted", "_counts", "_limits", "_now_ms", "_under_way")

    def __init__(
        self, limits: CreationLimits, cache: TokenCache, counts: CreationCounts, now_ms: Callable[[], int]
    ) -> None:
        self._limits = limits
        self._cache = cache
        self._counts = counts
        self._now_ms = now_ms
        self._under_way: Counter[Principal] = Counter()
        self._counted: dict[Principal, _Counted] = {}

    @asynccontextmanager
    async def admitted(self, owner: Principal, requester: Principal) -> AsyncIterator[None]:
        """Admit one token, which is made in the body.

        Raises:
            TooManyCreates: the requester has asked for too many in this minute.
            TokenLimitExceeded: the owner has too many.
        """
        self._require_rate(requester)
        limit = self._limits.tokens_per_owner
        if limit != UNLIMITED and await self._has(owner, limit):
            raise TokenLimitExceeded(f"One more live delegation token of {owner}", TOKENS_PER_OWNER, limit)
        self._under_way[owner] += 1
        try:
            yield
        finally:
            self._under_way[owner] -= 1
            if not self._under_way[owner]:
                del self._under_way[owner]

    def _require_rate(self, requester: Principal) -> None:
        limit = self._limits.creates_per_minute
        now_ms = self._now_ms()
        if limit != UNLIMITED and not self._counts.count_below(limit, requester, now_ms):
            raise TooManyCreates(requester, CREATES_PER_MINUTE, limit, MINUTE_MS - now_ms % MINUTE_MS)

    async def _has(self, owner: Principal, limit: int) -> bool:
        """Say whether an owner has as many live tokens; they are only counted where it has as many at all."""
        if self._cache.count_owned(owner) + self._under_way[owner] < limit:
            return False
        live = await self._live(owner)
        return live + self._under_way[owner] >= limit

    async def _live(self, owner: Principal) -> int:
        now_ms, owned = self._now_ms(), self._cache.count_owned(owner)
        known = self._counted.get(owner)
        if known is not None and known.owned == owned and known.at_ms <= now_ms < known.at_ms + RECOUNT_MS:
            return known.live
        live = 0
        async for delegations in in_turns(self._cache.concerning([owner])):
            live += sum(each.token.owner == owner and not each.token.is_expired(now_ms) for each in delegations)
        if len(self._counted) >= REMEMBERED_COUNTS:
            self._counted.clear()
        self._counted[owner] = _Counted(now_ms, owned, live)
        return live


@dataclass(frozen=True, slots=True)
class _Counted:
    """How many tokens of an owner were live at an instant, of how many that it had."""

    at_ms: int
    owned: int
    live: int


def exceeds(number: int, limit: int) -> bool:
    """Say whether a number is over a limit, if there is one."""
    return limit != UNLIMITED and number > limit
