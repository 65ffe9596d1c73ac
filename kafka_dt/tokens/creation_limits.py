"""The limits of new tokens: how many one owner may have, how often one requester may ask, how large one may be.

They keep one client from filling the store, in which brokers may live as well, and hold for super users, too. What an
owner has is counted over all nodes, from what this process knows of them: tokens that other processes make at the same
moment may exceed the limit. Expired tokens do not count.

How often a requester asks in a minute of the clock is counted on each node, with the attempts that fail for another
reason. The workers share memory: each writes its own counters and reads those of all. A requester falls into one
counter of each worker by a keyed hash, so that no client can choose a name that falls into another's. Workers that
count at the same moment do not see each other: a limit may be exceeded by as many as there are workers.

Source: docs/architecture.md#no-request-stops-a-node; a broker has no such limits.
"""

from __future__ import annotations

import hashlib
import mmap
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.tokens.errors import TokenLimitExceeded, TooManyCreates
from kafka_dt.tokens.sharing import in_turns

if TYPE_CHECKING:
    from kafka_dt.tokens.cache import TokenCache
    from kafka_dt.tokens.principal import Principal

UNLIMITED: Final = -1
TOKENS_PER_OWNER: Final = "kafka.dt.tokens.per.owner.max"
CREATES_PER_MINUTE: Final = "kafka.dt.token.creates.per.minute.max"
RENEWERS: Final = "kafka.dt.token.renewers.max"
TOKEN_BYTES: Final = "kafka.dt.token.bytes.max"  # noqa: S105 - the name of a setting
RECOUNT_MS: Final = 1_000
"""How long the count of an owner's live tokens is believed, unless the number of its tokens changes."""
REMEMBERED_COUNTS: Final = 1_000
COUNTERS: Final = 16_384
"""How many counters each worker has."""
MINUTE_MS: Final = 60_000
_FORMAT: Final = "Q"
_COUNTER_BYTES: Final = 8
_COUNT_BITS: Final = 24
"""The lower bits of a counter are the count, the others the minute that it is of."""
_MOST: Final = 2**_COUNT_BITS - 1


@dataclass(frozen=True, slots=True)
class CreationLimits:
    """The settings of the same names; each is `UNLIMITED` unless given."""

    tokens_per_owner: int = UNLIMITED
    creates_per_minute: int = UNLIMITED
    renewers: int = UNLIMITED
    token_bytes: int = UNLIMITED
    """How many bytes a new token may have in the store; the store looks at it."""

    def require_renewers(self, renewers: Sequence[Principal]) -> None:
        """Refuse too many renewers, by TokenLimitExceeded."""
        if exceeds(len(renewers), self.renewers):
            raise TokenLimitExceeded(f"A delegation token with {len(renewers)} renewers", RENEWERS, self.renewers)

    def require_size(self, size: int) -> None:
        """Refuse a token of too many bytes, by TokenLimitExceeded."""
        if exceeds(size, self.token_bytes):
            raise TokenLimitExceeded(f"A delegation token of {size} bytes", TOKEN_BYTES, self.token_bytes)


class Creations:
    """Admits new tokens, one by one.

    `now_ms` is the clock, in milliseconds since 1970 in UTC.
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


def counts_bytes(workers: int) -> int:
    """Say how much memory so many workers share."""
    return workers * COUNTERS * _COUNTER_BYTES


class CreationCounts:
    """The counters of all workers of a node.

    Args:
        memory: of `counts_bytes`, all zeros at first, the same for all workers.
        number: which worker this is, from 0.
        key: of the hash; the same for all workers, and unknown to clients.
    """

    __slots__ = ("_counters", "_first", "_key")

    def __init__(self, memory: bytearray | mmap.mmap, number: int, key: bytes) -> None:
        self._counters = memoryview(memory).cast(_FORMAT)
        self._first = number * COUNTERS
        self._key = key

    @classmethod
    def shared(cls, descriptor: int, number: int, key: bytes) -> CreationCounts:
        """Give the counters that an open file holds, the same file for all workers."""
        return cls(mmap.mmap(descriptor, 0), number, key)

    @classmethod
    def alone(cls) -> CreationCounts:
        """Give the counters of a process that shares them with no other."""
        return cls(bytearray(counts_bytes(1)), 0, b"")

    def count_below(self, limit: int, requester: Principal, now_ms: int) -> bool:
        """Count one more of a requester in this minute unless it has `limit`; says whether it was counted."""
        minute = now_ms // MINUTE_MS
        counter = self._counter(requester)
        if sum(_count(value, minute) for value in self._counters[counter::COUNTERS]) >= limit:
            return False
        place = self._first + counter
        # An aligned store of eight bytes, which no reader sees half done.
        self._counters[place] = minute << _COUNT_BITS | min(_count(self._counters[place], minute) + 1, _MOST)
        return True

    def _counter(self, requester: Principal) -> int:
        name = str(requester).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(name, digest_size=4, key=self._key).digest()) % COUNTERS


def _count(value: int, minute: int) -> int:
    return value & _MOST if value >> _COUNT_BITS == minute else 0
