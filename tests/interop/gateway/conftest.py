"""One real cluster of two brokers without ZooKeeper, and one gateway before it, for all tests of this folder.

The gateway logs in upstream with tokens of its clients' principals. Upstream, User:alice may use topics, groups and
transactional ids that begin with `alice-`; nobody else may do anything until a test says so. A test makes its own
topics, and leaves all brokers running.

    KAFKA_DT_TEST_UPSTREAM     the release of the cluster: 4.x (default) or 3.9
"""

from __future__ import annotations

import os
import socket
import ssl
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from kafka_dt.client import DelegationToken
from kafka_dt.security.acls import PatternType, ResourceType
from kafka_dt.tls import client_context
from tests.interop.conftest import unavailable
from tests.support.gateway import PORTS, Gateway, gated_listener, gateway_properties, names_listener
from tests.support.java import Java
from tests.support.java_tools import KafkaTools
from tests.support.kraft import RELEASES, KraftCluster
from tests.support.kraft_operator import Operator
from tests.support.maven import Bundle, Classpath
from tests.support.ports import free_ports
from tests.support.records_client import RecordsClient
from tests.support.tls_material import Identity, authority, leaf
from tests.support.zookeeper import make_chroot

RELEASE: Final = os.environ.get("KAFKA_DT_TEST_UPSTREAM", "4.x")
ALICES: Final = "alice-"
HOST_NAME: Final = "broker-{id}.gateway.test"
"""How the listener with TLS names the brokers."""


@pytest.fixture(scope="session")
def cluster(
    java: Java, classpath_of: Callable[[Bundle], Classpath], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KraftCluster]:
    """Two brokers; the first is the controller as well and is left alone."""
    bundles = RELEASES[RELEASE]
    classpath = tuple(jar for bundle in bundles for jar in classpath_of(bundle))
    with KraftCluster(tmp_path_factory.mktemp("kraft"), java=java, classpath=classpath) as running:
        yield running


@pytest.fixture(scope="session")
def gateway_connect(zookeeper_connect: str) -> str:
    """`zookeeper.connect` of the gateways."""
    return make_chroot(zookeeper_connect.partition("/")[0], "gateway")


@pytest.fixture(scope="session")
def signer() -> Identity:
    """Who signs the certificate of the gateway."""
    return authority("Root")


@pytest.fixture(scope="session")
def gateway(
    cluster: KraftCluster, gateway_connect: str, signer: Identity, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    """The gateway, with a listener whose clients see names, and one whose connections a test can cut."""
    folder = tmp_path_factory.mktemp("gateway")
    certificate = leaf(f"*.{HOST_NAME.partition('.')[2]}", signer)
    key_store = folder / "gateway.pem"
    key_store.touch(mode=0o600)
    key_store.write_text(certificate.key_pem() + certificate.chain_pem)
    base = free_ports(2 * PORTS)
    properties = gateway_properties(gateway_connect, cluster, base)
    properties |= names_listener(HOST_NAME, key_store) | gated_listener(base + PORTS)
    properties["listeners"] = f"{properties['listeners']},SASL_SSL://127.0.0.1:0,GATED://127.0.0.1:{base + PORTS}"
    with Gateway(folder, properties, name="gateway") as running:
        running.port_base = base
        yield running
    running.check_log()


@pytest.fixture
def tls_context(signer: Identity) -> ssl.SSLContext:
    """What a client of the listener with names trusts."""
    return client_context({"ssl.truststore.type": "PEM", "ssl.truststore.certificates": signer.certificate_pem})


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the names of brokers lead to this machine, as a wildcard in the DNS would."""
    resolve = socket.getaddrinfo

    def everything_here(host: Any, *arguments: Any, **options: Any) -> Any:
        is_ours = isinstance(host, str) and host.endswith(HOST_NAME.partition(".")[2])
        return resolve("127.0.0.1" if is_ours else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", everything_here)


@pytest.fixture(scope="session")
def operator(cluster: KraftCluster) -> Operator:
    """Who allows things upstream, past the gateway."""
    operator = Operator(cluster)
    for resource in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID):
        operator.allow("alice", resource, ALICES, PatternType.PREFIXED)
    return operator


@pytest.fixture
def make_topic(operator: Operator) -> Callable[..., str]:
    """Makes a topic of alice's with a partition for each leader it is given."""

    def make(*leaders: int, **options: Any) -> str:
        return operator.make_topic(f"{ALICES}{uuid.uuid4().hex}", *leaders, **options)

    return make


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    """A topic of alice's with a partition on either broker."""
    return make_topic(1, 2)


@pytest.fixture
def group() -> str:
    return f"{ALICES}{uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def alice(gateway: Gateway, operator: Operator) -> DelegationToken:  # noqa: ARG001 - who gives her permissions
    """A token of alice's."""
    return gateway.make_token("alice")


@pytest.fixture(scope="session")
def bob(gateway: Gateway) -> DelegationToken:
    """A token of bob's."""
    return gateway.make_token("bob")


@pytest.fixture(scope="session")
def records(kafka_4x: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordsClient]:
    """The Java producer and consumer of the newest release."""
    if not kafka_4x.java.has_compiler:
        unavailable(f"{kafka_4x.java.executable} has no compiler, the Java client is started from source")
    log = tmp_path_factory.mktemp("records-client") / "java.log"
    with RecordsClient(kafka_4x.java, kafka_4x.classpath, log) as client:
        yield client
