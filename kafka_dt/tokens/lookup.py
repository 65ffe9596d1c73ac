"""Find a token that the cache does not have yet: read-through to the store, bounded against guessing.

A token may log in on every node the moment its create has answered, up to a second before every node has read the
change. So a miss in the cache is not believed: the store is read. Unauthenticated clients may try any id, and must not
turn that into load on the store. These rules prevent it:

- an id that does not have the form of a token id is not looked up: the store has none that a login could use and the
  cache has not;
- concurrent lookups of one id share a read;
- an id that was not there is not asked for again for `MISS_LIFE_MS`, in a table of bounded size;
- at most `READS_PER_SECOND` reads are made. Beyond that, lookups share the store's `catch_up`, of which one runs at a
  time, `CATCH_UP_PAUSE_S` after the one before, whatever the number of callers. It reports every token there is, so
  under a flood of guesses a good token is found a little later, but it is found.

So guessing costs the store a few hundred small reads a second from each process at the most.

Why a remembered miss cannot hide a new token: ids are 16 random bytes, and no client knows one before the create that
made it has been written. A lookup of it, and a read that such a lookup shares, begins after that. One exception is an
id that is deleted and made again by hand or by a broker; it is found when its change arrives, or after
`MISS_LIFE_MS`. The other is a token that cannot be read until a secret key is known here; with a new ring of keys all
misses are forgotten.

Source: docs/architecture.md#a-token-works-on-every-node-at-once
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafka_dt.clock import is_recent
from kafka_dt.tokens.errors import StoreUnavailable
from kafka_dt.tokens.sharing import SharedRun

if TYPE_CHECKING:
    from kafka_dt.tokens.cache import TokenCache
    from kafka_dt.tokens.store import TokenSource
    from kafka_dt.tokens.token import DelegationToken

MISS_LIFE_MS: Final = 1_000
"""For how long an id that was not there is not asked for again."""
MAX_MISSES: Final = 10_000
"""How many such ids are remembered; the oldest goes first."""
READS_PER_SECOND: Final = 100
"""How many single reads are made in a second before lookups share a catch_up."""
CATCH_UP_PAUSE_S: Final = 0.02
"""How long lookups gather before a catch_up that they share begins."""

# 16 bytes are 21 characters of 6 bits and one of 2 bits, whose other 4 are zero.
_TOKEN_ID: Final = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")


def has_token_id_form(text: str) -> bool:
    """Say whether `text` is base64url without padding of 16 bytes, as every token id of Kafka is."""
    return _TOKEN_ID.fullmatch(text) is not None


class ReadThrough:
    """Looks up ids in the cache, and behind it in the store.

    The store reports what it reads to the cache. `catch_up` is a shared run of the store's, `now_ms` the clock.
    """

    def __init__(self, store: TokenSource, cache: TokenCache, catch_up: SharedRun, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._cache = cache
        self._catch_up = catch_up
        self._gathered_catch_up = SharedRun(self._gather_and_catch_up)
        self._now_ms = now_ms
        # The first of a dict is searched for behind all that were deleted in front of it.
        self._misses: OrderedDict[str, int] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._second = 0
        self._reads = 0

    async def lookup(self, token_id: str) -> DelegationToken | None:
        """Return the token with that id, expired or not; None if neither the cache nor the store has it.

        Raises:
            StoreUnavailable: the cache does not have it and the store cannot be asked.
        """
        found = self._cache.get(token_id)
        if found is not None or not has_token_id_form(token_id) or self._missed_just_now(token_id):
            return found
        read = self._under_way.get(token_id)
        if read is None:
            read = self._under_way[token_id] = asyncio.create_task(self._fetch(token_id))
            read.add_done_callback(lambda task: self._done(token_id, task))
        try:
            # Shielded: a client that disconnects does not take the answer from the others that wait for it.
            await asyncio.shield(read)
        except StoreUnavailable:
            if self._cache.get(token_id) is None:  # another of several stores may have it
                raise
        return self._cache.get(token_id)

    def forget_misses(self) -> None:
        """Forget the misses: with another ring of keys the store may have those tokens."""
        self._misses.clear()

    async def _fetch(self, token_id: str) -> None:
        """Make sure that the cache has the token if there is one."""
        if self._may_read():
            await self._store.read(token_id)
        else:
            await self._gathered_catch_up.join()
        if self._cache.get(token_id) is None:
            self._remember_miss(token_id)

    async def _gather_and_catch_up(self) -> None:
        await asyncio.sleep(CATCH_UP_PAUSE_S)
        await self._catch_up.join()

    def _done(self, token_id: str, task: asyncio.Task[None]) -> None:
        del self._under_way[token_id]
        if not task.cancelled():
            task.exception()  # seen, also when every caller has gone

    def _may_read(self) -> bool:
        second = self._now_ms() // 1_000
        if second != self._second:
            self._second, self._reads = second, 0
        self._reads += 1
        return self._reads <= READS_PER_SECOND

    def _missed_just_now(self, token_id: str) -> bool:
        missed_at = self._misses.get(token_id)
        return missed_at is not None and is_recent(missed_at, self._now_ms(), MISS_LIFE_MS)

    def _remember_miss(self, token_id: str) -> None:
        self._misses.pop(token_id, None)
        self._misses[token_id] = self._now_ms()
        if len(self._misses) > MAX_MISSES:
            self._misses.popitem(last=False)
