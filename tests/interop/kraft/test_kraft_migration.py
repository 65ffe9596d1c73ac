"""Two nodes whose tokens move from a real ZooKeeper to a real cluster without one; then each of the two goes away.

A node has made the tokens in ZooKeeper before, sealed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import pytest
from click.testing import CliRunner

from kafka_dt.cli import main
from kafka_dt.client import DelegationToken, RequestRefused, TokenAuthorizationFailed, TokenClientError
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from tests.interop.kraft.conftest import at_brokers, forwarding_everywhere, started
from tests.interop.kraft.test_kraft_nodes import KNOWN_WITHIN_S, WITHIN_S, Nodes, expire, produce, takes
from tests.support.brokers.kraft import GATEWAY, KraftCluster
from tests.support.nodes.gateway import IDENTITY, Gateway, gateway_properties, upstream_store_properties
from tests.support.processes.process import hanging
from tests.support.processes.waiting import eventually, on_this_machine
from tests.support.protocol.raw import ConnectionClosed, LoginRefused
from tests.support.zookeeper.server import child_zookeeper

STALENESS_MS: Final = 4_000
BACK_WITHIN_S: Final = 30.0
LIFETIME_MS: Final = 3 * 86_400_000
RELAYING: Final = {IDENTITY: "relay", "listener.name.sasl_plaintext.plain.sasl.jaas.config": None}


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    with child_zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


def both_stores(store: str, zookeeper: EmbeddedZooKeeper, cluster: KraftCluster) -> dict[str, object]:
    """Settings beside those of a node that serves the cluster's tokens alone."""
    with_zookeeper, without = gateway_properties(zookeeper.address, cluster, 1), upstream_store_properties(cluster, 1)
    return {
        **{key: value for key, value in with_zookeeper.items() if key not in without},
        "allow.everyone.if.no.acl.found": None,
        "delegation.token.metadata.encryption.enable": True,
        "kafka.dt.sealing.ahead": 16,
        "kafka.dt.token.store": store,
        "kafka.dt.upstream.max.staleness.ms": STALENESS_MS,
        "kafka.dt.zookeeper.max.staleness.ms": STALENESS_MS,
        "zookeeper.session.timeout.ms": STALENESS_MS,
    }


@pytest.fixture(scope="module")
def old_tokens(
    zookeeper: EmbeddedZooKeeper, cluster: KraftCluster, tmp_path_factory: pytest.TempPathFactory
) -> list[DelegationToken]:
    """Tokens of alice that a node has made in ZooKeeper, while it served those of the cluster already."""
    settings = both_stores("upstream,zookeeper", zookeeper, cluster)
    with ExitStack() as stack:
        before = started(stack, cluster, tmp_path_factory, "before", **settings, **RELAYING)
        with pytest.raises(TokenAuthorizationFailed):
            before.make_token("alice", owner="User:bob")
        made = [before.make_token("alice", renewers=["User:bob"], max_lifetime_ms=LIFETIME_MS) for _ in range(6)]
        of_a_broker = asyncio.run(created_at_a_broker(cluster))
        assert logs_in(before, of_a_broker)
        assert not any(takes(cluster.sasl, before, each) for each in made)
    before.check_log()
    return made


async def created_at_a_broker(cluster: KraftCluster) -> DelegationToken:
    async with at_brokers(cluster, "alice") as alice:
        return await alice.create()


@pytest.fixture(scope="module")
def moving(
    old_tokens: list[DelegationToken],
    zookeeper: EmbeddedZooKeeper,
    cluster: KraftCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Nodes]:
    """Two nodes of two workers that make tokens in the cluster; the second one relays logins with a password."""
    assert old_tokens
    settings = both_stores("zookeeper,upstream", zookeeper, cluster)
    with ExitStack() as stack:
        one = started(stack, cluster, tmp_path_factory, "moving-one", **settings)
        other = started(stack, cluster, tmp_path_factory, "moving-other", **settings, **RELAYING)
        yield one, other
    for node in (one, other):
        node.check_log()


def logs_in(node: Gateway, made: DelegationToken) -> bool:
    try:
        node.connect_by_token(made).close()
    except (LoginRefused, ConnectionClosed, OSError):
        return False
    return True


@contextmanager
def known_to_every_worker(nodes: Nodes, *tokens: DelegationToken) -> Iterator[None]:
    """Let each worker of each node meet tokens: what a worker does not know yet, it has to ask a store for."""
    for node in nodes:
        for made in tokens:
            with node.on_every_worker(lambda node=node, made=made: node.connect_by_token(made)):  # type: ignore[misc]
                pass
    yield


async def test_a_token_of_zookeeper_acts_upstream_for_its_owner_and_a_new_one_is_the_clusters(
    moving: Nodes, old_tokens: list[DelegationToken], cluster: KraftCluster
) -> None:
    old = old_tokens[0]
    for node in moving:
        await produce(node, old)
    async with moving[0].client("alice") as alice:
        new = await alice.create(renewers=["User:bob"])
    for node in moving:
        await produce(node, new)
    node = moving[0]
    await asyncio.to_thread(eventually, lambda: takes(cluster.sasl, node, new), KNOWN_WITHIN_S)
    assert not takes(cluster.sasl, node, old)
    async with at_brokers(cluster, GATEWAY) as gateway:
        known = {each.token_id for each in await gateway.describe(["User:alice"])}
    assert new.token_id in known
    assert old.token_id not in known


async def test_both_kinds_are_described_renewed_and_revoked_alike(
    moving: Nodes, old_tokens: list[DelegationToken]
) -> None:
    old = old_tokens[1]
    async with moving[0].client("alice") as alice, moving[1].client("bob") as bob:
        new = await alice.create(renewers=["User:bob"])
        described = {each.token_id: each for each in await bob.describe(["User:alice"])}
        assert {old.token_id, new.token_id} <= described.keys()
        assert described[old.token_id].hmac == old.hmac
        assert described[new.token_id].renewers == ("User:bob",)
        for made in (old, new):
            assert await bob.renew(made.hmac, 3_600_000) == pytest.approx(time.time() * 1000 + 3_600_000, abs=60_000)
        assert await bob.renew(old.hmac, 10 * LIFETIME_MS) == old.max_timestamp_ms, "at most, and as before"
        for made in (old, new):
            await alice.expire(made.hmac)
        left = {each.token_id for each in await bob.describe(["User:alice"])}
    assert not {old.token_id, new.token_id} & left


@pytest.mark.parametrize("kind", ["old", "new"])
def test_a_revocation_closes_connections_on_all_workers_of_both_nodes_within_a_second(
    moving: Nodes, old_tokens: list[DelegationToken], kind: str
) -> None:
    made = old_tokens[2] if kind == "old" else moving[0].make_token("alice")
    with forwarding_everywhere(moving, made) as open_ones:
        begun = asyncio.run(expire(moving[0].client("alice"), made))
        assert all(connection.closed() for connection in open_ones)
        assert time.monotonic() - begun < on_this_machine(WITHIN_S)
    for each in moving:
        with pytest.raises(LoginRefused):
            each.connect_by_token(made)


def test_the_command_lists_what_remains_in_zookeeper(moving: Nodes, old_tokens: list[DelegationToken]) -> None:
    command = ["upstream", "remaining", "--config", str(moving[0].configuration), "--output", "json"]
    moving[0].make_token("bob")
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    left = [each for each in old_tokens if logs_in(moving[0], each)]
    assert found["tokens"] == len(left)
    assert found["max_timestamp"] == max(each.max_timestamp_ms for each in left)
    assert [each["owner"] for each in found["owners"]] == ["User:alice"]


@contextmanager
def killed(zookeeper: EmbeddedZooKeeper) -> Iterator[None]:
    zookeeper.kill()
    try:
        yield
    finally:
        zookeeper.start()


@pytest.mark.parametrize("how", ["killed", pytest.param("hangs", marks=pytest.mark.soak)])
def test_without_zookeeper_the_clusters_tokens_go_on_and_the_old_ones_stop_after_the_bound(
    moving: Nodes, old_tokens: list[DelegationToken], zookeeper: EmbeddedZooKeeper, how: str
) -> None:
    old, new = old_tokens[3], moving[0].make_token("alice")
    with (
        known_to_every_worker(moving, old, new),
        killed(zookeeper) if how == "killed" else hanging(zookeeper.server_pid),
    ):
        begun = time.monotonic()
        assert all(logs_in(node, old) for node in moving), "within the bound"
        while logs_in(moving[0], old) or logs_in(moving[1], old):
            assert all(logs_in(node, new) for node in moving)
            assert time.monotonic() - begun < on_this_machine(STALENESS_MS / 1000 + 2)
        assert time.monotonic() - begun > STALENESS_MS / 2000
        for node in moving:
            assert refuses(node, old)
        later = [node.make_token("alice") for node in moving]
        for node in moving:
            assert all(logs_in(node, made) for made in (new, *later))
        asyncio.run(expire(moving[0].client("alice"), later[0]))
        for node in moving:
            eventually(lambda node=node: not logs_in(node, later[0]), WITHIN_S)  # type: ignore[misc]
            assert logs_in(node, later[1])
    for node in moving:
        eventually(lambda node=node: logs_in(node, old), BACK_WITHIN_S)  # type: ignore[misc]
        assert not logs_in(node, later[0])


def test_without_the_cluster_old_tokens_go_on_and_the_clusters_stop_after_the_bound(
    moving: Nodes, old_tokens: list[DelegationToken], cluster: KraftCluster
) -> None:
    old, revoked, new = old_tokens[4], old_tokens[5], moving[0].make_token("alice")
    with known_to_every_worker(moving, old, revoked, new), hanging(cluster.brokers[1].process.pid):
        begun = time.monotonic()
        assert all(logs_in(node, new) for node in moving), "within the bound"
        while logs_in(moving[0], new) or logs_in(moving[1], new):
            assert all(logs_in(node, old) for node in moving)
            assert time.monotonic() - begun < on_this_machine(STALENESS_MS / 1000 + 6)
        assert time.monotonic() - begun > STALENESS_MS / 2000
        asyncio.run(renew(moving[0], old))
        asyncio.run(expire(moving[0].client("alice"), revoked))
        for node in moving:
            assert logs_in(node, old)
            eventually(lambda node=node: not logs_in(node, revoked), WITHIN_S)  # type: ignore[misc]
        with pytest.raises(TokenClientError):
            moving[0].make_token("alice")
    for node in moving:
        eventually(lambda node=node: logs_in(node, new), BACK_WITHIN_S)  # type: ignore[misc]
        assert not logs_in(node, revoked)


@pytest.fixture(scope="module")
def ending(
    old_tokens: list[DelegationToken],
    zookeeper: EmbeddedZooKeeper,
    cluster: KraftCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Gateway]:
    """A node that ends the sessions of the tokens whose store is away."""
    assert old_tokens
    settings = both_stores("zookeeper,upstream", zookeeper, cluster) | {"kafka.dt.token.sessions.end.when.stale": True}
    with ExitStack() as stack:
        node = started(stack, cluster, tmp_path_factory, "ending", **settings)
        yield node
    node.check_log()


@pytest.mark.parametrize("away", ["zookeeper", "cluster"])
def test_the_sessions_of_tokens_whose_store_is_away_end_and_no_others(
    ending: Gateway, old_tokens: list[DelegationToken], zookeeper: EmbeddedZooKeeper, cluster: KraftCluster, away: str
) -> None:
    old, new = old_tokens[4], ending.make_token("alice")
    hung = zookeeper.server_pid if away == "zookeeper" else cluster.brokers[1].process.pid
    with (
        forwarding_everywhere([ending], old) as of_old,
        forwarding_everywhere([ending], new) as of_new,
        ending.connect(user="alice") as by_password,
        hanging(hung),
    ):
        going, staying = (of_old, of_new) if away == "zookeeper" else (of_new, of_old)
        deadline = time.monotonic() + on_this_machine(STALENESS_MS / 1000 + 1)
        assert all(each.closed(max(0.1, deadline - time.monotonic())) for each in going)
        assert not any(each.closed(2 / len(staying)) for each in [*staying, by_password])
    eventually(lambda: logs_in(ending, old) and logs_in(ending, new) and makes_tokens(ending), BACK_WITHIN_S)


def makes_tokens(node: Gateway) -> bool:
    """Whether a node can make a token again: what keeps them may take longer than the logins."""
    try:
        node.make_token("alice")
    except RequestRefused:
        return False
    return True


def refuses(node: Gateway, made: DelegationToken) -> bool:
    """Whether a node refuses to renew a token for now."""
    try:
        asyncio.run(renew(node, made))
    except RequestRefused:
        return True
    return False


async def renew(node: Gateway, made: DelegationToken) -> None:
    async with node.client("alice") as alice:
        await alice.renew(made.hmac, 3_600_000)
