"""Following the brokers of a real cluster, by the gateway's own user."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafka_dt.client import ClientConfig, LoginFailed
from kafka_dt.gateway.brokers import UpstreamBrokers
from tests.support.brokers.kraft import KraftCluster
from tests.support.nodes.gateway import service_login

WITHIN_S = 60.0


def brokers_of(cluster: KraftCluster, **changed: str) -> UpstreamBrokers:
    config = ClientConfig.from_properties({"bootstrap.servers": cluster.sasl, **service_login(), **changed})
    return UpstreamBrokers(config, monotonic=time.monotonic, random_bytes=secrets.token_bytes, jitter=lambda: 0.5)


@asynccontextmanager
async def following(cluster: KraftCluster) -> AsyncIterator[UpstreamBrokers]:
    brokers = brokers_of(cluster)
    try:
        async with asyncio.timeout(WITHIN_S):
            await brokers.start()
            yield brokers
    finally:
        await brokers.close()


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - it waits for other processes
        await asyncio.sleep(0.02)


def names(features: Any) -> set[str]:
    return {each.name for each in features}


async def test_brokers_and_what_they_speak_are_known_when_it_has_started(cluster: KraftCluster) -> None:
    async with following(cluster) as brokers:
        found = {broker_id: str(*brokers.candidates(broker_id)) for broker_id in cluster.brokers}
        assert found == {broker_id: broker.sasl for broker_id, broker in cluster.brokers.items()}
        common = brokers.versions(None)
        for broker_id in cluster.brokers:
            own = brokers.versions(broker_id)
            assert own.api_keys == common.api_keys
            assert "metadata.version" in names(own.supported_features)
            assert "metadata.version" in names(own.finalized_features)


@pytest.mark.soak
async def test_a_broker_that_stops_has_gone_and_is_back_when_it_has_started(cluster: KraftCluster) -> None:
    changes: list[tuple[set[int], set[int]]] = []
    async with following(cluster) as brokers:
        brokers.on_change(lambda came, went: changes.append((set(came), set(went))))
        try:
            await asyncio.to_thread(cluster.brokers[2].stop)
            await until(lambda: brokers.candidates(2) == [])
        finally:
            await asyncio.to_thread(cluster.brokers[2].start)
        await until(lambda: brokers.candidates(2) != [])
        assert str(*brokers.candidates(2)) == cluster.brokers[2].sasl
        assert changes == [({1, 2}, set()), (set(), {2}), ({2}, set())]


async def test_a_wrong_password_ends_the_start(cluster: KraftCluster) -> None:
    login = service_login()["sasl.jaas.config"].replace("secret", "wrong")
    brokers = brokers_of(cluster, **{"sasl.jaas.config": login})
    with pytest.raises(LoginFailed):
        await asyncio.wait_for(brokers.start(), WITHIN_S)
    await brokers.close()
