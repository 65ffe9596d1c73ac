"""Two nodes that serve the tokens of a real cluster without ZooKeeper: the same token everywhere, for every client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

import aiokafka
import kafka
import pytest
from click.testing import CliRunner

from kafka_dt.cli import main
from kafka_dt.client import (
    DelegationToken,
    RequestRefused,
    TokenAuthorizationFailed,
    TokenClient,
    TokenOwnerMismatch,
)
from kafka_dt.identity.acls.binding import CLUSTER_NAME, AclOperation, ResourceType
from tests.interop.kraft.conftest import TOPIC, at_brokers, forwarding_everywhere, started
from tests.support.brokers.broker import USERS
from tests.support.brokers.kraft import GATEWAY, KraftCluster
from tests.support.identity.acl_client import Acl, create_acls
from tests.support.java.properties import SCRAM_MECHANISMS, TokenLogin, plain, token
from tests.support.java.reference_client import ReferenceClient
from tests.support.nodes.gateway import UPSTREAM, Gateway
from tests.support.processes.process import ProcessFailed
from tests.support.processes.waiting import POLL_S, eventually, on_this_machine
from tests.support.protocol.raw import METADATA, LoginRefused, RawConnection

SECOND, HOUR, DAY = 1_000, 3_600_000, 86_400_000
WITHIN_S = 1.0
KNOWN_WITHIN_S = 5.0
"""Within this time a broker takes a token that was made a moment ago."""
SETTLED_S = 20.0
"""Within this time the controller decides on what a change has made: it reads its own log with some delay."""
COUNT = 20

Nodes = tuple[Gateway, Gateway]
T = TypeVar("T")


async def produce(node: Gateway, made: DelegationToken, topic: str = TOPIC) -> None:
    async with aiokafka.AIOKafkaProducer(**node.settings(made, "aiokafka"), request_timeout_ms=15_000) as producer:
        for number in range(COUNT):
            await producer.send_and_wait(topic, str(number).encode())


def takes(address: str, node: Gateway, made: DelegationToken) -> bool:
    """Whether a node or a broker lets a token log in."""
    try:
        node.connect_by_token(made, to=address).close()
    except LoginRefused:
        return False
    return True


def test_a_token_of_a_node_logs_in_at_a_broker_with_a_java_client(
    nodes: Nodes, cluster: KraftCluster, java_4x: ReferenceClient
) -> None:
    node, _ = nodes
    made = node.make_token("alice")
    eventually(lambda: takes(cluster.sasl, node, made), KNOWN_WITHIN_S)
    for mechanism in SCRAM_MECHANISMS:
        with java_4x.open(cluster.sasl, token(TokenLogin(made.token_id, made.hmac_base64), mechanism)) as holder:
            assert TOPIC in holder.topics()
            assert holder.produce(TOPIC, "by a token of a node") >= 0


def test_a_java_client_manages_tokens_at_a_node(nodes: Nodes, java_4x: ReferenceClient) -> None:
    with java_4x.open(nodes[0].sasl, plain("alice", USERS["alice"])) as alice:
        made = alice.create(renewers=["User:bob"], max_lifetime_ms=2 * DAY)
        assert made.renewers == ("User:bob",)
        with java_4x.open(nodes[1].sasl, plain("bob", USERS["bob"])) as bob:
            assert made in bob.describe(["User:alice"])
            assert bob.renew(made.hmac, HOUR) == pytest.approx(time.time() * 1000 + HOUR, abs=60 * SECOND)
        with java_4x.open(nodes[1].sasl, token(made.login)) as holder:
            assert TOPIC in holder.topics()
        alice.expire(made.hmac)
        assert made.token_id not in {each.token_id for each in alice.describe()}


async def test_a_token_of_a_broker_logs_in_at_every_node_with_clients_that_send_no_tokenauth(
    nodes: Nodes, cluster: KraftCluster
) -> None:
    async with at_brokers(cluster, "alice") as alice:
        made = await alice.create()
    node, other = nodes
    await produce(node, made)
    await asyncio.to_thread(_produce_with_kafka_python, other, made)


def _produce_with_kafka_python(node: Gateway, made: DelegationToken) -> None:
    producer = kafka.KafkaProducer(**node.settings(made, "kafka-python"))
    assert producer.send(TOPIC, b"by a token of a broker").get(on_this_machine(KNOWN_WITHIN_S)).partition == 0
    producer.close()


async def test_a_client_acts_upstream_with_its_own_token_and_for_its_owner(nodes: Nodes, cluster: KraftCluster) -> None:
    async with at_brokers(cluster, GATEWAY) as gateway:
        before = marked(await gateway.describe(["User:alice"]))
    async with nodes[0].client("alice") as alice:
        made = await alice.create(renewers=["User:bob"])
        (shown,) = [each for each in await alice.describe() if each.token_id == made.token_id]
    assert shown.renewers == made.renewers == ("User:bob",)
    await produce(nodes[1], made)
    with pytest.raises(aiokafka.errors.TopicAuthorizationFailedError):
        await produce(nodes[0], made, "bob-records")
    async with at_brokers(cluster, GATEWAY) as gateway:
        tokens = await tokens_with(made, gateway)
    (kept,) = [each for each in tokens if each.token_id == made.token_id]
    assert kept.renewers == ("User:bob", f"User:{GATEWAY}")
    assert kept.requester == f"User:{GATEWAY}"
    assert marked(tokens) == before, "it needs no token of the gateway's own"


async def tokens_with(made: DelegationToken, client: TokenClient) -> list[DelegationToken]:
    """Ask a broker for the tokens of an owner until it knows one that was made a moment ago: brokers follow the log."""
    async with asyncio.timeout(on_this_machine(KNOWN_WITHIN_S)):
        while True:
            tokens = [each for each in await client.describe([made.owner]) if each.owner == made.owner]
            if made.token_id in {each.token_id for each in tokens}:
                return tokens
            await asyncio.sleep(POLL_S)


def marked(tokens: list[DelegationToken]) -> set[str]:
    """The ids of the tokens that the gateway has made for itself."""
    return {each.token_id for each in tokens if each.renewers.count(f"User:{GATEWAY}") == 2}


async def test_a_client_without_a_token_acts_upstream_with_one_that_the_gateway_knows_for_its_own(
    nodes: Nodes, cluster: KraftCluster
) -> None:
    node, _ = nodes
    async with node.client("bob") as bob:
        made = await bob.create()
    login = {
        "bootstrap_servers": node.sasl,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "bob",
        "sasl_plain_password": USERS["bob"],
    }
    async with aiokafka.AIOKafkaProducer(**login) as producer:
        await producer.send_and_wait("bob-records", b"by PLAIN")
    async with at_brokers(cluster, GATEWAY) as gateway:
        tokens = await tokens_with(made, gateway)
    assert 1 <= len(marked(tokens)) <= len(node.workers())
    assert len(tokens) > len(marked(tokens))


@pytest.mark.parametrize("where", ["node", "relaying node", "broker"])
def test_a_revocation_closes_connections_on_all_workers_of_all_nodes_within_a_second(
    nodes: Nodes, cluster: KraftCluster, where: str
) -> None:
    node, other = nodes
    made = node.make_token("alice")
    with forwarding_everywhere(nodes, made) as open_ones:
        clients: dict[str, Callable[[str], TokenClient]] = {
            "node": node.client,
            "relaying node": other.client,
            "broker": partial(at_brokers, cluster),
        }
        begun = asyncio.run(expire(clients[where]("alice"), made))
        assert all(connection.closed() for connection in open_ones)
        assert time.monotonic() - begun < on_this_machine(WITHIN_S)
    for each in (node, other):
        with pytest.raises(LoginRefused):
            each.connect_by_token(made)


async def expire(client: TokenClient, made: DelegationToken) -> float:
    """Revoke a token; returns when that was acknowledged."""
    async with client:
        await client.expire(made.hmac)
    return time.monotonic()


async def when_not(code: int, ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until the answer is another one than an error, which it is while the cluster decides on what was before."""
    async with asyncio.timeout(on_this_machine(SETTLED_S)):
        while True:
            try:
                return await ask()
            except RequestRefused as refusal:
                assert refusal.code.value == code  # noqa: PT017 - another one is a failure at once
            await asyncio.sleep(POLL_S)


async def refused(request: Awaitable[object]) -> int:
    with pytest.raises(RequestRefused) as error:
        await request
    code: int = error.value.code.value
    return code


async def test_a_token_of_a_broker_is_renewed_at_a_node_if_it_names_the_gateway_as_a_renewer(
    nodes: Nodes, cluster: KraftCluster
) -> None:
    async with at_brokers(cluster, "alice") as alice:
        alone, shared = await alice.create(), await alice.create(renewers=[f"User:{GATEWAY}"])
    node, _ = nodes
    async with node.client("alice") as alice:
        with pytest.raises(TokenOwnerMismatch):
            await alice.renew(alone.hmac)
        await alice.renew(shared.hmac, HOUR)
        await alice.expire(shared.hmac)
    assert f"no renewer of delegation token {alone.token_id}" in node.log()


async def test_a_client_whose_login_is_relayed_asks_for_tokens_with_its_own_rights(
    nodes: Nodes, cluster: KraftCluster
) -> None:
    _, relaying = nodes
    await asyncio.to_thread(allow_tokens_for, cluster, "User:alice", "User:carol")
    async with at_brokers(cluster, "alice") as alice:
        alone = await alice.create()
    async with relaying.client("alice") as alice, relaying.client("bob") as bob:
        made = await alice.create(renewers=["User:bob"])
        assert (made.requester, made.renewers) == ("User:alice", ("User:bob",))
        await bob.renew(made.hmac, HOUR)
        await alice.renew(alone.hmac, HOUR)
        assert await refused(bob.expire(alone.hmac)) == 63
        assert await refused(alice.create(owner="User:dave")) == 65
        carols = await when_not(65, lambda: alice.create(owner="User:carol"))
        assert (carols.owner, carols.requester) == ("User:carol", "User:alice")
        for each in (made, alone):
            await alice.expire(each.hmac)
    left = {made.token_id: made}
    async with at_brokers(cluster, GATEWAY) as gateway, asyncio.timeout(on_this_machine(KNOWN_WITHIN_S)):
        while {made.token_id, alone.token_id} & left.keys():
            left = {each.token_id: each for each in await gateway.describe()}
    assert left[carols.token_id].renewers == (f"User:{GATEWAY}",)


def allow_tokens_for(cluster: KraftCluster, principal: str, owner: str) -> None:
    """Let a principal create tokens for an owner."""
    with RawConnection(cluster.plaintext) as connection:
        assert create_acls(connection, Acl(principal, AclOperation.CREATE_TOKENS, ResourceType.USER, owner)) == [0]


def test_a_super_user_of_a_node_revokes_what_others_created(nodes: Nodes) -> None:
    made = nodes[0].make_token("alice")
    asyncio.run(expire(nodes[0].client("admin"), made))
    for node in nodes:
        eventually(lambda node=node: not takes(node.sasl, node, made), WITHIN_S)  # type: ignore[misc]


def test_a_token_logs_in_at_the_other_node_the_moment_its_create_has_answered(nodes: Nodes) -> None:
    node, other = nodes
    for _ in range(5):
        other.connect_by_token(node.make_token("alice")).close()


def test_a_gateway_with_narrow_rights_serves_the_tokens_that_nodes_create(
    cluster: KraftCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Without DescribeTokens it sees those that it may renew, and with CreateTokens on alice it creates hers alone."""
    admin = "User:admin"
    allow_tokens_for(cluster, admin, "User:alice")
    with RawConnection(cluster.plaintext) as connection:
        describe = Acl(admin, AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        assert create_acls(connection, describe) == [0]
    login = plain("admin", USERS["admin"])
    own_login = {f"{UPSTREAM}.{key}": login[key] for key in ("sasl.mechanism", "sasl.jaas.config")}
    with ExitStack() as stack:
        node = started(stack, cluster, tmp_path_factory, "narrow", **own_login)
        made = node.make_token("alice")
        with node.on_every_worker(lambda: node.connect_by_token(made)) as connections:
            for connection in connections.values():
                connection.ask(METADATA, 1, topics=())
        with pytest.raises(TokenAuthorizationFailed):
            node.make_token("bob")
        assert "may not create tokens for every user" in node.log()
    node.check_log()


def test_a_node_with_too_few_rights_says_at_its_start_what_allows_it(
    cluster: KraftCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    login = plain("carol", USERS["carol"])
    own_login = {f"{UPSTREAM}.{key}": login[key] for key in ("sasl.mechanism", "sasl.jaas.config")}
    words = "User:carol may not describe the cluster: .* --allow-principal User:carol --operation Describe --cluster"
    with ExitStack() as stack, pytest.raises(ProcessFailed, match=words):
        started(stack, cluster, tmp_path_factory, "too-few", **own_login)


def test_a_fit_cluster_passes_the_check_and_a_user_with_too_few_rights_does_not(nodes: Nodes) -> None:
    check = ["upstream", "check", "--config", str(nodes[0].configuration)]
    done = CliRunner().invoke(main, check)
    assert done.exit_code == 0, done.output
    assert [line.split()[0] for line in done.output.splitlines()] == ["ok"] * 10

    as_carol = plain("carol", USERS["carol"])
    for key in ("sasl.mechanism", "sasl.jaas.config"):
        check += ["--override", f"{UPSTREAM}.{key}={as_carol[key]}"]
    done = CliRunner().invoke(main, check)
    assert done.exit_code == 1
    assert "User:carol may not describe the cluster" in done.output
    assert "--allow-principal User:carol --operation Describe --cluster" in done.output
    assert "User:carol may not create tokens for every user" in done.output
