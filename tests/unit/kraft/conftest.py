"""A scripted cluster, and what one worker knows of it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from kafka_dt.kraft.knowledge import Knowledge
from kafka_dt.tokens import TokenCache
from tests.support.tokens.scripted_cluster import ScriptedCluster


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    async with ScriptedCluster().running() as running:
        yield running


@pytest.fixture
def cache() -> TokenCache:
    return TokenCache(None)


@pytest.fixture
def knowledge(cache: TokenCache) -> Knowledge:
    made = Knowledge(cache, time.monotonic)
    made.on_change(cache.apply)
    return made
