"""A revocation at one node reaches the other within a second, though the other's broker cannot hear of it.

The broker is parted from the controllers, and reads no more of their log. It leads the topic of revocations until the
controllers give that to the other broker, which the parted one does not hear of either.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import aiokafka
import pytest
from click.testing import CliRunner

from kafka_dt.cli import main
from kafka_dt.client import DelegationToken
from kafka_dt.identity.acls.binding import CLUSTER_NAME, AclOperation, ResourceType
from kafka_dt.kraft.news.message import Revocation
from tests.interop.kraft.conftest import at_brokers, started
from tests.interop.kraft.test_kraft_nodes import Nodes, expire
from tests.support.brokers.broker import USERS
from tests.support.brokers.controller_links import ControllerLinks
from tests.support.brokers.kraft import GATEWAY, GATEWAY_PASSWORD, KraftCluster
from tests.support.brokers.kraft_operator import Operator, describe_topic
from tests.support.identity.acl_client import Acl, create_acls
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.java.properties import plain, write_properties
from tests.support.nodes.gateway import UPSTREAM, Gateway
from tests.support.processes.waiting import eventually, on_this_machine
from tests.support.protocol.raw import METADATA, ConnectionClosed, LoginRefused, RawConnection

TOPIC = "__kafka_dt_revocations"
WITHIN_S = 1.0
DEPOSED_WITHIN_S = 20.0
KNOWN_WITHIN_S = 10.0
STALENESS_MS = 4_000


@dataclass(frozen=True, slots=True)
class Parted:
    """Two brokers, the first one with the controller, and a node at each."""

    cluster: KraftCluster
    links: ControllerLinks
    node: Gateway
    other: Gateway


@pytest.fixture
def parted(java: Java, kraft_classpath: Classpath, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parted]:
    links = ControllerLinks()
    folder = tmp_path_factory.mktemp("kraft-news")
    with KraftCluster(folder, java=java, classpath=kraft_classpath, links=links) as cluster, ExitStack() as stack:
        Operator(cluster).make_topic(TOPIC, 2, replicas=2)
        node, other = (
            started(
                stack,
                cluster,
                tmp_path_factory,
                f"at-{number}",
                **{
                    f"{UPSTREAM}.bootstrap.servers": broker.sasl,
                    "kafka.dt.workers": 1,
                    "kafka.dt.upstream.max.staleness.ms": STALENESS_MS,
                },
            )
            for number, broker in cluster.brokers.items()
        )
        yield Parted(cluster, links, node, other)
    for each in (node, other):
        each.check_log()


def logged_in(node: Gateway, made: DelegationToken) -> RawConnection:
    connection = node.connect_by_token(made)
    connection.ask(METADATA, 1, topics=())
    return connection


def accepts(node: Gateway, made: DelegationToken) -> bool:
    try:
        node.connect_by_token(made).close()
    except (LoginRefused, ConnectionClosed, OSError):
        return False
    return True


def knows(cluster: KraftCluster, broker: int, made: DelegationToken) -> bool:
    """Whether a broker has a token."""

    async def described() -> bool:
        async with at_brokers(cluster, "alice", broker) as alice:
            return made.token_id in {each.token_id for each in await alice.describe()}

    return asyncio.run(described())


def leader_of_the_topic(cluster: KraftCluster, broker: int) -> int:
    """Who leads, as a broker knows it."""
    with RawConnection(cluster.brokers[broker].plaintext) as connection:
        (partition,) = describe_topic(connection, TOPIC).partitions
    leader: int = partition.leader_id
    return leader


@pytest.mark.soak
@pytest.mark.parametrize("broker_2", ["leads", "is deposed"])
def test_a_revocation_closes_connections_at_a_node_whose_broker_is_parted_from_its_controllers(
    parted: Parted, broker_2: str
) -> None:
    cluster, node, other = parted.cluster, parted.node, parted.other
    revoked, kept = node.make_token("alice"), node.make_token("alice")
    with logged_in(other, revoked) as ended, logged_in(other, kept) as goes_on:
        parted.links.isolate(2)
        if broker_2 == "is deposed":
            eventually(lambda: leader_of_the_topic(cluster, 1) == 1, DEPOSED_WITHIN_S)
        begun = asyncio.run(expire(node.client("alice"), revoked))
        assert ended.closed()
        assert time.monotonic() - begun < on_this_machine(WITHIN_S)
        assert leader_of_the_topic(cluster, 2) == 2
        assert knows(cluster, 2, revoked), "the broker has not heard of it"
        goes_on.ask(METADATA, 1, topics=())
        assert not accepts(other, revoked)
        parted.links.heal()
    eventually(lambda: not knows(cluster, 2, revoked), DEPOSED_WITHIN_S)
    eventually(lambda: accepts(other, kept), DEPOSED_WITHIN_S)
    assert not accepts(other, revoked)


async def test_a_record_of_a_writer_who_does_not_know_the_token_ends_nothing(
    nodes: Nodes, cluster: KraftCluster
) -> None:
    """Here the writer has even the gateway's rights."""
    node, other = nodes
    made, revoked = [await asyncio.to_thread(node.make_token, "alice") for _ in range(2)]
    connection = await asyncio.to_thread(logged_in, other, made)
    login = {
        "bootstrap_servers": cluster.sasl,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": GATEWAY,
        "sasl_plain_password": GATEWAY_PASSWORD,
    }
    async with (
        aiokafka.AIOKafkaProducer(**login) as producer,
        aiokafka.AIOKafkaConsumer(TOPIC, **login, auto_offset_reset="latest") as consumer,
    ):
        await consumer.seek_to_end()
        for forged in (Revocation.of(made.token_id, b"a guess", None).encode(), b"no message"):
            await producer.send_and_wait(TOPIC, forged)
        await expire(node.client("alice"), revoked)
        async with asyncio.timeout(on_this_machine(KNOWN_WITHIN_S)):
            value = b""
            while revoked.token_id.encode() not in value:
                value = (await consumer.getone()).value
    assert json.loads(value)["end_timestamp"] is None
    assert revoked.hmac_base64 not in value.decode()
    await asyncio.to_thread(eventually, lambda: not accepts(other, revoked), WITHIN_S)
    await asyncio.to_thread(connection.ask, METADATA, 1, topics=())
    connection.close()


def test_an_administrator_makes_the_topic_for_a_gateway_that_may_not(
    cluster: KraftCluster, nodes: Nodes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = "another-topic"
    login = plain("admin", USERS["admin"])
    own = {f"{UPSTREAM}.{key}": login[key] for key in ("sasl.mechanism", "sasl.jaas.config")}
    own["kafka.dt.upstream.news.topic"] = name
    settings = ["--config", str(nodes[0].configuration)]
    settings += [part for key, value in own.items() for part in ("--override", f"{key}={value}")]
    allow(cluster, Acl("User:admin", AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME))
    eventually(lambda: upstream("check", *settings)[0] == 0, KNOWN_WITHIN_S)

    assert f"topic of revocations: User:admin may not use topic {name}" in upstream("check", *settings)[1]
    status, output = upstream("init", *settings)
    assert status == 1
    assert "--allow-principal User:admin --operation Read --operation Write --operation Create" in output
    with ExitStack() as stack:
        node = started(stack, cluster, tmp_path_factory, "without-topic", **own, **{"kafka.dt.workers": 1})
        assert f"User:admin may not use topic {name}" in node.log()
    node.check_log()

    administrator = tmp_path_factory.mktemp("administrator") / "client.properties"
    write_properties(administrator, {"security.protocol": "SASL_PLAINTEXT", **plain(GATEWAY, GATEWAY_PASSWORD)})
    status, output = upstream("init", *settings, "--command-config", str(administrator))
    assert (status, output.splitlines()[0]) == (0, f"Created topic {name}")
    for operation in (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE_CONFIGS):
        allow(cluster, Acl("User:admin", operation, ResourceType.TOPIC, name))
    eventually(lambda: "ok       topic of revocations" in upstream("check", *settings)[1], KNOWN_WITHIN_S)


def upstream(command: str, *arguments: str) -> tuple[int, str]:
    """Run a command; gives its status and all that it prints."""
    done = CliRunner().invoke(main, ["upstream", command, *arguments])
    return done.exit_code, done.output


def allow(cluster: KraftCluster, acl: Acl) -> None:
    with RawConnection(cluster.plaintext) as connection:
        assert create_acls(connection, acl) == [0]
