"""Unmodified Java clients against a node whose stores are all in memory: no ZooKeeper, no secret key, no versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.brokers.broker import USERS
from tests.support.java.properties import SCRAM_MECHANISMS, plain, token
from tests.support.java.reference_client import JavaClientError, ReferenceClient
from tests.support.nodes.memory_node import MemoryCluster, MemoryNode, node_on

ALICE, BOB = (plain(name, USERS[name]) for name in ("alice", "bob"))
DAY_MS = 86_400_000


@pytest.fixture
async def node() -> AsyncIterator[MemoryNode]:
    async with node_on(MemoryCluster()) as running:
        yield running


async def test_the_admin_client_uses_a_token_until_it_is_expired(
    java_client: ReferenceClient, node: MemoryNode
) -> None:
    await asyncio.to_thread(_use_the_admin_client, java_client, node.address)


def _use_the_admin_client(java_client: ReferenceClient, server: str) -> None:
    with java_client.open(server, ALICE) as alice:
        created = alice.create(renewers=["User:bob"], max_lifetime_ms=2 * DAY_MS)
        assert created in alice.describe()
        with java_client.open(server, BOB) as bob:
            assert bob.describe() == alice.describe(["User:alice"]) == [created]
        assert alice.renew(created.hmac, 30 * DAY_MS) == created.max_timestamp_ms
        for mechanism in SCRAM_MECHANISMS:
            with java_client.open(server, token(created.login, mechanism)) as holder:
                assert holder.cluster() == alice.cluster()
        alice.expire(created.hmac)
        with (
            java_client.open(server, token(created.login)) as late,
            pytest.raises(JavaClientError, match="SaslAuthenticationException"),
        ):
            late.topics()
