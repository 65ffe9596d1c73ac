"""The ACLs of a cluster by which a node decides: those of now, or the decision is refused."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.identity.acls.binding import AclBinding, AclOperation, PatternType, ResourcePattern, ResourceType
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.manager import AclManager
from kafka_dt.identity.acls.store import AclStoreUnavailable
from kafka_dt.kraft.acls import SHORT_BYTES, ClusterAcls, KnownAcls, _entries
from kafka_dt.kraft.knowledge import Knowledge
from kafka_dt.kraft.reader import ClusterReader
from kafka_dt.kraft.source import ClusterTokens
from kafka_dt.tokens import TokenCache
from kafka_dt.tokens.staleness import read_clocks
from kafka_dt_protocol.api.registry import ApiKey
from tests.support.identity.authorization import acl
from tests.support.tokens.scripted_cluster import GATEWAY, ScriptedCluster

CREATE = acl(ResourceType.USER, "User:bob", "alice", AclOperation.CREATE_TOKENS)
SEE = acl(ResourceType.USER, "User:", "carol", AclOperation.DESCRIBE_TOKENS, pattern=PatternType.PREFIXED)
SEE_ONE = acl(ResourceType.DELEGATION_TOKEN, "a-token", "carol", AclOperation.DESCRIBE)
READ = acl(ResourceType.TOPIC, "t", "alice", AclOperation.READ)
PROOF_S = 10.0
MAX_STALENESS_MS = 300_000


@asynccontextmanager
async def deciding(
    cluster: ScriptedCluster, tokens: TokenCache, monotonic: Callable[[], float] = time.monotonic
) -> AsyncIterator[tuple[AclManager, AclCache]]:
    """What a worker knows of the ACLs."""
    known, knowledge = KnownAcls(), Knowledge(tokens, monotonic)
    reader = ClusterReader(
        cluster.session(), knowledge, GATEWAY, clocks=lambda: (monotonic(),), proof_s=PROOF_S, acls=known
    )
    source = ClusterTokens(
        reader, knowledge, tokens, refresh_s=60, max_staleness_ms=MAX_STALENESS_MS, clocks=lambda: (monotonic(),)
    )
    acls, cache = ClusterAcls(known, source), AclCache()
    manager = AclManager(acls, cache)
    try:
        await source.load()
        assert ApiKey.DESCRIBE_ACLS not in cluster.asked
        await manager.start()
        yield manager, cache
    finally:
        await source.close()


def bindings(cache: AclCache) -> set[AclBinding]:
    return set(cache)


async def test_those_about_users_and_tokens_are_those_of_now_when_a_decision_is_made(
    cluster: ScriptedCluster, cache: TokenCache
) -> None:
    cluster.acls = [CREATE, READ, SEE_ONE]
    async with deciding(cluster, cache) as (acls, known):
        assert bindings(known) == {CREATE, SEE_ONE}
        for now in ([SEE, SEE_ONE], [CREATE, SEE], [], [SEE_ONE]):
            cluster.acls = now
            await acls.until_current()
            assert bindings(known) == set(now)


async def test_an_answer_like_the_one_before_is_not_decoded(
    cluster: ScriptedCluster, cache: TokenCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.acls = [CREATE]
    async with deciding(cluster, cache) as (acls, known):
        monkeypatch.setattr("kafka_dt.kraft.acls._patterns", lambda *_: pytest.fail("it is the same"))
        await acls.until_current()
        assert bindings(known) == {CREATE}


async def test_a_long_answer_is_taken_as_a_short_one(cluster: ScriptedCluster, cache: TokenCache) -> None:
    many = [
        acl(ResourceType.USER, f"User:{number}", "alice", AclOperation.CREATE_TOKENS)
        for number in range(SHORT_BYTES // 20)
    ]
    cluster.acls = many
    async with deciding(cluster, cache) as (_, known):
        assert bindings(known) == set(many)


async def test_a_pattern_of_a_newer_kafka_is_left_out(cluster: ScriptedCluster, cache: TokenCache) -> None:
    odd = AclBinding(ResourcePattern(ResourceType.USER, "User:", PatternType.UNKNOWN), CREATE.entry)
    cluster.acls = [odd, CREATE]
    async with deciding(cluster, cache) as (_, known):
        assert bindings(known) == {CREATE}


def test_a_principal_that_no_client_is_is_left_out() -> None:
    described = [
        SimpleNamespace(principal=principal, host="*", operation=CREATE.entry.operation, permission_type=3)
        for principal in ("alice", "User:alice")
    ]
    assert list(_entries(described)) == [CREATE.entry]


async def test_where_no_broker_tells_them_they_hold_as_long_as_tokens_would(
    cluster: ScriptedCluster, cache: TokenCache
) -> None:
    passed_s = 0.0
    cluster.acls = [CREATE]
    async with deciding(cluster, cache, lambda: time.monotonic() + passed_s) as (acls, known):
        cluster.acl_error = ErrorCode.cluster_authorization_failed
        await acls.until_current()
        assert bindings(known) == {CREATE}
        passed_s = MAX_STALENESS_MS / 1000
        with pytest.raises(AclStoreUnavailable, match=r"authorization.failed"):
            await acls.until_current()
        cluster.acls, cluster.acl_error = [SEE], ErrorCode.none
        await acls.until_current()
        assert bindings(known) == {SEE}


async def test_a_node_changes_none(cluster: ScriptedCluster, cache: TokenCache) -> None:
    known = KnownAcls()
    reader = ClusterReader(cluster.session(), Knowledge(cache, time.monotonic), GATEWAY, clocks=read_clocks, proof_s=1)
    source = ClusterTokens(
        reader, Knowledge(cache, time.monotonic), cache, refresh_s=60, max_staleness_ms=1, clocks=read_clocks
    )
    acls = ClusterAcls(known, source)
    assert not acls.can_hold("a")
    assert (await acls.read(CREATE.pattern)).entries == ()
    with pytest.raises(AclStoreUnavailable):
        await acls.write(CREATE.pattern, (), None)
