"""Removing expired tokens from the store, in the background.

Every process may do this at the same time as any other: one of them gets a token, and a token that was renewed
meanwhile stays (`TokenChanges.remove`).

What has expired is decided by two clocks, for a deletion holds on every node: see `clocks.py`.

Source: kafka.server.DelegationTokenManagerZk.expireTokens
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafka_dt.tokens.sharing import in_turns

if TYPE_CHECKING:
    from kafka_dt.tokens.cache import TokenCache
    from kafka_dt.tokens.store import TokenChanges
    from kafka_dt.tokens.token import Token

REMOVALS_AT_ONCE: Final = 64
"""How many tokens are removed concurrently."""


async def remove_expired(
    changes: TokenChanges,
    cache: TokenCache,
    past_ms: int,
    on_removed: Callable[[Token], None],
) -> int:
    """Delete every token in the cache that expired before an instant, and return how many were deleted here.

    Args:
        changes: deletes them.
        cache: what this process knows of them.
        past_ms: the instant, in milliseconds since 1970 in UTC; it has passed by any clock.
        on_removed: called with each token that was deleted here.

    Raises:
        StoreUnavailable: the store was cut off; what is left is for the next time.
    """
    removed = 0
    async for delegations in in_turns(cache.concerning(None)):
        expired = [each.token.token_id for each in delegations if each.token.is_expired(past_ms)]
        for start in range(0, len(expired), REMOVALS_AT_ONCE):
            chunk = expired[start : start + REMOVALS_AT_ONCE]
            removed += sum(await asyncio.gather(*(_remove(changes, each, past_ms, on_removed) for each in chunk)))
    return removed


async def _remove(changes: TokenChanges, token_id: str, past_ms: int, on_removed: Callable[[Token], None]) -> bool:
    token = await changes.remove(token_id, past_ms)
    if token is None:
        return False
    on_removed(token)
    return True
