"""Share groups (KIP-932) through the gateway: records read and acknowledged, and hints that lead back to it."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from kafka_dt.client import DelegationToken
from kafka_dt_protocol.api.responses import element_type
from tests.interop.gateway.conftest import RELEASE
from tests.support.brokers.kraft_operator import MIB, Operator, describe_topic
from tests.support.java.properties import TokenLogin, token
from tests.support.java.records_client import ReadBack, RecordsClient, value
from tests.support.java.tools import KafkaTools
from tests.support.nodes.gateway import Gateway
from tests.support.protocol.raw import RawConnection, ms, request_type

pytestmark = pytest.mark.skipif(RELEASE == "3.9", reason="share groups came with Kafka 4")

SHARE_FETCH = 78
VERSIONS = (1, 2)
NOT_LEADER_OR_FOLLOWER = 6
COUNT = 500


@pytest.fixture
def share_group(operator: Operator, group: str) -> str:
    operator.share_from_the_beginning(group)
    return group


def test_a_java_share_consumer_reads_and_acknowledges(
    gateway: Gateway, alice: DelegationToken, records: RecordsClient, topic: str, share_group: str
) -> None:
    login = gateway.settings(alice, "java")
    records.send(login, topic, COUNT)
    member = {**login, "group.id": share_group}
    assert records.share(member, topic, COUNT) == ReadBack.of(COUNT, partitions=2)
    # The cluster gives acknowledged records to no other member.
    records.send(login, topic, 10, first=COUNT)
    assert records.share(member, topic, 10) == ReadBack.of(10, first=COUNT, partitions=2)


@pytest.mark.soak
def test_the_console_share_consumer(
    gateway: Gateway,
    alice: DelegationToken,
    *,
    kafka_4x: KafkaTools,
    records: RecordsClient,
    topic: str,
    share_group: str,
) -> None:
    records.send(gateway.settings(alice, "java"), topic, 10)
    login = token(TokenLogin(alice.token_id, alice.hmac_base64), "SCRAM-SHA-512")
    consumed = kafka_4x.share_consume(gateway.sasl, {**login, "group.id": share_group}, topic, count=10).ok()
    assert sorted(consumed.stdout.splitlines()) == sorted(value(number) for number in range(10))


def share_fetch(connection: RawConnection, version: int, group: str, member: str, topic_id: uuid.UUID) -> Any:
    """Open a share session with partition 0 of a topic."""
    topic_type = element_type(request_type(SHARE_FETCH, version), "topics")
    partition = element_type(topic_type, "partitions")(partition_index=0, acknowledgement_batches=())
    return connection.ask(
        SHARE_FETCH,
        version,
        group_id=group,
        member_id=member,
        share_session_epoch=0,
        max_wait=ms(0),
        min_bytes=0,
        max_bytes=MIB,
        max_records=1,
        batch_size=1,
        topics=(topic_type(topic_id=topic_id, partitions=(partition,)),),
        forgotten_topics_data=(),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_share_fetch_at_the_wrong_broker_is_told_the_gateways_port_of_the_right_one(
    gateway: Gateway, alice: DelegationToken, make_topic: Callable[..., str], group: str, version: int
) -> None:
    topic = make_topic(2)
    member = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    with gateway.reach_broker(alice, 1) as connection:
        answer = share_fetch(connection, version, group, member, describe_topic(connection, topic).topic_id)
    assert answer.responses[0].partitions[0].error_code.value == NOT_LEADER_OR_FOLLOWER
    (leader,) = answer.node_endpoints
    assert (leader.node_id, f"{leader.host}:{leader.port}") == (2, gateway.address_of_broker(2))
