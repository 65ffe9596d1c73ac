"""What makes a cluster unfit, what the operator is told, and what is only worth a warning."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable, Sequence
from enum import IntEnum
from itertools import count

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import ClientConfig
from kafka_dt.jaas import PLAIN_LOGIN_MODULE
from kafka_dt.kraft import cluster as kafka_cluster
from kafka_dt.kraft import fitness
from kafka_dt.kraft.cluster import KafkaCluster
from kafka_dt.kraft.finding import Finding
from kafka_dt.kraft.fitness import METADATA_VERSION, examine
from kafka_dt.kraft.session import session
from kafka_dt.stores import ClusterUnavailable
from kafka_dt.upstream import UpstreamClient
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.api.registry import AskedApi
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.protocol.scripted_server import ScriptedServer
from tests.support.tokens.scripted_cluster import CLUSTER_ID, GATEWAY, ScriptedCluster


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    async with ScriptedCluster.fit("gateway", "secret").running() as running:
        yield running


def properties(cluster: ScriptedCluster) -> dict[str, str]:
    return {
        "bootstrap.servers": cluster.server.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN_LOGIN_MODULE} required username="gateway" password="secret";',
    }


def config(cluster: ScriptedCluster) -> ClientConfig:
    return ClientConfig.from_properties(properties(cluster))


async def unfit(cluster: ScriptedCluster) -> Sequence[Finding]:
    asking = session(config(cluster))
    try:
        return [
            each
            for each in await examine(await asking.ready(), config(cluster), GATEWAY, ScramMechanism.SHA_512)
            if not each.fit
        ]
    finally:
        await asking.close()


async def test_a_cluster_can_be_fit(cluster: ScriptedCluster) -> None:
    assert await unfit(cluster) == []


@pytest.mark.parametrize(
    ("spoil", "problem", "remedy"),
    [
        (
            lambda cluster: setattr(cluster, "metadata_version", None),
            "no metadata log",
            "kafka.dt.token.store=zookeeper",
        ),
        (
            lambda cluster: setattr(cluster, "metadata_version", METADATA_VERSION - 1),
            "the metadata.version 13 of the cluster has no delegation tokens",
            "kafka-features.sh",
        ),
        (
            lambda cluster: setattr(cluster, "describe_error", ErrorCode.delegation_token_auth_disabled),
            "delegation tokens are switched off",
            "set the same delegation.token.secret.key on all brokers and controllers",
        ),
        (
            lambda cluster: setattr(cluster, "describe_error", ErrorCode.delegation_token_request_not_allowed),
            "may not ask for tokens",
            "log in as a user",
        ),
        (
            lambda cluster: setattr(cluster, "describe_error", ErrorCode.unknown_server_error),
            r"error -1 \(unknown_server_error\)",
            "see the log of the broker",
        ),
        (
            lambda cluster: setattr(cluster, "acl_error", ErrorCode.security_disabled),
            "every user can read the secrets of all tokens",
            "StandardAuthorizer",
        ),
        (
            lambda cluster: setattr(cluster, "acl_error", ErrorCode.cluster_authorization_failed),
            "User:gateway may not describe the cluster",
            "--allow-principal User:gateway --operation Describe --cluster",
        ),
        (
            lambda cluster: setattr(cluster.server, "mechanisms", ("PLAIN",)),
            "does not take SCRAM-SHA-512, with which clients' tokens log in",
            "sasl.enabled.mechanisms",
        ),
        (
            lambda cluster: setattr(cluster, "quorum_error", ErrorCode.cluster_authorization_failed),
            "User:gateway may not describe the cluster",
            "--operation Describe --cluster",
        ),
    ],
)
async def test_an_unfit_cluster_is_told_with_its_remedy_and_no_node_starts(
    cluster: ScriptedCluster,
    spoil: Callable[[ScriptedCluster], object],
    problem: str,
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fitness, "LOOK_S", 0.001)
    spoil(cluster)
    (finding,) = await unfit(cluster)
    assert finding.needed
    with pytest.raises(ClusterUnavailable, match=problem):
        await in_cluster(cluster).start()
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("spoil", "mend", "problem", "remedy"),
    [
        (
            lambda cluster: cluster.offsets.extend([7] * 1_000_000),
            lambda cluster: cluster.offsets.clear(),
            "hears of no new records",
            "metadata.max.idle.interval.ms",
        ),
        (
            lambda cluster: setattr(cluster, "quorum_error", ErrorCode.not_leader_or_follower),
            lambda cluster: setattr(cluster, "quorum_error", ErrorCode.none),
            r"error 6 \(not_leader_or_follower\)",
            "try again in some seconds",
        ),
    ],
    ids=["a broker that is cut off from the controllers", "an election of the controllers"],
)
async def test_a_node_waits_while_what_makes_a_cluster_unfit_may_pass(
    cluster: ScriptedCluster,
    *,
    spoil: Callable[[ScriptedCluster], object],
    mend: Callable[[ScriptedCluster], object],
    problem: str,
    remedy: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fitness, "LOOK_S", 0.001)
    spoil(cluster)
    (finding,) = await unfit(cluster)
    assert finding.needed
    assert remedy in finding.remedy
    before = cluster.server.connections
    node = in_cluster(cluster)
    starting = asyncio.create_task(node.start())
    while cluster.server.connections < before + 4:  # noqa: ASYNC110 - a condition about a server has no event
        await asyncio.sleep(0.005)
    assert not starting.done()
    mend(cluster)
    await starting
    assert await node.cluster_id() == CLUSTER_ID
    assert len(re.findall(f"waits for the upstream cluster.*{problem}", caplog.text)) == 1


@pytest.mark.parametrize(
    ("ahead_ms", "problem"),
    [
        (60_000, "the clock of this machine is 60 s behind the controller's"),
        (-60_000, "the clock of this machine is 60 s ahead of the controller's"),
        (None, "the controllers do not tell their time"),
    ],
)
async def test_another_clock_than_the_controllers_is_a_warning(
    cluster: ScriptedCluster, ahead_ms: int | None, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.clock_is_ahead_ms = ahead_ms
    (finding,) = await unfit(cluster)
    assert (finding.point, finding.needed) == ("clock", False)
    await in_cluster(cluster).start()
    assert problem in caplog.text


@pytest.mark.parametrize("ahead_ms", [-4_000, 4_000])
async def test_clocks_may_differ_by_some_seconds(cluster: ScriptedCluster, ahead_ms: int) -> None:
    cluster.clock_is_ahead_ms = ahead_ms
    assert await unfit(cluster) == []


async def test_a_gateway_that_may_make_tokens_for_some_users_only_starts_with_a_warning(
    cluster: ScriptedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.create_error = ErrorCode.delegation_token_authorization_failed
    (finding,) = await unfit(cluster)
    assert not finding.needed
    node = in_cluster(cluster)
    await node.start()
    assert "may not create tokens for every user" in caplog.text
    assert await node.cluster_id() == CLUSTER_ID


async def test_a_gateway_that_makes_no_tokens_for_clients_needs_no_right_to(
    cluster: ScriptedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.create_error = ErrorCode.delegation_token_authorization_failed
    await in_cluster(cluster, creates=False).start()
    assert "may not create tokens" not in caplog.text
    assert ApiKey.CREATE_DELEGATION_TOKEN not in cluster.asked


def in_cluster(cluster: ScriptedCluster, secret: str = "of the node", *, creates: bool = True) -> KafkaCluster:
    upstream = UpstreamClient(properties(cluster))
    return KafkaCluster(upstream, GATEWAY, ScramMechanism.SHA_512, secret, creates=creates, retry_s=0.01)


async def test_a_node_waits_for_a_cluster_that_is_away(
    cluster: ScriptedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.server.greeting = b"no kafka"
    node = in_cluster(cluster)

    async def come_back() -> None:
        while cluster.server.connections < 3:  # noqa: ASYNC110 - a condition about a server has no event
            await asyncio.sleep(0.005)
        cluster.server.greeting = None
        cluster.server.drop_connections()

    await asyncio.gather(node.start(), come_back())
    assert caplog.text.count("waits for the upstream cluster") == 1
    await node.close()


async def start_beside(hanging: ScriptedServer, api: IntEnum, cluster: ScriptedCluster) -> None:
    """Start a node of two bootstrap servers, of which the first one leaves an API without an answer."""
    over = asyncio.Event()

    async def hang(*_: object) -> None:
        await over.wait()

    hanging.scripts[api] = hang
    servers = {"bootstrap.servers": f"{hanging.address},{cluster.server.address}"}
    upstream = UpstreamClient(properties(cluster) | servers | {"request.timeout.ms": "600000"})
    starting = KafkaCluster(upstream, GATEWAY, ScramMechanism.SHA_512, "of the node", retry_s=0.01)
    try:
        await asyncio.wait_for(starting.start(), 60)
    finally:
        over.set()


async def test_a_broker_that_hangs_does_not_hold_up_the_start(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_cluster, "PATIENCE_MS", 500)
    monkeypatch.setattr(random, "sample", lambda servers, _: servers)
    async with ScriptedServer().running() as hanging:
        await start_beside(hanging, ApiKey.API_VERSIONS, cluster)
        assert hanging.connections


async def test_a_broker_that_is_cut_off_from_the_controllers_does_not_hold_up_the_start(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers what it knows itself, and leaves the question about the metadata log without an answer."""
    monkeypatch.setattr(kafka_cluster, "START_PATIENCE_MS", 500)
    looks = count()
    monkeypatch.setattr(random, "sample", lambda servers, _: servers[::-1] if next(looks) else servers)
    async with ScriptedCluster.fit("gateway", "secret").running() as cut_off:
        await start_beside(cut_off.server, AskedApi.DESCRIBE_QUORUM, cluster)
        assert AskedApi.DESCRIBE_QUORUM in cut_off.asked


async def test_the_workers_of_a_node_have_a_secret_of_salts_in_common_and_other_nodes_another(
    cluster: ScriptedCluster,
) -> None:
    first, same, other = (in_cluster(cluster, secret) for secret in ("one", "one", "two"))
    assert await first.salt_secret() == await same.salt_secret() != await other.salt_secret()
    assert await first.brokers() == ()
    assert not first.must_restart.is_set()
