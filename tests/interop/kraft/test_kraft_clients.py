"""Every client of the interop suite at two nodes that serve a cluster's tokens, with a token that the other node made.

These are the tests of tests/interop/gateway, in front of three brokers, which are the controllers as well, and with
their own tokens.
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
from tests.interop.kraft.conftest import two_nodes
from tests.interop.kraft.test_kraft_nodes import Nodes
from tests.support.brokers.kraft import KraftCluster
from tests.support.brokers.kraft_operator import Operator
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.java.records_client import RecordsClient
from tests.support.java.tools import KafkaTools
from tests.support.nodes.gateway import Gateway

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def cluster(java: Java, kraft_classpath: Classpath, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftCluster]:
    """Three brokers; alice may use topics, groups and transactional ids that begin with her name."""
    folder = tmp_path_factory.mktemp("kraft-clients")
    with KraftCluster(folder, java=java, classpath=kraft_classpath, brokers=3, controllers=3) as running:
        operator = Operator(running)
        for resource in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID):
            operator.allow("alice", resource, "alice-", PatternType.PREFIXED)
        yield running


@pytest.fixture(scope="module")
def nodes(cluster: KraftCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Two nodes of two workers; the second one relays logins with a password."""
    with two_nodes(cluster, tmp_path_factory) as running:
        yield running


@pytest.fixture(params=[0, 1], ids=["one", "other"])
def gateway(nodes: Nodes, request: pytest.FixtureRequest) -> Gateway:
    """The node that clients use."""
    return nodes[request.param]


@pytest.fixture
def alice(nodes: Nodes, gateway: Gateway) -> DelegationToken:
    """A token of alice's, made at the other node."""
    (other,) = (node for node in nodes if node is not gateway)
    return other.make_token("alice")


@pytest.fixture
def make_topic(cluster: KraftCluster) -> Callable[..., str]:
    """Makes a topic of alice's with a partition for each leader it is given."""
    return lambda *leaders: Operator(cluster).make_topic(f"alice-{uuid.uuid4().hex}", *leaders, replicas=2)


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    """A topic of alice's with two partitions."""
    return make_topic(2, 3)


@pytest.fixture
def group() -> str:
    return f"alice-{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def records(kafka_4x: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordsClient]:
    """The Java producer and consumers of the newest release."""
    with java_program(RecordsClient, kafka_4x, tmp_path_factory.mktemp("records-client")) as client:
        yield client
