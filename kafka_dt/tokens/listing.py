"""Which tokens a describe shows: selected from the cache without holding up the event loop.

The selection begins with the ids that are there. Each token is shown as it is when its turn comes. One that has gone by
then is left out, and so is one that came after the beginning. Whether a token may be seen is asked once.

The tokens are given out in batches and never collected in a list: Python's garbage collector looks at every element of
such a list, and stops everything else meanwhile. It never looks at a dictionary of texts, so the ids are in one. To
copy them is the one step that is done in one go; decision 0018 says how long it takes.

The work is linear in the principals that are named, the tokens that concern them, and the answer.

Source: KIP-48, KIP-373; kafka.server.DelegationTokenManager.getTokens, filterToken.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from typing import TYPE_CHECKING

from kafka_dt.tokens.token import DelegationToken, Token

if TYPE_CHECKING:
    from kafka_dt.tokens.cache import TokenCache
    from kafka_dt.tokens.long_work import Turns
    from kafka_dt.tokens.principal import Principal


async def select(
    cache: TokenCache,
    requester: Principal,
    owners: Collection[Principal] | None,
    visible: Callable[[Token], bool],
    turns: Turns,
) -> AsyncIterator[list[DelegationToken]]:
    """Give the tokens that concern `owners` and that `requester` may see, in batches.

    Args:
        cache: what this process knows of the tokens.
        requester: who asks; it sees the tokens that concern it.
        owners: whose tokens are asked for; None = everybody's.
        visible: asked for the other tokens, once each.
        turns: the work pauses between these.
    """
    own = cache.ids_concerning(requester)
    async for batch in turns.take(await _ids(cache, owners, turns)):
        held = [each for each in map(cache.get, batch) if each is not None]
        yield [each for each in held if each.token.token_id in own or visible(each.token)]


async def _ids(cache: TokenCache, owners: Collection[Principal] | None, turns: Turns) -> Collection[str]:
    """Return the ids of the tokens that concern `owners`, each once."""
    if owners is None:
        return cache.copied_ids()
    if len(owners) == 1:
        return cache.copied_ids(*owners)
    found: dict[str, None] = {}
    async for batch in turns.take(dict.fromkeys(owners)):
        for owner in batch:
            async for ids in turns.take(cache.copied_ids(owner)):
                found.update(dict.fromkeys(ids))
    return found
