"""Every client of the interop suite at two nodes that serve a cluster's tokens, with a token that the other node made.

These are the tests of tests/interop/gateway, in front of one broker and with its own tokens.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from kafka_dt.client import DelegationToken
from kafka_dt.identity.acls.binding import PatternType, ResourceType
from tests.interop.conftest import java_program
from tests.interop.gateway.test_gateway_clients import (
    login,  # noqa: F401 - a fixture
    test_a_java_producer_and_a_group_of_java_consumers,  # noqa: F401
    test_aiokafka,  # noqa: F401
    test_confluent_kafka,  # noqa: F401
    test_java_transactions_are_seen_whole_or_not_at_all,  # noqa: F401
    test_kafka_python,  # noqa: F401
    test_kcat,  # noqa: F401
    test_the_console_tools,  # noqa: F401
)
from tests.interop.gateway.test_gateway_other_languages import (
    settings,  # noqa: F401 - a fixture
    test_records_of_a_client_come_back_whole_and_in_order,  # noqa: F401
)
from tests.interop.gateway.test_gateway_spark import (
    spark,  # noqa: F401 - a fixture
    test_a_batch_has_its_token_in_the_options_and_spark_shows_it_nowhere,  # noqa: F401
    topics,  # noqa: F401 - a fixture
)
from tests.interop.kraft.test_kraft_nodes import Nodes
from tests.support.brokers.kraft import KraftCluster
from tests.support.brokers.kraft_operator import Operator
from tests.support.java.records_client import RecordsClient
from tests.support.java.tools import KafkaTools
from tests.support.nodes.gateway import Gateway

pytestmark = pytest.mark.soak


@pytest.fixture(params=[0, 1], ids=["one", "other"])
def gateway(nodes: Nodes, request: pytest.FixtureRequest) -> Gateway:
    """The node that clients use."""
    return nodes[request.param]


@pytest.fixture
def alice(nodes: Nodes, gateway: Gateway) -> DelegationToken:
    """A token of alice's, made at the other node."""
    (other,) = (node for node in nodes if node is not gateway)
    return other.make_token("alice")


@pytest.fixture(scope="module")
def operator(cluster: KraftCluster) -> Operator:
    """Who lets alice use transactional ids that begin with her name, too."""
    operator = Operator(cluster)
    operator.allow("alice", ResourceType.TRANSACTIONAL_ID, "alice-", PatternType.PREFIXED)
    return operator


@pytest.fixture
def make_topic(operator: Operator) -> Callable[..., str]:
    """Makes a topic of alice's with as many partitions as leaders are named; the one broker leads all of them."""
    return lambda *leaders: operator.make_topic(f"alice-{uuid.uuid4().hex}", *(1 for _ in leaders))


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    """A topic of alice's with two partitions."""
    return make_topic(1, 2)


@pytest.fixture
def group() -> str:
    return f"alice-{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def records(kafka_4x: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordsClient]:
    """The Java producer and consumers of the newest release."""
    with java_program(RecordsClient, kafka_4x, tmp_path_factory.mktemp("records-client")) as client:
        yield client
