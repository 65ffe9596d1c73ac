"""What two nodes do when the cluster whose tokens they serve is hurt, or was never fit to be a store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kafka_dt import client
from kafka_dt.client import DelegationToken, StorageNotReached
from tests.interop.kraft.conftest import started
from tests.support.brokers.broker import USERS
from tests.support.brokers.kraft import CONTROLLER_ID, GATEWAY, GATEWAY_PASSWORD, KraftCluster, Node
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.java.properties import ClientConfig, plain, scram
from tests.support.nodes.gateway import IDENTITY, UPSTREAM, Gateway
from tests.support.nodes.node import ADMIN
from tests.support.processes.process import ProcessFailed, hanging
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import ConnectionClosed, LoginRefused

STALENESS_MS = 4_000
REVOKED_WITHIN_S = 25
"""Sooner than a request of the gateway's would end, however busy the machine is: that is 30 seconds."""
MECHANISMS = "sasl.enabled.mechanisms"

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def large_cluster(
    java: Java, kraft_classpath: Classpath, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KraftCluster]:
    """Two brokers and a controller."""
    folder = tmp_path_factory.mktemp("kraft-faults")
    with KraftCluster(folder, java=java, classpath=kraft_classpath, separate_controller=True) as running:
        yield running


@pytest.fixture(scope="module")
def node(large_cluster: KraftCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A node that refuses tokens soon when it is cut off."""
    with ExitStack() as stack:
        settings = {"kafka.dt.upstream.max.staleness.ms": STALENESS_MS, "kafka.dt.workers": 1}
        made = started(stack, large_cluster, tmp_path_factory, "impatient", **settings)
        yield made
    made.check_log()


def logs_in(node: Gateway, made: object) -> bool:
    try:
        node.connect_by_token(made).close()  # type: ignore[arg-type]
    except (LoginRefused, ConnectionClosed, OSError):
        return False
    return True


def test_brokers_that_are_cut_off_from_their_controllers_let_no_token_log_in_beyond_the_bound(
    large_cluster: KraftCluster, node: Gateway
) -> None:
    made = node.make_token("alice")
    assert logs_in(node, made)
    controller = large_cluster._node_of(CONTROLLER_ID)
    with hanging(controller.process.pid):
        assert logs_in(node, made)
        # A login waits for news before it is refused.
        eventually(lambda: not logs_in(node, made), STALENESS_MS / 1000 + 2)
    eventually(lambda: logs_in(node, made), 30)


def creates(node: Gateway) -> bool:
    """Whether a token can be created, which logs in then; a node that looks for another broker refuses changes."""
    try:
        made = node.make_token("bob")
    except StorageNotReached:
        return False
    return logs_in(node, made)


def test_logins_go_on_when_a_broker_is_killed_and_changes_after_a_moment(
    large_cluster: KraftCluster, node: Gateway
) -> None:
    made = node.make_token("alice")
    for broker in large_cluster.brokers.values():
        broker.kill()
        for _ in range(3):
            eventually(lambda: logs_in(node, made), 10)
        eventually(lambda: creates(node), 20)
        broker.start()


async def revoke(node: Gateway, made: DelegationToken) -> bool:
    """Have an operator revoke a token, which the gateway does for it; a node that looks for a broker refuses that."""
    try:
        async with node.client(ADMIN, request_timeout_ms=REVOKED_WITHIN_S * 1000) as operator:
            await operator.expire(made.hmac)
    except StorageNotReached:
        return False
    return True


def test_a_broker_that_hangs_keeps_no_token_from_being_revoked(large_cluster: KraftCluster, node: Gateway) -> None:
    for broker in large_cluster.brokers.values():
        made = node.make_token("alice")
        assert logs_in(node, made)
        with hanging(broker.process.pid):
            eventually(lambda: asyncio.run(revoke(node, made)), REVOKED_WITHIN_S)  # noqa: B023
            assert not logs_in(node, made)


def test_an_owner_whose_own_connection_leads_to_a_broker_that_hangs_revokes_its_token(
    large_cluster: KraftCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def revoke_while_it_hangs(node: Gateway, broker: Node) -> DelegationToken:
        at_the_broker = client.ClientConfig(
            bootstrap_servers=client.parse_addresses(node.address_of_broker(broker.node_id)),
            security_protocol=client.SecurityProtocol.SASL_PLAINTEXT,
            credentials=client.Credentials("PLAIN", "alice", USERS["alice"]),
            request_timeout_ms=REVOKED_WITHIN_S * 1000,
        )
        async with client.TokenClient(at_the_broker) as alice:
            made = await alice.create()
            assert made.requester == "User:alice", "it was created over the client's own connection"
            await asyncio.to_thread(eventually, lambda: logs_in(node, made), REVOKED_WITHIN_S)
            with hanging(broker.process.pid):
                await alice.expire(made.hmac)
                assert not await asyncio.to_thread(logs_in, node, made)
        return made

    relaying = {
        IDENTITY: "relay",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": None,
        "kafka.dt.workers": 1,
    }
    with ExitStack() as stack:
        node = started(stack, large_cluster, tmp_path_factory, "relaying", **relaying)
        for broker in large_cluster.brokers.values():
            made = asyncio.run(revoke_while_it_hangs(node, broker))
            assert f"{made.token_id} may not have been deleted" in node.log()


IN_PLAIN = plain(GATEWAY, GATEWAY_PASSWORD)
IN_SCRAM = scram(GATEWAY, GATEWAY_PASSWORD, "SCRAM-SHA-512")


@pytest.mark.parametrize(
    ("key", "value", "login", "words"),
    [
        (
            "delegation.token.secret.key",
            "",
            IN_SCRAM,
            "delegation tokens are switched off at 127.0.0.1:.*: set the same delegation.token.secret.key on all",
        ),
        ("authorizer.class.name", "", IN_SCRAM, "every user can read the secrets of all tokens: set authorizer"),
        (MECHANISMS, "PLAIN", IN_PLAIN, f"does not take SCRAM-SHA-256, .* log in: add it to {MECHANISMS}"),
        (MECHANISMS, "PLAIN", IN_SCRAM, "does not take SCRAM-SHA-512; set sasl.mechanism to one of its own: PLAIN"),
    ],
)
def test_an_unfit_cluster_is_told_at_the_start(
    java: Java,
    kraft_classpath: Classpath,
    tmp_path_factory: pytest.TempPathFactory,
    *,
    key: str,
    value: str,
    login: ClientConfig,
    words: str,
) -> None:
    folder = tmp_path_factory.mktemp("kraft-unfit")
    own_login = {f"{UPSTREAM}.{each}": login[each] for each in ("sasl.mechanism", "sasl.jaas.config")}
    with (
        KraftCluster(folder, java=java, classpath=kraft_classpath, brokers=1, overrides={key: value}) as cluster,
        ExitStack() as stack,
        pytest.raises(ProcessFailed, match=words),
    ):
        started(stack, cluster, tmp_path_factory, "unfit", **own_login)
