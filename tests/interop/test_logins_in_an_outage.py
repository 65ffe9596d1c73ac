"""A token login while ZooKeeper is away: clients take it for a lost connection, and are in as soon as it is back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import confluent_kafka.admin
import pytest

from kafka_dt.client import DelegationToken
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from tests.support.java.properties import TokenLogin, token
from tests.support.java.reference_client import ReferenceClient
from tests.support.nodes.node import SHA_256, Node, node_properties
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import ConnectionClosed, RawConnection
from tests.support.zookeeper.server import child_zookeeper

MAX_STALENESS_MS = 2_000
CUT_OFF_WITHIN_S = 30.0
ATTEMPTS_S = 2.0
"""How long no node can decide the client's login; the nodes refuse it several times meanwhile."""
BACK_WITHIN_S = 30.0
UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[EmbeddedZooKeeper]:
    with child_zookeeper(tmp_path / "zookeeper") as server:
        yield server


@pytest.fixture
def node(zookeeper: EmbeddedZooKeeper, tmp_path: Path) -> Iterator[Node]:
    settings = {"kafka_dt_workers": 1, "kafka_dt_zookeeper_max_staleness_ms": MAX_STALENESS_MS}
    with Node(tmp_path / "node", node_properties(zookeeper.address, **settings)) as running:
        yield running
    running.check_log()


def made(node: Node) -> DelegationToken:
    async def create() -> DelegationToken:
        async with node.client() as client:
            return await client.create()

    return asyncio.run(create())


def closed_without_an_answer(node: Node, name: str, password: str) -> bool:
    with RawConnection(node.address("SASL_PLAINTEXT")) as connection:
        try:
            connection.login_scram(name, password, SHA_256, token=True)
        except ConnectionClosed:
            return True
        return False


def in_an_outage(
    node: Node, zookeeper: EmbeddedZooKeeper, login: DelegationToken, *clients: Callable[[], object]
) -> None:
    """Let clients log in for the first time while ZooKeeper is away, and have it come back."""
    zookeeper.kill()
    eventually(lambda: closed_without_an_answer(node, login.token_id, login.hmac_base64), CUT_OFF_WITHIN_S)
    # A guesser learns nothing of it.
    assert closed_without_an_answer(node, login.token_id, "wrong")
    assert closed_without_an_answer(node, UNKNOWN_ID, "wrong")
    with ThreadPoolExecutor(len(clients)) as executor:
        under_way = [executor.submit(client) for client in clients]
        time.sleep(ATTEMPTS_S)  # nothing but time tells that a client has tried
        still = [not each.done() for each in under_way]
        zookeeper.start()
        for each in under_way:
            each.result(BACK_WITHIN_S)
    assert all(still), "they have not given up before"


def test_java_clients_and_librdkafka_try_again_until_zookeeper_is_back(
    node: Node, zookeeper: EmbeddedZooKeeper, java_39: ReferenceClient, java_4x: ReferenceClient
) -> None:
    login = made(node)
    servers = node.address("SASL_PLAINTEXT")
    by_token = token(TokenLogin(login.token_id, login.hmac_base64))

    def librdkafka() -> object:
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": SHA_256,
            "sasl.username": login.token_id,
            "sasl.password": login.hmac_base64,
        }
        return confluent_kafka.admin.AdminClient(settings).list_topics(timeout=BACK_WITHIN_S)

    with java_39.open(servers, by_token) as old, java_4x.open(servers, by_token) as new:
        in_an_outage(node, zookeeper, login, old.cluster, new.cluster, librdkafka)
    assert "a login that cannot be decided now" in node.log()
