"""A scripted cluster, what one worker knows of it, and its changes there."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from kafka_dt.kraft.changes import ClusterChanges, Connections
from kafka_dt.kraft.knowledge import Knowledge
from kafka_dt.kraft.reader import ClusterReader
from kafka_dt.kraft.source import ClusterTokens
from kafka_dt.tokens import TokenCache
from kafka_dt.tokens.staleness import read_clocks
from tests.support.tokens.changing_worker import OwnLogin, Worker
from tests.support.tokens.scripted_cluster import GATEWAY, ScriptedCluster


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


@pytest.fixture
async def worker(cluster: ScriptedCluster, cache: TokenCache, knowledge: Knowledge) -> AsyncIterator[Worker]:
    reader = ClusterReader(cluster.session(), knowledge, GATEWAY, clocks=read_clocks, proof_s=5)
    source = ClusterTokens(reader, knowledge, cache, refresh_s=60, max_staleness_ms=600_000, clocks=read_clocks)
    changing = ClusterChanges(
        Connections(cluster.session),
        GATEWAY,
        source,
        knowledge,
        cache,
        now_ms=lambda: made.now_ms,
        tell=lambda *message: made.told.append(message),
    )
    made = Worker(cluster, cache, source, changing)
    await source.load()
    yield made
    for each in made.hanging:
        each.set()
    await source.close()
    await changing.close()


@pytest.fixture
async def own(cluster: ScriptedCluster) -> AsyncIterator[OwnLogin]:
    session = cluster.session()
    yield OwnLogin(await session.ready())
    await session.close()
