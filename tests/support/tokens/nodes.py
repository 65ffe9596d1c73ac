"""Nodes of the token domain as tests use them: a manager with its cache, on a store in memory, in a test's time."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field

from kafka_dt.tokens import (
    DelegationToken,
    GuardedChanges,
    Keyring,
    Principal,
    SecretKey,
    Token,
    TokenCache,
    TokenLimits,
    TokenManager,
    Turns,
)
from tests.support.tokens.memory_store import MemoryTokenDatabase, MemoryTokenStore

SECOND = 1_000
HOUR = 60 * 60 * SECOND
DAY = 24 * HOUR
START = 1_700_000_000_000

SECRET_KEY = SecretKey("the secret key")
"""Shared, because its id takes some milliseconds."""

ALICE, BOB, CAROL, MALLORY = (Principal.user(name) for name in ("alice", "bob", "carol", "mallory"))


@dataclass
class Clock:
    now_ms: int = START

    def __call__(self) -> int:
        return self.now_ms


@dataclass
class RandomBytes:
    """Bytes that differ from call to call and not from run to run."""

    calls: int = 0

    def __call__(self, size: int) -> bytes:
        self.calls += 1
        return hashlib.sha256(str(self.calls).encode()).digest()[:size]


@dataclass
class Cluster:
    """What nodes share."""

    database: MemoryTokenDatabase = field(default_factory=MemoryTokenDatabase)
    clock: Clock = field(default_factory=Clock)
    random_bytes: Callable[[int], bytes] = field(default_factory=RandomBytes)
    limits: TokenLimits = field(default_factory=TokenLimits)

    def __post_init__(self) -> None:
        self.database.now_ms = self.clock

    def node(self, secret_key: SecretKey | None = SECRET_KEY) -> Node:
        """A new node that has not been started; None = no secret key is set."""
        return self.node_with(None if secret_key is None else Keyring(secret_key))

    def node_with(self, keyring: Keyring | None) -> Node:
        """A new node with keys that the test may change; None = no secret key is set."""
        store, cache = MemoryTokenStore(self.database), TokenCache(keyring)
        changes = None
        if keyring is not None:
            changes = GuardedChanges(
                store, cache, keyring, self.limits, now_ms=self.clock, random_bytes=self.random_bytes
            )
        manager = TokenManager(store, changes, cache, self.limits, now_ms=self.clock)
        return Node(store, cache, manager)

    def stored(self, token_id: str) -> Token | None:
        stored = self.database.tokens.get(token_id)
        return None if stored is None else stored.token


@dataclass
class Node:
    store: MemoryTokenStore
    cache: TokenCache
    manager: TokenManager

    async def describe(
        self, requester: Principal, owners: Collection[Principal] | None, visible: Callable[[Token], bool]
    ) -> list[DelegationToken]:
        """Describe as the handler does, without a pause."""
        if owners is None or owners:
            await self.manager.catch_up_if_possible()
        batches = self.manager.describe(requester, owners, visible, Turns(lambda: 0.0))
        return await shown(self.cache, batches)


async def shown(cache: TokenCache, batches: AsyncIterator[list[str]]) -> list[DelegationToken]:
    """Give the tokens that a describe has found."""
    return [held async for batch in batches for each in batch if (held := cache.get(each)) is not None]


def nothing_more(_: Token) -> bool:
    """Show no tokens beyond those that concern the requester."""
    return False


def everything(_: Token) -> bool:
    """Show all tokens, as a cluster without ACLs does."""
    return True
