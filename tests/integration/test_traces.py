"""Traces of a node, as a collector receives them by OTLP over HTTP."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nodes.collector import Collector, attributes, collecting
from tests.support.nodes.node import Node, node_properties
from tests.support.processes.waiting import eventually, on_this_machine
from tests.support.protocol.raw import CREATE, METADATA, RawConnection, ms

WITHIN_S = 20.0

if not os.environ.get("CI"):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


def has_loaded(pid: int) -> bool:
    """Whether a process has loaded the library in which OpenTelemetry writes its messages (protobuf's)."""
    return "_upb" in Path(f"/proc/{pid}/maps").read_text()


def use(connection: RawConnection) -> None:
    """Create a token, and ask for what needs no ZooKeeper."""
    assert not connection.ask(CREATE, 2, renewers=(), max_lifetime=ms(-1)).error_code.value
    connection.ask(METADATA, 4, topics=(), allow_auto_topic_creation=False)


def test_a_request_is_a_span_and_its_round_trip_to_zookeeper_another_within_it(
    zookeeper_connect: str, tmp_path: Path, collector: Collector
) -> None:
    node = Node(tmp_path, node_properties(zookeeper_connect, kafka_dt_workers=1), environment=collector.environment)
    with node, node.connect(user="alice") as connection:
        use(connection)
        eventually(lambda: bool(collector.named("Metadata")), WITHIN_S)
        assert all(map(has_loaded, node.workers()))
    (created,), (asked,) = collector.named("CreateDelegationToken"), collector.named("Metadata")
    assert "ZooKeeper multi" in collector.within(created)
    assert not collector.within(asked)
    assert all(span.parent_span_id for span in collector.spans if span.name.startswith("ZooKeeper"))
    found = attributes(created)
    assert (found["rpc.method"], found["client.address"], found["enduser.id"]) == (
        *("CreateDelegationToken", "127.0.0.1"),
        "User:alice",
    )
    assert collector.services == {"kafka-dt"}


def test_without_opentelemetrys_variables_nothing_is_traced_and_nothing_imported(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    with Node(tmp_path, node_properties(zookeeper_connect, kafka_dt_workers=1)) as node:
        with node.connect(user="alice") as connection:
            use(connection)
        assert not any(map(has_loaded, node.workers()))


def test_a_collector_that_does_not_answer_delays_no_request_and_not_the_end(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(on_this_machine(WITHIN_S))
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        node = Node(tmp_path, node_properties(zookeeper_connect, kafka_dt_workers=1), environment=environment)
        with node, node.connect(user="alice") as connection:
            use(connection)
            sending, _ = silent.accept()
            with sending:
                use(connection)
                assert node.stop() == 0
