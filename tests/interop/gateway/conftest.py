"""One real cluster of two brokers without ZooKeeper, and two gateways in front of it, for all tests of this folder.

`gateway` logs in upstream with tokens of its clients' principals, `small_gateway` with the users of a file. Upstream,
User:alice may use topics, groups and transactional ids that begin with `alice-`; other users may do nothing until a
test allows it. A test makes its own topics, and leaves both brokers running.

Sessions upstream are short: connections that live for longer are logged in again, in all tests.

The tests of this folder are run one after the other, whatever the order of the others, so that the cluster ends with
the last of them.

    KAFKA_DT_TEST_UPSTREAM     the release of the cluster: 4.x (default) or 3.9
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol

import pytest

from kafka_dt.client import DelegationToken
from kafka_dt.identity.acls.binding import PatternType, ResourceType
from kafka_dt.jaas import OAUTHBEARER_LOGIN_MODULE
from kafka_dt.tls import client_context
from tests.interop.conftest import java_program, keep_together
from tests.support.brokers.broker import MECHANISMS, USERS
from tests.support.brokers.kraft import RELEASES, KraftCluster
from tests.support.brokers.kraft_operator import Operator
from tests.support.identity.tls_material import Identity, authority, leaf
from tests.support.java.jvm import Java
from tests.support.java.maven import Bundle, Classpath
from tests.support.java.properties import plain
from tests.support.java.records_client import RecordsClient
from tests.support.java.tools import KafkaTools
from tests.support.nodes.gateway import (
    IDENTITY,
    IDENTITY_FILE,
    PORTS,
    Gateway,
    gated_listener,
    gateway_properties,
    names_listener,
    sessions_listener,
)
from tests.support.processes.ports import free_ports
from tests.support.zookeeper.server import make_chroot

RELEASE: Final = os.environ.get("KAFKA_DT_TEST_UPSTREAM", "4.x")
ALICES: Final = "alice-"
HOST_NAME: Final = "broker-{id}.gateway.test"
"""How the listener with TLS names the brokers."""
SESSION_MS: Final = 6_000
"""How long sessions last upstream, except those of PLAIN: longer than any client here lets answers wait."""
PLAIN_SESSION_MS: Final = 2_500
IDLE_MS: Final = 3_000
"""`connections.max.idle.ms` of `small_gateway`."""
MAX_CONNECTIONS: Final = 18
"""... and its `max.connections`."""
MAX_CONNECTIONS_PER_IP: Final = 12


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    keep_together(items, Path(__file__).parent)


@pytest.fixture(scope="package")
def cluster(
    java: Java, classpath_of: Callable[[Bundle], Classpath], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KraftCluster]:
    """Two brokers; the first is the controller as well and is left alone."""
    bundles = RELEASES[RELEASE]
    classpath = tuple(jar for bundle in bundles for jar in classpath_of(bundle))
    sessions = {
        "connections.max.reauth.ms": SESSION_MS,
        "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": PLAIN_SESSION_MS,
        "sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{OAUTHBEARER_LOGIN_MODULE} required;",
    }
    with KraftCluster(tmp_path_factory.mktemp("kraft"), java=java, classpath=classpath, overrides=sessions) as running:
        yield running


@pytest.fixture(scope="package")
def gateway_connect(zookeeper_connect: str) -> str:
    """`zookeeper.connect` of the gateways."""
    return make_chroot(zookeeper_connect.partition("/")[0], "gateway")


@pytest.fixture(scope="package")
def signer() -> Identity:
    """Who signs the certificate of the gateway."""
    return authority("Root")


@pytest.fixture(scope="package")
def gateway(
    cluster: KraftCluster, gateway_connect: str, signer: Identity, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    """The gateway of two workers, with a listener whose clients see names, one whose connections a test can cut, and
    one with short sessions."""
    folder = tmp_path_factory.mktemp("gateway")
    certificate = leaf(f"*.{HOST_NAME.partition('.')[2]}", signer)
    key_store = folder / "gateway.pem"
    key_store.touch(mode=0o600)
    key_store.write_text(certificate.key_pem() + certificate.chain_pem)
    base = free_ports(3 * PORTS)
    gated, sessions = base + PORTS, base + 2 * PORTS
    properties = gateway_properties(gateway_connect, cluster, base)
    properties |= names_listener(HOST_NAME, key_store) | gated_listener(gated) | sessions_listener(sessions)
    more = f"SASL_SSL://127.0.0.1:0,GATED://127.0.0.1:{gated},SESSIONS://127.0.0.1:{sessions}"
    properties["listeners"] = f"{properties['listeners']},{more}"
    with Gateway(folder, properties, name="gateway") as running:
        running.port_base = base
        yield running
    running.check_log()


class GatewayMaker(Protocol):
    def __call__(self, name: str, **overrides: object) -> contextlib.AbstractContextManager[Gateway]: ...


@pytest.fixture(scope="package")
def other_gateway(
    cluster: KraftCluster, gateway_connect: str, tmp_path_factory: pytest.TempPathFactory
) -> GatewayMaker:
    """Starts another gateway, of one worker, on the tokens of the first; settings may be taken away with None."""

    @contextlib.contextmanager
    def start(name: str, **overrides: object) -> Iterator[Gateway]:
        base = free_ports(PORTS)
        properties = gateway_properties(gateway_connect, cluster, base) | {"kafka.dt.workers": 1} | overrides
        present = {key: value for key, value in properties.items() if value is not None}
        with Gateway(tmp_path_factory.mktemp(name), present, name=name) as running:
            running.port_base = base
            yield running
        running.check_log()

    return start


@pytest.fixture(scope="package")
def small_gateway(other_gateway: GatewayMaker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that has a user upstream for alice alone, by PLAIN, and is soon tired of its clients."""
    file = tmp_path_factory.mktemp("identities") / "identities.jaas"
    file.touch(mode=0o600)
    login = plain("alice", USERS["alice"])["sasl.jaas.config"]
    file.write_text(f'"User:alice" {{ {login} }};\n')
    settings = {
        IDENTITY: "mapped",
        IDENTITY_FILE: file,
        "connections.max.idle.ms": IDLE_MS,
        "max.connections": MAX_CONNECTIONS,
        "max.connections.per.ip": MAX_CONNECTIONS_PER_IP,
    }
    with other_gateway("small-gateway", **settings) as running:
        yield running


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


@pytest.fixture(scope="package")
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


@pytest.fixture(scope="package")
def alice(gateway: Gateway, operator: Operator) -> DelegationToken:  # noqa: ARG001 - who gives her permissions
    """A token of alice's."""
    return gateway.make_token("alice")


@pytest.fixture(scope="package")
def bob(gateway: Gateway) -> DelegationToken:
    """A token of bob's."""
    return gateway.make_token("bob")


@pytest.fixture(scope="package")
def records(kafka_4x: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordsClient]:
    """The Java producer and consumers of the newest release."""
    with java_program(RecordsClient, kafka_4x, tmp_path_factory.mktemp("records-client")) as client:
        yield client
