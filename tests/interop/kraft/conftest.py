"""One real cluster without ZooKeeper, and two nodes in front of it that serve its own delegation tokens.

User:alice and User:bob may use topics that begin with their names; `TOPIC` of alice's is there.

The tests of this folder are run one after the other, whatever the order of the others, so that there is one cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_dt.client import ClientConfig, Credentials, DelegationToken, SecurityProtocol, TokenClient, parse_addresses
from kafka_dt.identity.acls.binding import PatternType, ResourceType
from tests.interop.conftest import keep_together
from tests.interop.gateway.conftest import RELEASE
from tests.support.brokers.broker import USERS
from tests.support.brokers.kraft import GATEWAY, GATEWAY_PASSWORD, RELEASES, KraftCluster
from tests.support.brokers.kraft_operator import Operator
from tests.support.java.jvm import Java
from tests.support.java.maven import Bundle, Classpath
from tests.support.nodes.gateway import IDENTITY, PORTS, Gateway, upstream_store_properties
from tests.support.processes.ports import free_ports
from tests.support.protocol.raw import METADATA, RawConnection

TOPIC: Final = "alice-records"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    keep_together(items, Path(__file__).parent)


@pytest.fixture(scope="package")
def kraft_classpath(classpath_of: Callable[[Bundle], Classpath]) -> Classpath:
    """The jars of the release that the tests of the gateway use, too."""
    return tuple(jar for bundle in RELEASES[RELEASE] for jar in classpath_of(bundle))


@pytest.fixture(scope="package")
def cluster(java: Java, kraft_classpath: Classpath, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftCluster]:
    """One broker, which is the controller as well."""
    folder = tmp_path_factory.mktemp("kraft-tokens")
    with KraftCluster(folder, java=java, classpath=kraft_classpath, brokers=1) as running:
        operator = Operator(running)
        for user in ("alice", "bob"):
            for resource in (ResourceType.TOPIC, ResourceType.GROUP):
                operator.allow(user, resource, f"{user}-", PatternType.PREFIXED)
        operator.make_topic(TOPIC, 1)
        operator.make_topic("bob-records", 1)
        yield running


@pytest.fixture(scope="package")
def nodes(cluster: KraftCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Gateway]]:
    """Two nodes of two workers; the second one relays logins with a password."""
    with two_nodes(cluster, tmp_path_factory) as running:
        yield running


@contextmanager
def two_nodes(cluster: KraftCluster, folders: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Gateway]]:
    """Start two nodes; the second one relays logins with a password."""
    with ExitStack() as stack:
        one = started(stack, cluster, folders, "one")
        relaying = {IDENTITY: "relay", "listener.name.sasl_plaintext.plain.sasl.jaas.config": None}
        other = started(stack, cluster, folders, "other", **relaying)
        yield one, other
    for node in (one, other):
        node.check_log()


def started(
    stack: ExitStack,
    cluster: KraftCluster,
    folders: pytest.TempPathFactory,
    name: str,
    environment: Mapping[str, str] | None = None,
    /,
    **settings: object,
) -> Gateway:
    """Start a node; further settings by their names, None takes one away."""
    base = free_ports(PORTS)
    properties = upstream_store_properties(cluster, base) | settings
    present = {key: value for key, value in properties.items() if value is not None}
    node = stack.enter_context(Gateway(folders.mktemp(name), present, name=name, environment=environment))
    node.port_base = base
    return node


def at_brokers(cluster: KraftCluster, user: str, broker: int | None = None, **settings: Any) -> TokenClient:
    """A client of the brokers themselves, or of one, by PLAIN; further settings are those of ClientConfig."""
    password = GATEWAY_PASSWORD if user == GATEWAY else USERS[user]
    return TokenClient(
        ClientConfig(
            bootstrap_servers=parse_addresses(cluster.sasl if broker is None else cluster.brokers[broker].sasl),
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            credentials=Credentials("PLAIN", user, password),
            **settings,
        )
    )


@contextmanager
def forwarding_everywhere(nodes: Iterable[Gateway], made: DelegationToken) -> Iterator[list[RawConnection]]:
    """Have a connection by a token on every worker of some nodes, each with one of its own to the cluster."""

    def connect(to: Gateway) -> RawConnection:
        connection = to.connect_by_token(made)
        connection.ask(METADATA, 1, topics=())
        return connection

    with ExitStack() as stack:
        by_worker = [stack.enter_context(each.on_every_worker(partial(connect, each))) for each in nodes]
        yield [connection for connections in by_worker for connection in connections.values()]
