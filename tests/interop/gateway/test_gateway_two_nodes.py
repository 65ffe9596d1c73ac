"""Two nodes of a gateway on two addresses: clients of one that ends or hangs go on at the other, which stays up.

The settings are those that docs/how-to/gateway.md gives under "More than one node".
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import confluent_kafka
import pytest

from kafka_dt.client import DelegationToken
from tests.interop.conftest import java_program
from tests.interop.gateway.conftest import GatewayMaker
from tests.support.brokers.kraft import KraftCluster
from tests.support.java.records_client import RecordsClient
from tests.support.java.tools import KafkaTools
from tests.support.nodes.gateway import PORT_BASE, PORTS, Gateway, gated_listener
from tests.support.processes.ports import free_ports
from tests.support.processes.process import hanging
from tests.support.processes.waiting import eventually

HOSTS: Final = ("127.0.0.3", "127.0.0.4")
NAME: Final = "nodes.gateway.test"
"""One name for both."""
ESTABLISHED: Final = "01"
PER_SECOND: Final = 200
BEGUN: Final = 100
"""Records after which a client is at work."""
GONE_ON: Final = 500
"""... and those after which it has gone on at the other node."""
MOST: Final = 100_000
"""More than a client sends in the time that a test takes."""
GO_ON_WITHIN_S: Final = 15
"""A client that waited for its node to come back, or for a timeout of Kafka's defaults (30 s), would fail."""
SEEN_WITHIN_S: Final = 2

JAVA: Final = {
    "request.timeout.ms": "5000",
    "socket.connection.setup.timeout.ms": "2000",
    "metadata.recovery.rebootstrap.trigger.ms": "3000",
    "delivery.timeout.ms": str(GO_ON_WITHIN_S * 1000),
}
LIBRDKAFKA: Final = {
    "socket.timeout.ms": "5000",
    "socket.connection.setup.timeout.ms": "2000",
    "metadata.recovery.rebootstrap.trigger.ms": "3000",
    "message.timeout.ms": str(GO_ON_WITHIN_S * 1000),
    "log_level": "0",
}


class TwoNodes:
    """Two nodes with the same ports on `HOSTS`: one listener of each host, and one that both tell by `NAME`."""

    def __init__(self, by_host: dict[str, Gateway], own_port: int, named_port: int) -> None:
        self.by_host = by_host
        self.own_servers = ",".join(f"{host}:{own_port}" for host in HOSTS)
        self.named_server = f"{NAME}:{named_port}"


@pytest.fixture
def two_nodes(other_gateway: GatewayMaker) -> Iterator[TwoNodes]:
    own, named = free_ports(PORTS, HOSTS[0]), free_ports(PORTS, HOSTS[1])
    with contextlib.ExitStack() as stack:
        nodes = {}
        for host in HOSTS:
            settings = {
                **gated_listener(named, host=NAME),
                "listeners": f"SASL_PLAINTEXT://{host}:{own},GATED://{host}:{named}",
                f"listener.name.sasl_plaintext.{PORT_BASE}": own,
            }
            nodes[host] = stack.enter_context(other_gateway(f"node-{host}", **settings))
        yield TwoNodes(nodes, own, named)


def hosts_connected_to(ports: range) -> set[str]:
    """Those of `HOSTS` that serve a connection on one of these ports."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    served = [local.split(":") for _, local, _, state, *_ in rows if state == ESTABLISHED]
    found = {socket.inet_ntoa(bytes.fromhex(host)[::-1]) for host, port in served if int(port, 16) in ports}
    return found & set(HOSTS)


def host_of_the_client(ports: range) -> str:
    """The one of `HOSTS` that serves it; one reading of all connections may miss some, while others come and go."""
    found: set[str] = set()

    def is_found() -> bool:
        found.update(hosts_connected_to(ports))
        return bool(found)

    eventually(is_found, SEEN_WITHIN_S)
    (host,) = found
    return host


def broker_ports(servers: str) -> range:
    """The ports of brokers behind the one by which clients come."""
    first = int(servers.rpartition(":")[2])
    return range(first + 1, first + PORTS)


@contextlib.contextmanager
def killed(node: Gateway) -> Iterator[None]:
    node.kill()
    yield


@contextlib.contextmanager
def stopped(node: Gateway) -> Iterator[None]:
    node.process.stop()
    yield


@contextlib.contextmanager
def frozen(node: Gateway) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for pid in (node.process.pid, *node.workers()):
            stack.enter_context(hanging(pid))
        yield


Fault = Callable[[Gateway], contextlib.AbstractContextManager[None]]
FAULTS: Final = [killed, pytest.param(stopped, marks=pytest.mark.soak), pytest.param(frozen, marks=pytest.mark.soak)]


class LibrdkafkaProducer:
    """Sends one record after the other and counts those that are acknowledged."""

    def __init__(self, login: dict[str, str], topic: str) -> None:
        self._producer = confluent_kafka.Producer({**login, **LIBRDKAFKA})
        self._topic = topic
        self.acknowledged = 0
        self.failures: list[str] = []

    def send_until(self, condition: Callable[[], bool]) -> None:
        """Send to both partitions in turn until a condition holds; raises AssertionError if it never does."""
        deadline = time.monotonic() + 2 * GO_ON_WITHIN_S
        number = 0
        while not condition():
            assert time.monotonic() < deadline, f"{self.acknowledged} acknowledged, {self.failures}"
            self._producer.produce(self._topic, b"x", partition=number % 2, on_delivery=self._delivered)
            self._producer.poll(1 / PER_SECOND)
            number += 1

    def close(self) -> None:
        assert self._producer.flush(2 * GO_ON_WITHIN_S) == 0

    def _delivered(self, error: confluent_kafka.KafkaError | None, _message: confluent_kafka.Message) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.failures.append(str(error))


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_librdkafka_client_that_lists_both_nodes_goes_on_at_the_other(
    two_nodes: TwoNodes, alice: DelegationToken, topic: str, fault: Fault
) -> None:
    node = next(iter(two_nodes.by_host.values()))
    login = {**node.settings(alice, "confluent"), "bootstrap.servers": two_nodes.own_servers}
    ports = broker_ports(two_nodes.own_servers)
    producer = LibrdkafkaProducer(login, topic)
    await asyncio.to_thread(producer.send_until, lambda: producer.acknowledged >= BEGUN)
    host = host_of_the_client(ports)
    with fault(two_nodes.by_host[host]):
        before = producer.acknowledged
        await asyncio.to_thread(producer.send_until, lambda: producer.acknowledged >= before + GONE_ON)
        await asyncio.to_thread(producer.close)
    assert producer.failures == []


@pytest.mark.parametrize(
    ("by", "fault"),
    [
        ("name", killed),
        pytest.param("name", stopped, marks=pytest.mark.soak),
        pytest.param("name", frozen, marks=pytest.mark.soak),
        pytest.param("list", killed, marks=pytest.mark.soak),
        pytest.param("list", stopped, marks=pytest.mark.soak),  # by list, a frozen one takes longer
    ],
)
async def test_a_java_client_goes_on_at_the_other_node(
    two_nodes: TwoNodes,
    alice: DelegationToken,
    topic: str,
    *,
    cluster: KraftCluster,
    kafka_4x: KafkaTools,
    tmp_path: Path,
    by: str,
    fault: Fault,
) -> None:
    resolved = tmp_path / "hosts"
    resolved.write_text("".join(f"{host} {NAME}\n" for host in HOSTS))
    servers = two_nodes.named_server if by == "name" else two_nodes.own_servers
    node = next(iter(two_nodes.by_host.values()))
    login = {**node.settings(alice, "java"), **JAVA, "bootstrap.servers": servers}
    properties = {"jdk.net.hosts.file": str(resolved)}
    with java_program(RecordsClient, kafka_4x, tmp_path, properties) as records:
        enough = tmp_path / "enough"
        send = partial(records.send, login, topic, MOST, per_second=PER_SECOND, until=enough)
        sending = asyncio.create_task(asyncio.to_thread(send))
        await asyncio.to_thread(eventually, lambda: in_topic(cluster, topic) >= BEGUN, 2 * GO_ON_WITHIN_S)
        host = host_of_the_client(broker_ports(servers))
        with fault(two_nodes.by_host[host]):
            before = in_topic(cluster, topic)
            await asyncio.to_thread(
                eventually, lambda: in_topic(cluster, topic) >= before + GONE_ON, 2 * GO_ON_WITHIN_S
            )
            enough.touch()
            assert (await sending).acknowledged == in_topic(cluster, topic)


def in_topic(cluster: KraftCluster, topic: str) -> int:
    """How many records its two partitions have."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": cluster.plaintext, "group.id": "counting"})
    try:
        ends = [consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, each))[1] for each in (0, 1)]
    finally:
        consumer.close()
    return sum(ends)
