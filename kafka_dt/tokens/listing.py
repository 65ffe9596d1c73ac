"""Which tokens a describe shows: selected from a snapshot of the cache, without holding up the event loop.

The snapshot holds the tokens as they are when the selection begins. A token that is changed while the selection goes on
is shown as it was. Whether a token may be seen is asked once, between the snapshot and the answer.

The work is linear in the principals that are named, the tokens that concern them, and the answer.

Source: KIP-48, KIP-373; kafka.server.DelegationTokenManager.getTokens, filterToken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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
) -> list[DelegationToken]:
    """Return the tokens that concern `owners` and that `requester` may see.

    Args:
        cache: what this process knows of the tokens.
        requester: who asks; it sees the tokens that concern it.
        owners: whose tokens are asked for; None = everybody's.
        visible: asked for the other tokens, once each.
        turns: the work pauses between these.
    """
    own = cache.ids_concerning(requester)
    found: list[DelegationToken] = []
    async for batch in turns.take(await _snapshot(cache, owners, turns)):
        found += [each for each in batch if each.token.token_id in own or visible(each.token)]
    return found


async def _snapshot(cache: TokenCache, owners: Collection[Principal] | None, turns: Turns) -> Sequence[DelegationToken]:
    """Return the tokens that concern `owners`, each once."""
    if owners is None or len(owners) == 1:
        return cache.concerning(owners)
    found: dict[str, DelegationToken] = {}
    async for batch in turns.take(tuple(dict.fromkeys(owners))):
        for owner in batch:
            async for delegations in turns.take(cache.concerning([owner])):
                found.update((each.token.token_id, each) for each in delegations)
    return list(found.values())
