"""What an ensemble of ZooKeeper does when a member is cut off: the facts that freshness rests on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kafka_dt.zookeeper.errors import ZooKeeperConnectionLost
from tests.integration.zookeeper_nodes import client_of, settings
from tests.support.zookeeper.ensemble import Ensemble

LONG_SYNC_LIMIT = 16
"""In ticks: eight seconds, in which a member that is cut off does not know it."""
AT_ONCE_S = 4.0


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with Ensemble(tmp_path_factory.mktemp("ensemble"), sync_limit=LONG_SYNC_LIMIT) as ensemble:
        yield ensemble


@pytest.mark.soak
async def test_an_isolated_leader_answers_sync_but_no_barrier(ensemble: Ensemble) -> None:
    leader = await asyncio.to_thread(ensemble.leader)
    async with client_of(settings(leader.connect, 10_000)) as client:
        await client.ensure_path("/place")
        await client.barrier("/place")
        ensemble.partition(leader)
        async with asyncio.timeout(AT_ONCE_S):
            await client.sync("/place")
        barrier = client.barrier("/place")
        with pytest.raises(ZooKeeperConnectionLost):  # by which it steps down
            await barrier
        await asyncio.to_thread(ensemble.heal)


@pytest.mark.soak
async def test_a_follower_that_is_isolated_answers_reads_but_neither_sync_nor_barrier(ensemble: Ensemble) -> None:
    follower = (await asyncio.to_thread(ensemble.followers))[0]
    async with client_of(settings(follower.connect, 10_000)) as client:
        await client.ensure_path("/place")
        ensemble.partition(follower)
        async with asyncio.timeout(AT_ONCE_S):
            assert await client.exists("/place") is not None
        for request in (client.sync("/place"), client.barrier("/place")):
            with pytest.raises(ZooKeeperConnectionLost):
                await request
        await asyncio.to_thread(ensemble.heal)


@pytest.mark.soak
async def test_the_others_elect_a_leader_and_the_isolated_one_comes_back(ensemble: Ensemble) -> None:
    leader = await asyncio.to_thread(ensemble.leader)
    others = [member for member in ensemble.members if member is not leader]
    with ensemble.isolated(leader):
        async with client_of(settings(",".join(member.connect for member in others), 10_000)) as client:
            while True:
                try:
                    await client.create("/made-meanwhile", b"")
                    break
                except ZooKeeperConnectionLost:
                    await asyncio.sleep(0.1)
    async with client_of(settings(leader.connect, 10_000)) as client:
        await client.sync("/")
        assert await client.exists("/made-meanwhile") is not None
