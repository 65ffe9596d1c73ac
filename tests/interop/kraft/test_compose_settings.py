"""What docker-compose.yml starts with the profile `kraft`, with real brokers and nodes and without containers.

The same secrets, scripts, properties and overrides; only the names of hosts and the paths are those of this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Final

import aiokafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from kafka_dt.client import TokenClient
from tests.interop.gateway.conftest import RELEASE
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.nodes.compose import Composed, kafka_scripts
from tests.support.nodes.metrics import MetricsEndpoint
from tests.support.nodes.server import READY
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import scram_logs_in

START_TIMEOUT_S: Final = 120.0
SCRIPTS: Final = {
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-server-start": "kafka.Kafka",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
}
BROKERS: Final = ("kafka-1", "kafka-2", "kafka-3")
GATEWAYS: Final = {"gateway-1": 29092, "gateway-2": 39092}
"""The nodes, and the port of each that the host's clients use."""
METRICS: Final = 9404
TOPIC: Final = "alice-records"
NEWS: Final = "__kafka_dt_revocations"
WITHIN_S: Final = 1.0
TOLD_WITHIN_S: Final = 10.0

pytestmark = [pytest.mark.soak, pytest.mark.skipif(RELEASE == "3.9", reason="the profile is Kafka 4")]


@pytest.fixture(scope="module")
def composed(java: Java, kraft_classpath: Classpath, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    folder = tmp_path_factory.mktemp("compose")
    scripts = kafka_scripts(folder / "bin", java, kraft_classpath, SCRIPTS)
    services = Composed(folder, [*BROKERS, *GATEWAYS], scripts)
    services.run("kraft-secrets")
    with ExitStack() as stack:
        brokers = [stack.enter_context(services.process(name)) for name in BROKERS]
        for broker in brokers:
            broker.wait_for("Kafka Server started", START_TIMEOUT_S)
        services.run("kraft-rights")
        yield services


@pytest.fixture(scope="module")
def gateways(composed: Composed) -> Iterator[Mapping[str, ChildProcess]]:
    """The nodes, whose user has the rights that docker/kraft/rights.sh has given it, and no others."""
    with ExitStack() as stack:
        started = {name: stack.enter_context(composed.process(name)) for name in GATEWAYS}
        for node in started.values():
            node.wait_for(READY, START_TIMEOUT_S)
        yield started


@pytest.mark.usefixtures("gateways")
async def test_a_token_of_one_node_logs_in_at_the_other_and_at_a_broker_and_writes(composed: Composed) -> None:
    async with TokenClient.from_config(client_at(composed, "admin", "gateway-1")) as admin:
        assert (await admin.describe()) == []
    async with TokenClient.from_config(client_at(composed, "alice", "gateway-1")) as alice:
        made = await alice.create()
    assert made.owner == "User:alice"
    login: dict[str, str] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": made.token_id,
        "sasl_plain_password": made.hmac_base64,
    }
    await make_topic(composed)
    address = composed.address("gateway-2", 39092)
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=address, acks="all", **login) as producer:
        assert (await producer.send_and_wait(TOPIC, b"by a token")).offset >= 0
    at_broker = {
        **client_at(composed, "alice", "gateway-2"),
        "bootstrap.servers": composed.address("kafka-2", 9092),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{made.token_id}" password="{made.hmac_base64}" tokenauth="true";',
    }
    async with TokenClient.from_config(at_broker):
        pass


async def test_with_the_rights_of_the_script_nodes_tell_each_other_of_revocations(
    composed: Composed, gateways: Mapping[str, ChildProcess]
) -> None:
    async with TokenClient.from_config(client_at(composed, "alice", "gateway-1")) as alice:
        made = await alice.create()
        login = composed.address("gateway-2", 39092), made.token_id, made.hmac_base64, "SCRAM-SHA-512"
        assert await asyncio.to_thread(scram_logs_in, *login)
        await alice.expire(made.hmac)
    await asyncio.to_thread(eventually, lambda: not scram_logs_in(*login), WITHIN_S)
    for name, event in (("gateway-1", "told"), ("gateway-1", "heard"), ("gateway-2", "heard")):
        await asyncio.to_thread(eventually, lambda: news(composed, name, event) > 0, TOLD_WITHIN_S)  # noqa: B023
    logs = [node.output() for node in gateways.values()]
    assert [log for log in logs if f"has created topic {NEWS}" in log], "nodes may create their topic"
    # What a node is refused is a line of its log: at the start, and when it uses the topic.
    assert not [log for log in logs if "as the store of tokens" in log or "The worker cannot" in log]


def news(composed: Composed, name: str, event: str) -> float:
    """How many messages about revocations a node has told or heard."""
    host, _, port = composed.address(name, METRICS).rpartition(":")
    return MetricsEndpoint(int(port), host=host).value("kafka_dt_revocation_news_total", event=event) or 0.0


def client_at(composed: Composed, user: str, node: str) -> dict[str, str]:
    """The settings of a user's client at a node."""
    return composed.client(user, composed.address(node, GATEWAYS[node]))


async def make_topic(composed: Composed) -> None:
    """Make the topic as alice, through a node and with her password."""
    settings = client_at(composed, "alice", "gateway-1")
    password = settings["sasl.jaas.config"].rpartition('password="')[2].removesuffix('";')
    admin = AIOKafkaAdminClient(
        bootstrap_servers=settings["bootstrap.servers"],
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="alice",
        sasl_plain_password=password,
    )
    await admin.start()
    try:
        await admin.create_topics([NewTopic(TOPIC, 1, 3)])
    finally:
        await admin.close()
