"""Traces of a node that serves the tokens of a real cluster: what goes to the cluster is in them."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafka_dt.identity.acls.binding import AclOperation, ResourceType
from tests.support.brokers.kraft import KraftCluster
from tests.support.identity.acl_client import Acl, create_acls
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.collector import attributes, collecting
from tests.support.nodes.gateway import PORTS, Gateway, upstream_store_properties
from tests.support.processes.ports import free_ports
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import METADATA

WITHIN_S = 20.0

if not os.environ.get("CI"):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")


def test_a_request_that_the_cluster_answers_is_a_span_and_so_is_the_connection_to_it(
    cluster: KraftCluster, tmp_path: Path
) -> None:
    folder = AuditFolder(tmp_path / "audit")
    properties = upstream_store_properties(cluster, free_ports(PORTS)) | {"kafka.dt.workers": 1} | folder.properties()
    with collecting() as collector, ExitStack() as stack:
        node = stack.enter_context(Gateway(tmp_path, properties, name="traced", environment=collector.environment))
        with node.connect_by_token(node.make_token("alice")) as connection:
            connection.ask(METADATA, 1, topics=())
            create_acls(connection, Acl("User:carol", AclOperation.READ, ResourceType.TOPIC, "traced"))
        eventually(lambda: bool(collector.named("CreateAcls")), WITHIN_S)
    (created,), forwarded = collector.named("CreateDelegationToken"), collector.named("Metadata")
    assert collector.within(created) == {"Kafka CreateDelegationToken"}
    assert "server.address" not in attributes(created)
    assert {attributes(span)["server.address"] for span in forwarded} <= {cluster.sasl}
    assert {attributes(span)["enduser.id"] for span in forwarded} == {"User:alice"}
    (connected,), (changed,) = collector.named("Kafka connection"), collector.named("CreateAcls")
    found = attributes(connected)
    assert (found["server.address"], found["enduser.id"]) == (cluster.sasl, "User:alice")
    assert collector.within(changed) == {"Kafka CreateAcls"}
