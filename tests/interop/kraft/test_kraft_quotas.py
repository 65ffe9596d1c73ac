"""The client of a token has the quotas of the token's owner, at a node as at a broker."""

from __future__ import annotations

import time

import pytest

from kafka_dt.kraft.news.message import Revocation
from kafka_dt.kraft.news.records import batch
from kafka_dt_protocol.api.responses import element_type
from tests.interop.kraft.conftest import TOPIC
from tests.interop.kraft.test_kraft_nodes import Nodes, takes
from tests.support.brokers.kraft import KraftCluster
from tests.support.brokers.kraft_operator import FETCH, Operator, request_records
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import RawConnection, milliseconds, ms, request_type

PRODUCE, PRODUCE_VERSION = 0, 7
FETCH_VERSION = 12
KNOWN_WITHIN_S = 10.0
LOW_RATE = 1.0
"""Bytes in a second: whatever a client sends or reads is more."""


@pytest.mark.parametrize(
    "where", ["node", *(pytest.param(each, marks=pytest.mark.soak) for each in ("relaying node", "broker"))]
)
def test_the_clients_of_an_owner_are_held_up_by_its_quotas_and_those_of_others_are_not(
    cluster: KraftCluster, nodes: Nodes, where: str
) -> None:
    node = nodes[where == "relaying node"]
    address = cluster.sasl if where == "broker" else node.address_of_broker(1)
    alice, bob = node.make_token("alice"), node.make_token("bob")
    for made in (alice, bob):
        eventually(lambda made=made: takes(address, node, made), KNOWN_WITHIN_S)  # type: ignore[misc]
    with Operator(cluster).limiting("alice", producer_byte_rate=LOW_RATE, consumer_byte_rate=LOW_RATE):
        for held_up_ms in (held_up_writing_ms, held_up_reading_ms):
            # The broker reads no more from a client that it holds up: each has a connection of its own.
            with node.connect_by_token(alice, to=address) as limited:
                eventually(lambda: held_up_ms(limited, TOPIC) > 0, KNOWN_WITHIN_S)  # noqa: B023
            with node.connect_by_token(bob, to=address) as free:
                assert held_up_ms(free, "bob-records") == 0


def held_up_writing_ms(connection: RawConnection, topic: str) -> int:
    """Write a record; gives for how long the broker holds up the client."""
    topic_type = element_type(request_type(PRODUCE, PRODUCE_VERSION), "topic_data")
    # Any record would do.
    records = batch([Revocation("a token's id", None, b"")], time.time_ns() // 1_000_000)
    partition = element_type(topic_type, "partition_data")(index=0, records=records)
    written = (topic_type(name=topic, partition_data=(partition,)),)
    answer = connection.ask(
        PRODUCE, PRODUCE_VERSION, transactional_id=None, acks=1, timeout=ms(5_000), topic_data=written
    )
    assert answer.responses[0].partition_responses[0].error_code.value == 0, answer
    return milliseconds(answer.throttle_time)


def held_up_reading_ms(connection: RawConnection, topic: str) -> int:
    """Read records; gives for how long the broker holds up the client, whose answer is empty then."""
    request_records(connection, topic, FETCH_VERSION)
    answer = connection.answer(FETCH, FETCH_VERSION)
    assert answer.error_code.value == 0, answer
    return milliseconds(answer.throttle_time)
