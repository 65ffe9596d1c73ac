"""The contract of stores of tokens, kept by two stores in memory: one that compares and sets, and one that decides."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kafka_dt.tokens import GuardedChanges, Keyring, TokenCache, TokenLimits
from tests.support.tokens.direct_store import DirectCluster, DirectTokenStore
from tests.support.tokens.memory_store import MemoryTokenDatabase, MemoryTokenStore
from tests.support.tokens.nodes import SECRET_KEY, Clock, RandomBytes
from tests.support.tokens.store_contract import Place, TokenStoreContract


class TestGuardedMemoryStore(TokenStoreContract):
    @pytest.fixture
    async def places(self, clock: Clock) -> tuple[Place, Place]:
        database, random_bytes = MemoryTokenDatabase(), RandomBytes()
        first, second = (_guarded(MemoryTokenStore(database), clock, random_bytes) for _ in range(2))
        await first.source.load()
        await second.source.load()
        return first, second


class TestDirectStore(TokenStoreContract):
    @pytest.fixture
    async def places(self, clock: Clock) -> AsyncIterator[tuple[Place, Place]]:
        cluster = DirectCluster(clock)
        stores = DirectTokenStore(cluster), DirectTokenStore(cluster)
        caches = TokenCache(None), TokenCache(None)
        for store, cache in zip(stores, caches, strict=True):
            store.on_change(cache.apply)
            await store.load()
        first, second = (Place(store, store, cache) for store, cache in zip(stores, caches, strict=True))
        yield first, second
        for store in stores:
            await store.close()


def _guarded(store: MemoryTokenStore, clock: Clock, random_bytes: RandomBytes) -> Place:
    keyring = Keyring(SECRET_KEY)
    cache = TokenCache(keyring)
    store.on_change(cache.apply)
    changes = GuardedChanges(store, cache, keyring, TokenLimits(), now_ms=clock, random_bytes=random_bytes)
    return Place(store, changes, cache)
