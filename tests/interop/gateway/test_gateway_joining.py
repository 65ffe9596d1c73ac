"""A third broker joins the cluster, moves and leaves: clients are led to it, and lose nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from kafka_dt.client import DelegationToken
from tests.support.brokers.kraft import KraftCluster, Node
from tests.support.brokers.kraft_operator import FETCH, request_records
from tests.support.java.records_client import ReadBack, RecordsClient
from tests.support.nodes.gateway import Gateway
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import METADATA, RawConnection

pytestmark = pytest.mark.soak

THIRD: Final = 3
IDLE_MS: Final = 3_000
"""`connections.max.idle.ms` of the third broker."""
COUNT: Final = 20_000
PER_SECOND: Final = 1_500
"""So that sending takes longer than a broker's start."""
PATIENT: Final = {"delivery.timeout.ms": "120000", "max.block.ms": "120000", "reconnect.backoff.max.ms": "200"}
WITHIN_S: Final = 20.0


@pytest.fixture
def third(cluster: KraftCluster) -> Iterator[Node]:
    """One more broker, which a test starts."""
    node = cluster.another_broker(THIRD, connections_max_idle_ms=IDLE_MS)
    yield node
    node.stop()


@pytest.fixture
def connection(gateway: Gateway, alice: DelegationToken) -> Iterator[RawConnection]:
    """To one of the two brokers that stay."""
    with gateway.reach_broker(alice, 1) as connection:
        yield connection


def told(connection: RawConnection) -> dict[int, str]:
    """Where the brokers are, as this client hears it."""
    answer = connection.ask(METADATA, 1, topics=())
    return {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}


def holds_records(connection: RawConnection, topic: str) -> bool:
    """Whether something was sent already."""
    request_records(connection, topic)
    return bool(connection.answer(FETCH, 12).responses[0].partitions[0].records)


async def test_a_broker_that_joins_moves_and_leaves_is_followed(
    gateway: Gateway,
    alice: DelegationToken,
    *,
    cluster: KraftCluster,
    third: Node,
    connection: RawConnection,
    make_topic: Callable[..., str],
    records: RecordsClient,
) -> None:
    client = {**gateway.settings(alice, "java"), **PATIENT}
    expected = {each: gateway.address_of_broker(each) for each in (1, 2)}
    assert told(connection) == expected

    await asyncio.to_thread(third.start)
    eventually(lambda: told(connection) == expected | {THIRD: gateway.address_of_broker(THIRD)}, WITHIN_S)
    alone = make_topic(THIRD)
    # Who has been told can connect, at once.
    with gateway.connect_by_token(alice, to=gateway.address_of_broker(THIRD)) as direct:
        sending = asyncio.create_task(asyncio.to_thread(records.send, client, alone, COUNT, per_second=PER_SECOND))
        await asyncio.to_thread(eventually, lambda: holds_records(direct, alone), WITHIN_S)
    await asyncio.to_thread(third.stop)
    moved = cluster.another_broker(THIRD)
    assert moved.sasl != third.sasl
    try:
        await asyncio.to_thread(moved.start)
        assert (await sending).acknowledged == COUNT
        assert await asyncio.to_thread(records.read, client, alone, COUNT) == ReadBack.of(COUNT, partitions=1)

        shared = make_topic(THIRD, THIRD, replicas=2)
        sending = asyncio.create_task(asyncio.to_thread(records.send, client, shared, COUNT, per_second=PER_SECOND))
        with gateway.reach_broker(alice, THIRD) as direct:
            await asyncio.to_thread(eventually, lambda: holds_records(direct, shared), WITHIN_S)
            await asyncio.to_thread(moved.stop)
            assert direct.closed()
        assert (await sending).acknowledged == COUNT
        assert await asyncio.to_thread(records.read, client, shared, COUNT) == ReadBack.of(COUNT, partitions=2)
        eventually(lambda: told(connection) == expected, WITHIN_S)
    finally:
        await asyncio.to_thread(moved.stop)


def test_a_connection_that_the_upstream_broker_finds_idle_ends_here_too(
    gateway: Gateway, alice: DelegationToken, third: Node, connection: RawConnection
) -> None:
    third.start()
    eventually(lambda: THIRD in told(connection), WITHIN_S)
    with gateway.reach_broker(alice, THIRD) as idle:
        assert idle.closed(within_s=2 * IDLE_MS / 1000)
    told(connection)
