"""Remove expired tokens from the store, in the background; two clocks must agree that a token has expired.

Every process may do this at the same time as any other: one of them gets a token, and a token that was renewed
meanwhile stays (`TokenChanges.remove`). A deletion holds on every node. So a token has to be expired by the clock of
this machine and by that of the store, which `compare_clocks` asks for the time of a write. The write falls somewhere
between asking and the answer, so a slow store looks like no difference, never like a large one.

Source: kafka.server.DelegationTokenManagerZk.expireTokens
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.tokens.sharing import in_turns

if TYPE_CHECKING:
    from kafka_dt.tokens.cache import TokenCache
    from kafka_dt.tokens.store import TokenChanges
    from kafka_dt.tokens.token import Token

_LOG = logging.getLogger(__name__)

NOTICED_MS: Final = 5_000
"""A difference beyond this is worth a warning."""
TRUSTED_MS: Final = 60_000
"""With a difference beyond this nothing is deleted for its age."""
REMOVALS_AT_ONCE: Final = 64
"""How many tokens are removed concurrently."""


async def remove_expired(
    changes: TokenChanges, cache: TokenCache, clocks: Clocks, on_removed: Callable[[Token], None]
) -> int:
    """Delete every token in the cache that has expired by both clocks, and return how many were deleted here.

    `on_removed` is called with each of them. Raises StoreUnavailable if the store is cut off.
    """
    if clocks.differ:
        _LOG.warning("Set the clocks right: %s. %s", clocks, _consequence(clocks))
    if clocks.differ_too_much:
        return 0
    past_ms = clocks.past_ms
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


@dataclass(frozen=True, slots=True)
class Clocks:
    """What two clocks showed at one moment, in milliseconds since 1970 in UTC."""

    asked_ms: int
    """The clock of this machine before the store was asked."""
    store_ms: int
    """The clock of the store when it was asked."""
    answered_ms: int
    """The clock of this machine when the store had answered."""

    @property
    def ahead_ms(self) -> int:
        """How far the clock of this machine is ahead at least; negative if it is behind."""
        return max(self.asked_ms - self.store_ms, 0) + min(self.answered_ms - self.store_ms, 0)

    @property
    def past_ms(self) -> int:
        """An instant that has passed by both clocks."""
        return min(self.asked_ms, self.store_ms)

    @property
    def differ(self) -> bool:
        """Whether the difference is worth a warning."""
        return abs(self.ahead_ms) > NOTICED_MS

    @property
    def differ_too_much(self) -> bool:
        """Whether the difference is so large that one of the clocks is wrong."""
        return abs(self.ahead_ms) > TRUSTED_MS

    def __str__(self) -> str:
        """Return the difference, as a clause."""
        direction = "ahead of" if self.ahead_ms > 0 else "behind"
        return f"the clock of this machine is {abs(self.ahead_ms) / 1000:.1f} s {direction} that of the token store"


async def compare_clocks(store_time_ms: Callable[[], Awaitable[int]], now_ms: Callable[[], int]) -> Clocks:
    """Ask the store for the time of a write that it makes now; `now_ms` is the clock of this machine."""
    asked_ms = now_ms()
    store_ms = await store_time_ms()
    return Clocks(asked_ms, store_ms, now_ms())


def _consequence(clocks: Clocks) -> str:
    """Return the consequence of the difference between the clocks."""
    logins = (
        "This node refuses tokens before they expire"
        if clocks.ahead_ms > 0
        else "This node accepts tokens after they have expired"
    )
    return f"{logins}, and removes no expired tokens" if clocks.differ_too_much else logins
