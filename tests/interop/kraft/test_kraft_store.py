"""The contract of stores of tokens, kept by a real cluster without ZooKeeper, where its rules are not those of a node.

The cluster has its own clock, renews for the default at most, and sees the gateway as the requester of all tokens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

import pytest

from kafka_dt.config import from_properties, upstream_client_properties
from kafka_dt.idle import IdleTime
from kafka_dt.kraft.node import node_stores
from kafka_dt.stores import StoreNeeds, WorkerPlace
from kafka_dt.tokens import Principal, TokenCache, TokenExpired, TokenLimits
from kafka_dt.upstream import UpstreamClient
from tests.support.brokers.kraft import GATEWAY, KraftCluster
from tests.support.nodes.gateway import upstream_store_properties
from tests.support.processes.waiting import on_this_machine
from tests.support.tokens.direct_store import wall_clock_ms
from tests.support.tokens.nodes import DAY, HOUR, MALLORY, SECOND, Clock
from tests.support.tokens.store_contract import Place, TokenStoreContract

ABOUT_MS = 60 * SECOND
"""How well the cluster's clock is known, on a machine that stands still now and then."""


class TestKraftStore(TokenStoreContract):
    requester = Principal.user(GATEWAY)

    @pytest.fixture
    async def places(self, cluster: KraftCluster) -> AsyncIterator[tuple[Place, Place]]:
        properties = {key: _text(value) for key, value in upstream_store_properties(cluster, 1).items()}
        settings = from_properties(properties).settings
        async with AsyncExitStack() as stack:
            executor = stack.enter_context(ThreadPoolExecutor(1))
            made = []
            for number in range(2):
                cache = TokenCache(None)
                needs = StoreNeeds(None, cache, TokenLimits(), executor, IdleTime(executor))
                upstream = UpstreamClient(upstream_client_properties(settings))
                place = WorkerPlace(number, 2, "a node")
                stores = node_stores(settings, place, needs, upstream=upstream, now_ms=wall_clock_ms)
                assert stores.token_changes is not None
                stores.tokens.on_change(cache.apply)
                stack.push_async_callback(stores.close)
                made.append(Place(stores.tokens, stores.token_changes, cache))
            await asyncio.gather(*(each.source.load() for each in made))
            yield made[0], made[1]

    def after(self, period_ms: int, clock: Clock) -> object:
        del clock
        return pytest.approx(wall_clock_ms() + period_ms, abs=ABOUT_MS)

    async def test_a_renewal_is_clamped_and_takes_the_default(self, places: tuple[Place, Place], clock: Clock) -> None:
        created = await places[0].create(2 * DAY)
        for period_ms in (30 * DAY, -1, 0):
            assert await places[0].renew(created, period_ms) == self.after(DAY, clock)

    async def test_a_change_is_decided_on_what_is_there_now(self, places: tuple[Place, Place], clock: Clock) -> None:
        del clock
        first, second = places
        shortened = await first.create()
        await second.source.catch_up()
        await first.expire(shortened, 1)
        # The controller decides on its own image, which is behind for some tenths of a second.
        await second.source.catch_up()
        with pytest.raises(TokenExpired):
            await second.renew(shortened, HOUR)
        with pytest.raises(TokenExpired):
            await second.expire(shortened, HOUR)

    async def test_what_has_expired_is_removed_once_and_nothing_else(
        self, places: tuple[Place, Place], clock: Clock
    ) -> None:
        """The controllers remove it."""
        del clock
        expired = await places[0].create(1)
        assert places[0].changes.removes_expired
        assert await places[0].changes.remove(expired.token.token_id, wall_clock_ms() + DAY) is None

    async def test_an_expired_token_is_told_to_strangers_as_a_broker_tells_it(
        self, places: tuple[Place, Place]
    ) -> None:
        created = await places[0].create(1)
        await asyncio.sleep(0.01)
        with pytest.raises(TokenExpired):
            await places[0].renew(created, HOUR, MALLORY)

    async def test_a_proof_takes_half_a_second_and_many_share_it(self, places: tuple[Place, Place]) -> None:
        begun = time.monotonic()
        await asyncio.gather(*(places[0].source.prove() for _ in range(100)))
        assert time.monotonic() - begun < on_this_machine(5)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
