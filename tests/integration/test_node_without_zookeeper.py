"""A node whose stores are in memory, and whose store of tokens knows neither keys nor versions nor numbered changes."""

from __future__ import annotations

import asyncio

import pytest

from kafka_dt.client import DelegationToken, TokenClient
from kafka_dt.client.config import Address, ClientConfig, Credentials
from kafka_dt.client.errors import (
    LoginFailed,
    NoServerReached,
    TokenNotFound,
    TokenOwnerMismatch,
    TokenRequestNotAllowed,
)
from kafka_dt.config import SecurityProtocol
from kafka_dt.node.worker import STALE_CHECK_SECONDS
from kafka_dt.server.listeners import listener
from tests.integration.zookeeper_nodes import eventually
from tests.support.brokers.broker import USERS
from tests.support.nodes.memory_node import MemoryCluster, MemoryNode, node_on
from tests.support.processes.waiting import on_this_machine
from tests.support.protocol.raw import RawConnection


def client(node: MemoryNode, user: str = "alice") -> TokenClient:
    return _client(node, Credentials("PLAIN", user, USERS[user]))


def token_client(node: MemoryNode, token: DelegationToken, mechanism: str = "SCRAM-SHA-256") -> TokenClient:
    return _client(node, Credentials(mechanism, token.token_id, token.hmac_base64, token_auth=True))


def _client(node: MemoryNode, credentials: Credentials) -> TokenClient:
    host, _, port = node.address.rpartition(":")
    return TokenClient(
        ClientConfig(
            bootstrap_servers=(Address(host, int(port)),),
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            credentials=credentials,
        )
    )


async def logs_in(node: MemoryNode, token: DelegationToken, mechanism: str = "SCRAM-SHA-256") -> bool:
    """Whether a login by token succeeds now; a node that cannot tell closes the connection."""
    try:
        async with token_client(node, token, mechanism) as holder:
            await refused_as_a_token_login(holder)
    except (LoginFailed, NoServerReached):
        return False
    return True


async def refused_as_a_token_login(holder: TokenClient) -> None:
    """A client that is logged in by a token may not ask about tokens."""
    with pytest.raises(TokenRequestNotAllowed):
        await holder.describe()


async def test_a_token_lives_its_whole_life_on_a_store_that_decides_itself() -> None:
    async with node_on(MemoryCluster()) as node, client(node) as alice, client(node, "bob") as bob:
        made = await alice.create(renewers=["User:bob"])
        assert await alice.describe() == await bob.describe() == [made]
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            assert await logs_in(node, made, mechanism)
        assert await bob.renew(made.hmac, 10**12) == made.max_timestamp_ms
        (renewed,) = await alice.describe()
        with pytest.raises(TokenOwnerMismatch):
            async with client(node, "admin") as admin:
                await admin.expire(made.hmac)
        await alice.expire(made.hmac)
        with pytest.raises(TokenNotFound):
            await alice.renew(made.hmac)
        assert not await logs_in(node, renewed)


async def test_another_node_accepts_a_token_at_once_and_a_revocation_within_a_second() -> None:
    cluster = MemoryCluster()
    async with node_on(cluster) as one, node_on(cluster) as other, client(one) as alice:
        made = await alice.create()
        assert await logs_in(other, made)
        async with token_client(other, made) as holder:
            await refused_as_a_token_login(holder)
            assert other.has_session_of(made.token_id)
            await alice.expire(made.hmac)
            assert await eventually(lambda: not other.has_session_of(made.token_id)) < on_this_machine(1)
        assert not await logs_in(other, made)


async def test_a_node_that_is_cut_off_from_its_store_stops_accepting_tokens() -> None:
    async with node_on(MemoryCluster(), kafka_dt_zookeeper_max_staleness_ms=1_000) as node, client(node) as alice:
        made = await alice.create()
        assert await logs_in(node, made)
        node.tokens.connected = False
        await eventually(lambda: node.tokens.staleness_ms() > 1_000)
        assert not await logs_in(node, made)
        node.tokens.connected = True
        assert await logs_in(node, made)


@pytest.mark.parametrize("ends", [True, False])
async def test_a_node_that_is_cut_off_ends_the_sessions_of_tokens_if_that_is_wanted(
    caplog: pytest.LogCaptureFixture, ends: bool
) -> None:
    properties = {"kafka_dt_zookeeper_max_staleness_ms": 1_000, "kafka_dt_token_sessions_end_when_stale": ends}
    async with node_on(MemoryCluster(), **properties) as node, client(node) as alice:
        made = await alice.create()
        async with token_client(node, made) as one, token_client(node, made) as other:
            for holder in (one, other):
                await refused_as_a_token_login(holder)
            # The node proves its knowledge again and again, which takes longer than one of its looks.
            for _ in range(20):
                await node.tokens.prove()
                await asyncio.sleep(0.1)
            assert node.has_session_of(made.token_id)

            node.tokens.connected = False
            await eventually(lambda: node.tokens.staleness_ms() > 1_000)
            if ends:
                assert await eventually(lambda: not node.has_session_of(made.token_id)) < on_this_machine(1)
            else:
                await asyncio.sleep(2 * STALE_CHECK_SECONDS)
                assert node.has_session_of(made.token_id)
        await alice.describe([])  # a connection that logged in by a password goes on
        assert not await logs_in(node, made)
        node.tokens.connected = True
        assert await logs_in(node, made)
    lines = [each.getMessage() for each in caplog.records if "Closed" in each.getMessage()]
    assert [line.partition(":")[0] for line in lines] == ["Closed 2 connections that logged in by token"] * ends


async def test_workers_hear_of_a_revocation_by_a_proof() -> None:
    """A server that is cut off from the others could answer anything less: see decision 0011."""
    async with node_on(MemoryCluster()) as node:
        assert await node.worker._tokens.revocations.hear()
        assert node.tokens.proofs == 1


async def test_a_node_announces_itself_and_keeps_its_state() -> None:
    cluster = MemoryCluster()
    async with node_on(cluster):
        await eventually(lambda: cluster.kept > 0)
    (state,) = cluster.announced
    assert (state.worker, state.keys, state.current_key) == (0, (), None)


async def test_a_node_that_stops_still_closes_the_connections_of_revoked_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "CLOSINGS_PER_SECOND", 0.001)  # it would take 4.7 s over this connection
    cluster = MemoryCluster()
    async with node_on(cluster) as stopping, node_on(cluster) as other, client(other) as alice:
        token = await alice.create()
        with await asyncio.to_thread(RawConnection, stopping.address) as connection:
            login = token.token_id, token.hmac_base64, "SCRAM-SHA-256"
            await asyncio.to_thread(connection.login_scram, *login, token=True)
            stopped = asyncio.create_task(stopping.worker.stop())
            await alice.expire(token.hmac)
            assert await asyncio.to_thread(connection.closed, on_this_machine(1.0))
            assert stopping.has_session_of(token.token_id) is False
        await stopped
