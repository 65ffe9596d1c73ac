"""Whatever upstream answers, a client finds only the gateway in it, and each broker behind an address of its own."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import aiokafka
import pytest
from kio.index import load_request_schema
from kio.schema.api_versions.v3.response import ApiVersionsResponse

from kafka_dt.client import DelegationToken
from tests.interop.gateway.conftest import HOST_NAME
from tests.support.brokers.broker import USERS
from tests.support.brokers.kraft import KraftCluster
from tests.support.brokers.kraft_operator import FETCH, describe_topic, request_records
from tests.support.nodes.gateway import Gateway
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import (
    API_VERSIONS,
    CREATE,
    DESCRIBE,
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    RawConnection,
)

FETCH_WITH_HINTS = 16
NOT_LEADER_OR_FOLLOWER = 6
LOCAL = {SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE, *range(CREATE, DESCRIBE + 1)}
COUNT = 100


@pytest.fixture
def connection(gateway: Gateway, alice: DelegationToken) -> Iterator[RawConnection]:
    with gateway.connect_by_token(alice) as connection:
        yield connection


def offered(connection: RawConnection) -> dict[int, tuple[int, int]]:
    """The lowest and highest version of each API."""
    answer: ApiVersionsResponse = connection.ask(
        API_VERSIONS, 3, client_software_name="raw", client_software_version="1"
    )
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


def ask_in_every_version(connection: RawConnection, api_key: int, **values: object) -> Iterator[tuple[int, Any]]:
    """Ask in each version that is offered, with those of the values that it has fields for; version and answer."""
    lowest, highest = offered(connection)[api_key]
    for version in range(lowest, highest + 1):
        yield version, connection.ask(api_key, version, **given(api_key, version, values))


def given(api_key: int, version: int, values: Mapping[str, object]) -> dict[str, object]:
    """Those of the values that the version has fields for."""
    names = {each.name for each in fields(load_request_schema(api_key, version))}
    return {name: content for name, content in values.items() if name in names}


def raw_answers(connection: RawConnection, api_key: int, **values: object) -> Iterator[bytes]:
    """The answers in each version that is offered, without their correlation ids."""
    lowest, highest = offered(connection)[api_key]
    for version in range(lowest, highest + 1):
        connection.request(api_key, version, **given(api_key, version, values))
        yield connection.receive_frame()[4:]


def addresses(nodes: Any) -> dict[int, str]:
    return {getattr(each, "node_id", getattr(each, "broker_id", -1)): f"{each.host}:{each.port}" for each in nodes}


@pytest.fixture
def expected(gateway: Gateway) -> dict[int, str]:
    return {each: gateway.address_of_broker(each) for each in (1, 2)}


def test_metadata_names_the_gateways_ports_in_every_version(
    connection: RawConnection, expected: dict[int, str]
) -> None:
    asked = ask_in_every_version(
        connection,
        METADATA,
        topics=(),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    assert [
        (version, addresses(answer.brokers)) for version, answer in asked if addresses(answer.brokers) != expected
    ] == []


def test_the_cluster_is_described_by_the_gateways_ports_in_every_version(
    connection: RawConnection, expected: dict[int, str]
) -> None:
    asked = ask_in_every_version(
        connection, DESCRIBE_CLUSTER, include_cluster_authorized_operations=False, include_fenced_brokers=False
    )
    for version, answer in asked:
        assert addresses(answer.brokers) == expected, version


def test_coordinators_are_found_at_the_gateways_ports_in_every_version(
    connection: RawConnection, expected: dict[int, str], group: str
) -> None:
    def found() -> bool:
        answer = connection.ask(FIND_COORDINATOR, 1, key=group, key_type=0)
        return bool(answer.error_code.value == 0)

    eventually(found, within_s=20)  # the first of all has its topic made
    for version, answer in ask_in_every_version(
        connection, FIND_COORDINATOR, key=group, key_type=0, coordinator_keys=(group,)
    ):
        ((node_id, address),) = addresses(answer.coordinators if version >= 4 else (answer,)).items()
        assert address == expected[node_id], version


def test_a_refusal_to_name_a_coordinator_passes_byte_for_byte_in_every_version(
    gateway: Gateway, bob: DelegationToken, cluster: KraftCluster, group: str
) -> None:
    """Clients tell from it that there is no coordinator: node -1, an empty host and port -1."""
    answers = []
    with RawConnection(cluster.brokers[1].sasl) as direct, gateway.connect_by_token(bob) as through:
        direct.login_plain("bob", USERS["bob"])
        for connection in (direct, through):
            asked = raw_answers(connection, FIND_COORDINATOR, key=group, key_type=0, coordinator_keys=(group,))
            answers.append(list(asked))
    assert answers[0] == answers[1]
    assert len(answers[0]) > 6
    assert all(b"\xff\xff\xff\xff" in content for content in answers[0])


def test_each_port_leads_to_its_broker_and_hints_lead_to_the_other_port(
    gateway: Gateway, alice: DelegationToken, make_topic: Callable[..., str], expected: dict[int, str]
) -> None:
    topic = make_topic(2)
    errors = {}
    for broker_id in (1, 2):
        with gateway.reach_broker(alice, broker_id) as connection:
            request_records(connection, describe_topic(connection, topic).topic_id, FETCH_WITH_HINTS)
            answer = connection.answer(FETCH, FETCH_WITH_HINTS)
        errors[broker_id] = answer.responses[0].partitions[0].error_code.value
        assert addresses(answer.node_endpoints) == ({2: expected[2]} if broker_id == 1 else {})
    assert errors == {1: NOT_LEADER_OR_FOLLOWER, 2: 0}


def test_the_versions_of_upstream_are_offered_and_our_own_of_logins_and_tokens(
    connection: RawConnection, cluster: KraftCluster
) -> None:
    with RawConnection(cluster.brokers[1].plaintext) as direct:
        upstream = offered(direct)
    here = offered(connection)
    assert here.keys() == upstream.keys() | LOCAL
    assert all(here[CREATE + each] == (0, highest) for each, highest in enumerate((3, 2, 2, 3)))
    narrower = {key: (here[key], upstream[key]) for key in upstream.keys() - LOCAL if here[key] != upstream[key]}
    # Only what carries addresses in a layout that is not known here may be less.
    assert narrower == {}


def test_answers_come_in_the_order_of_the_requests(connection: RawConnection) -> None:
    keys = [METADATA, API_VERSIONS, DESCRIBE_CLUSTER, METADATA, METADATA, API_VERSIONS] * 10
    values: dict[int, dict[str, object]] = {
        METADATA: {"topics": ()},
        API_VERSIONS: {},
        DESCRIBE_CLUSTER: {"include_cluster_authorized_operations": False},
    }
    versions = {METADATA: 1, API_VERSIONS: 0, DESCRIBE_CLUSTER: 0}
    for key in keys:
        connection.request(key, versions[key], **values[key])
    ids = [int.from_bytes(connection.receive_frame()[:4], "big") for _ in keys]
    assert ids == list(range(ids[0], ids[0] + len(keys)))


async def test_with_tls_each_broker_has_a_name_on_one_port(
    gateway: Gateway,
    alice: DelegationToken,
    tls_context: ssl.SSLContext,
    topic: str,
    names: None,  # noqa: ARG001
) -> None:
    port = gateway.address("SASL_SSL").rpartition(":")[2]
    login = {
        **gateway.settings(alice, "aiokafka"),
        "bootstrap_servers": f"{HOST_NAME.format(id='any')}:{port}",
        "security_protocol": "SASL_SSL",
        "ssl_context": tls_context,
    }
    async with aiokafka.AIOKafkaProducer(**login) as producer:
        for number in range(COUNT):
            await producer.send(topic, str(number).encode(), partition=number % 2)
        brokers = {each.nodeId: (each.host, str(each.port)) for each in producer.client.cluster.brokers()}
    assert brokers == {each: (HOST_NAME.format(id=each), port) for each in (1, 2)}
    async with aiokafka.AIOKafkaConsumer(topic, **login, auto_offset_reset="earliest") as consumer:
        found = [await consumer.getone() for _ in range(COUNT)]
    assert sorted(int(each.value or b"-1") for each in found) == list(range(COUNT))
