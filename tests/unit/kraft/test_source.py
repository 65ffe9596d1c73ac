"""A worker follows the tokens of a cluster: how often it looks, when it proves, and what it says while it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import IntEnum
from typing import Any

import pytest

from kafka_dt.client import ClientConfig
from kafka_dt.jaas import PLAIN_LOGIN_MODULE
from kafka_dt.kraft.knowledge import Knowledge
from kafka_dt.kraft.reader import ClusterReader
from kafka_dt.kraft.session import session
from kafka_dt.kraft.source import CUT_OFF_S, ClusterTokens
from kafka_dt.tokens import DelegationToken, StoredToken, StoreUnavailable, TokenCache
from kafka_dt.tokens.staleness import Moment
from kafka_dt.tokens.store import NEVER_MS
from kafka_dt_protocol.api.registry import ApiKey, AskedApi
from kafka_dt_protocol.wire.headers import RequestHeader
from tests.support.tokens.scripted_cluster import GATEWAY, ScriptedCluster
from tests.support.tokens.store_contract import new_token

pytestmark = pytest.mark.usefixtures("steady_time")

REFRESH_S = 0.02
WITHIN_S = 60.0


def loop_s() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def following(
    cluster: ScriptedCluster,
    cache: TokenCache,
    *,
    max_staleness_ms: int = 300_000,
    refresh_s: float = REFRESH_S,
    clocks: Callable[[], Moment] = lambda: (loop_s(),),
) -> AsyncIterator[ClusterTokens]:
    knowledge = Knowledge(cache, loop_s)
    reader = ClusterReader(cluster.session(), knowledge, GATEWAY, clocks=clocks, proof_s=5)
    source = ClusterTokens(
        reader, knowledge, cache, refresh_s=refresh_s, max_staleness_ms=max_staleness_ms, clocks=clocks
    )
    source.on_change(cache.apply)
    assert source.staleness_ms() == NEVER_MS
    await source.load()
    try:
        yield source
    finally:
        await source.close()


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110 - a condition about a server has no event
            await asyncio.sleep(0.005)


def answer_slowly(cluster: ScriptedCluster, api: IntEnum, takes_s: Callable[[], float]) -> None:
    """Have each answer of an API take some seconds."""
    answer = cluster.server.scripts[api]

    async def slowly(header: RequestHeader, request: Any) -> dict[str, Any]:
        await asyncio.sleep(takes_s())
        told: dict[str, Any] = answer(header, request)
        return told

    cluster.server.scripts[api] = slowly


def made_at_a_broker(cluster: ScriptedCluster) -> str:
    held = DelegationToken(new_token(), bytes(64))
    cluster.described[held.token.token_id] = held
    return held.token.token_id


async def test_a_token_that_is_made_and_deleted_at_a_broker_comes_and_goes(
    cluster: ScriptedCluster, cache: TokenCache
) -> None:
    first = made_at_a_broker(cluster)
    async with following(cluster, cache):
        assert cache.get(first) is not None
        second = made_at_a_broker(cluster)
        await eventually(lambda: cache.get(second) is not None)
        del cluster.described[first]
        await eventually(lambda: cache.get(first) is None)
        assert cluster.asked.count(AskedApi.DESCRIBE_QUORUM) == 2, "looks need no proof"


async def test_proofs_keep_what_is_known_from_being_too_old(cluster: ScriptedCluster, cache: TokenCache) -> None:
    async with following(cluster, cache, max_staleness_ms=1_000) as source:
        begun = loop_s()
        while loop_s() - begun < 2:
            assert source.staleness_ms() < 1_000
            await asyncio.sleep(0.02)


async def test_what_is_known_is_too_old_when_the_machine_wakes_up_and_is_proved_again(
    cluster: ScriptedCluster, cache: TokenCache
) -> None:
    """The clock that the event loop waits by stands still while a machine sleeps or a hypervisor holds it."""
    asleep_s = 0.0

    def clocks() -> Moment:
        return (loop_s(), loop_s() + asleep_s)

    async with following(cluster, cache, refresh_s=60, clocks=clocks) as source:
        assert source.staleness_ms() < 60_000
        asleep_s = 3_600.0
        assert source.staleness_ms() >= 3_600_000
        await source.catch_up()
        assert source.staleness_ms() < 60_000


@pytest.mark.parametrize("takes_s", [[0.0, 0.9], [0.5] * 100], ids=["once", "each time"])
async def test_slow_answers_do_not_make_what_is_known_too_old(
    cluster: ScriptedCluster, cache: TokenCache, takes_s: list[float]
) -> None:
    """As when a broker collects garbage, this process is frozen for a moment, or there are many tokens."""
    slow = list(takes_s)
    answer_slowly(cluster, AskedApi.DESCRIBE_QUORUM, lambda: 0.15)
    answer_slowly(cluster, ApiKey.DESCRIBE_DELEGATION_TOKEN, lambda: slow.pop(0) if slow else 0)
    async with following(cluster, cache, max_staleness_ms=3_000) as source:
        begun = loop_s()
        while loop_s() - begun < 8:
            assert source.staleness_ms() < 3_000
            await asyncio.sleep(0.02)
    assert len(slow) < len(takes_s) - 1


async def test_a_change_of_this_worker_is_proved_soon(cluster: ScriptedCluster, cache: TokenCache) -> None:
    token_id = made_at_a_broker(cluster)
    async with following(cluster, cache) as source:
        held = cluster.described[token_id]
        source._knowledge.changed(token_id, StoredToken(held.token.expiring_at(1), hmac=held.hmac))
        await eventually(lambda: cache.get(token_id) == held)


async def test_a_revocation_at_a_broker_does_not_wait_for_a_proof(cluster: ScriptedCluster, cache: TokenCache) -> None:
    changed, revoked = made_at_a_broker(cluster), made_at_a_broker(cluster)
    async with following(cluster, cache) as source:
        cluster.deposed = True  # no proof comes to an end
        source._knowledge.changed(changed, None)
        proofs = cluster.asked.count(AskedApi.DESCRIBE_QUORUM)
        await eventually(lambda: cluster.asked.count(AskedApi.DESCRIBE_QUORUM) > proofs)
        del cluster.described[revoked]
        await eventually(lambda: cache.get(revoked) is None)


async def test_changes_are_proved_one_after_the_other_without_a_pause(
    cluster: ScriptedCluster, cache: TokenCache
) -> None:
    """Until then nothing that another node or a broker does with their tokens is believed."""
    async with following(cluster, cache, refresh_s=0.5) as source:
        answer_slowly(cluster, AskedApi.DESCRIBE_QUORUM, lambda: 0.3)
        asked = cluster.asked.count(AskedApi.DESCRIBE_QUORUM)
        for _ in range(24):
            source._knowledge.changed(made_at_a_broker(cluster), None)
            await asyncio.sleep(0.25)
        proofs = (cluster.asked.count(AskedApi.DESCRIBE_QUORUM) - asked) / 2
        assert proofs >= 8, "one takes 0.6 seconds"


async def test_changes_are_proved_no_more_often_than_the_worker_looks(
    cluster: ScriptedCluster, cache: TokenCache
) -> None:
    async with following(cluster, cache, refresh_s=0.5) as source:
        asked = cluster.asked.count(AskedApi.DESCRIBE_QUORUM)
        for _ in range(100):
            source._knowledge.changed(made_at_a_broker(cluster), None)
            await asyncio.sleep(0.05)
        assert 8 <= (cluster.asked.count(AskedApi.DESCRIBE_QUORUM) - asked) / 2 <= 11


async def test_callers_share_a_proof(cluster: ScriptedCluster, cache: TokenCache) -> None:
    async with following(cluster, cache, refresh_s=60) as source:
        before = cluster.asked.count(ApiKey.DESCRIBE_DELEGATION_TOKEN)
        token_id = made_at_a_broker(cluster)
        found = await asyncio.gather(*(source.read(token_id) for _ in range(20)), source.catch_up(), source.prove())
        assert [each and each.token.token_id for each in found[:20]] == [token_id] * 20
        assert await source.read(new_token().token_id) is None
        assert cluster.asked.count(ApiKey.DESCRIBE_DELEGATION_TOKEN) - before <= 3


async def test_a_worker_that_is_cut_off_says_so_and_comes_back(
    cluster: ScriptedCluster, cache: TokenCache, caplog: pytest.LogCaptureFixture
) -> None:
    async with following(cluster, cache) as source:
        cluster.server.greeting = b"no kafka"
        cluster.server.drop_connections()
        await eventually(lambda: not source.connected)
        with pytest.raises(StoreUnavailable):
            await source.read(new_token().token_id)
        stale_ms = source.staleness_ms()
        await eventually(lambda: source.staleness_ms() > stale_ms)
        await eventually(lambda: "cannot follow the tokens" in caplog.text)
        cluster.server.greeting = None
        cluster.server.drop_connections()
        await eventually(lambda: source.connected)
        await eventually(lambda: "follows the tokens of the upstream cluster again" in caplog.text)
    assert caplog.text.count("cannot follow the tokens") == 1


async def test_a_read_while_a_broker_goes_away_waits_for_another(cluster: ScriptedCluster, cache: TokenCache) -> None:
    async with following(cluster, cache, refresh_s=60) as source:
        cluster.server.drop_connections()
        assert await source.read(new_token().token_id) is None
        token_id = made_at_a_broker(cluster)
        cluster.server.drop_connections()
        await asyncio.sleep(0.1)  # until the end of the connection has been heard of
        assert await source.read(token_id) is not None


async def test_a_connection_that_ends_does_not_mean_that_no_broker_answers(
    cluster: ScriptedCluster, cache: TokenCache
) -> None:
    """A rolling restart ends one connection after the other; creates must go on."""
    async with following(cluster, cache) as source:
        cluster.server.greeting = b"no kafka"
        cluster.server.drop_connections()
        begun = loop_s()
        while loop_s() - begun < CUT_OFF_S / 2:
            assert source.connected
            await asyncio.sleep(0.02)
        await eventually(lambda: not source.connected)


async def test_a_read_waits_for_no_broker_when_none_has_answered_for_some_time(
    cluster: ScriptedCluster, cache: TokenCache, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_dt.kraft.source.CUT_OFF_S", 0.0)
    async with following(cluster, cache) as source:
        cluster.server.greeting = b"no kafka"
        cluster.server.drop_connections()
        await eventually(lambda: "cannot follow the tokens" in caplog.text)
        with pytest.raises(StoreUnavailable, match="no broker of the upstream cluster answers"):
            await source.read(new_token().token_id)


async def test_a_load_waits_for_a_broker_that_can_prove_the_tokens(
    cluster: ScriptedCluster, cache: TokenCache, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker that is asked first may be cut off from the controllers, though others are well."""
    token_id = made_at_a_broker(cluster)
    cluster.server.greeting = b"no kafka"

    async def be_well() -> None:
        await eventually(lambda: cluster.server.connections >= 3)
        assert cache.get(token_id) is None
        cluster.server.greeting = None
        cluster.server.drop_connections()

    mending = asyncio.create_task(be_well())
    async with following(cluster, cache) as source:
        assert source.connected
        assert cache.get(token_id) is not None
    await mending
    assert caplog.text.count("cannot follow the tokens") == 1
    assert caplog.text.count("follows the tokens of the upstream cluster again") == 1


async def test_a_load_does_not_wait_for_a_cluster_that_refuses_the_login(
    cache: TokenCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedCluster.fit("gateway", "secret").running() as cluster:
        jaas = f'{PLAIN_LOGIN_MODULE} required username="gateway" password="another";'
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
        config = ClientConfig.from_properties({"bootstrap.servers": cluster.server.address, **login})
        monkeypatch.setattr(cluster, "session", lambda: session(config))
        with pytest.raises(StoreUnavailable, match="with PLAIN failed"):
            async with following(cluster, cache):
                pass


async def test_a_cluster_that_removes_expired_tokens_is_not_asked_for_its_time(
    cluster: ScriptedCluster, cache: TokenCache
) -> None:
    async with following(cluster, cache) as source:
        with pytest.raises(StoreUnavailable):
            await source.time_ms()
