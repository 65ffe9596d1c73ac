"""Audit events of nodes that serve the tokens of a Kafka 4 cluster: ACLs and SCRAM users that the cluster changes."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from kafka_dt.identity.acls.binding import CLUSTER_NAME, AclOperation, ResourceType
from tests.interop.gateway.test_gateway_audit import RELAYING, change_and_look
from tests.interop.kraft.conftest import started
from tests.support.brokers.kraft import KraftCluster
from tests.support.identity.acl_client import Acl, create_acls
from tests.support.java.tools import KafkaTools
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.node import ADMIN
from tests.support.protocol.raw import RawConnection


@pytest.mark.parametrize("settings", [pytest.param({}, marks=pytest.mark.soak), RELAYING], ids=["owner-token", "relay"])
def test_changes_of_acls_and_users_by_kafkas_tools_are_events(
    cluster: KraftCluster,
    kafka_4x: KafkaTools,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    settings: dict[str, object],
) -> None:
    with RawConnection(cluster.plaintext) as connection:
        assert create_acls(
            connection, Acl(f"User:{ADMIN}", AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
        ) == [0]
    folder = AuditFolder(tmp_path / "audit")
    more = {**settings, **folder.properties(mode="strict"), "kafka.dt.workers": 1}
    with ExitStack() as stack:
        gateway = started(stack, cluster, tmp_path_factory, "audited", **more)
        change_and_look(kafka_4x, gateway, folder)
        gateway.check_log()
