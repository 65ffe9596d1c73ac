"""Audit events of a gateway: logins, tokens that it makes, and the ACLs and SCRAM users that the cluster changes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import aiokafka
import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.identity.acls.binding import AclOperation, ResourceType
from kafka_dt.jaas import PLAIN_LOGIN_MODULE
from tests.interop.gateway.conftest import GatewayMaker
from tests.support.brokers.broker import USERS
from tests.support.brokers.kraft import KraftCluster
from tests.support.brokers.kraft_operator import Operator
from tests.support.identity.acl_client import Acl, BareAcl, ask_to_create, create_acls, delete_acls, filter_of
from tests.support.java.properties import plain
from tests.support.java.tools import KafkaTools
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.gateway import IDENTITY, PORTS, Gateway, gateway_properties
from tests.support.nodes.node import ADMIN, secrets_of
from tests.support.processes.ports import free_ports
from tests.support.protocol.raw import LoginRefused, RawConnection
from tests.support.zookeeper.server import make_chroot

COUNT = 20
PLAIN_JAAS: Final = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
RELAYING: Final = {IDENTITY: "relay", PLAIN_JAAS: f"{PLAIN_LOGIN_MODULE} required;"}
"""Settings of a gateway without users: PLAIN is the cluster's."""


async def test_logins_at_a_gateway_and_tokens_made_there_are_events(
    cluster: KraftCluster, gateway_connect: str, topic: str, tmp_path: Path
) -> None:
    folder = AuditFolder(tmp_path / "audit")
    connect = make_chroot(gateway_connect.partition("/")[0], "audited-gateway")
    properties = gateway_properties(connect, cluster, free_ports(PORTS)) | folder.properties()
    with Gateway(tmp_path, properties, name="audited-gateway") as gateway:
        async with gateway.client("alice") as client:
            token = await client.create()
        login = gateway.settings(token, "aiokafka")
        async with aiokafka.AIOKafkaProducer(**login, client_id="a-producer") as producer:
            for number in range(COUNT):
                await producer.send_and_wait(topic, b"%d" % number)
        with gateway.connect() as connection, pytest.raises(LoginRefused):
            connection.login_plain("alice", "wrong")
        with gateway.connect() as connection:
            connection.send(b"GET / HTTP/1.1\r\n\r\n")
            assert connection.closed()
        folder.wait_for(1, type="login", reason="broken_exchange")
    by_token = folder.events(type="login", outcome="ok", by_token=True)
    assert len(by_token) >= 2  # at the port of the listener and at that of a broker
    for event in by_token:
        assert (event["token_id"], event["principal"]) == (token.token_id, "User:alice")
        assert event["client_id"].startswith("a-producer")
    assert len(folder.events(type="token_created", token_id=token.token_id)) == 1
    assert len(folder.events(type="login", reason="wrong_credentials", principal="User:alice")) == 1
    text = folder.text()
    assert not any(secret in text for secret in secrets_of(token))
    gateway.check_log()


def change_and_look(tools: KafkaTools, gateway: Gateway, folder: AuditFolder) -> None:
    """Change ACLs and a user of the cluster with Kafka's own tools, and see that each change is an event."""
    server, name, password = gateway.address("SASL_PLAINTEXT"), f"t-{uuid.uuid4().hex}", uuid.uuid4().hex
    login = plain(ADMIN, USERS[ADMIN])
    words = ("--topic", name, "--allow-principal", "User:carol", "--operation", "Read", "--operation", "Write")
    tools.acls(server, login, "--add", *words).ok()
    assert name in tools.acls(server, login, "--list", "--topic", name).ok().stdout
    tools.acls(server, login, "--remove", "--force", *words).ok()
    credential = f"SCRAM-SHA-256=[iterations=4096,password={password}]"
    of_user = ("--entity-type", "users", "--entity-name", name)
    tools.configs(server, login, "--alter", *of_user, "--add-config", credential).ok()
    tools.configs(server, login, "--alter", *of_user, "--delete-config", "SCRAM-SHA-256").ok()
    # kafka-acls.sh lists the ACLs first, which bob may not do either.
    asked = [Acl("User:carol", each, ResourceType.TOPIC, name) for each in (AclOperation.READ, AclOperation.WRITE)]
    with gateway.connect(user="bob") as connection:
        assert create_acls(connection, *asked) == [ErrorCode.cluster_authorization_failed] * 2

    acls = {f"ALLOW {each} of LITERAL Topic:'{name}' to User:carol from *" for each in ("Read", "Write")}
    by_admin = {"outcome": "ok", "principal": f"User:{ADMIN}"}
    for kind in ("acl_created", "acl_deleted"):
        for acl in acls:
            folder.wait_for(1, type=kind, acl=acl, **by_admin)
    folder.wait_for(2, type="scram_user_changed", user=name, **by_admin)
    (refused,) = folder.wait_for(1, type="acl_created", outcome="refused", principal="User:bob")
    assert (refused["reason"], set(refused["entries"])) == ("CLUSTER_AUTHORIZATION_FAILED", acls)
    assert password not in folder.text()


@pytest.fixture(
    scope="module", params=[{}, pytest.param(RELAYING, marks=pytest.mark.soak)], ids=["owner-token", "relay"]
)
def audited(
    request: pytest.FixtureRequest,
    other_gateway: GatewayMaker,
    operator: Operator,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Gateway, AuditFolder]]:
    """A gateway in strict mode, and its events; User:admin may do everything with the cluster."""
    operator.allow(ADMIN, ResourceType.CLUSTER, "kafka-cluster")
    folder = AuditFolder(tmp_path_factory.mktemp("audited") / "audit")
    with other_gateway("audited", **request.param, **folder.properties(mode="strict")) as gateway:
        yield gateway, folder


def test_changes_of_acls_and_users_by_kafkas_tools_are_events(
    audited: tuple[Gateway, AuditFolder], kafka_4x: KafkaTools
) -> None:
    change_and_look(kafka_4x, *audited)


def test_a_client_gets_the_clusters_own_answer_to_a_change_with_some_refused_entries(
    audited: tuple[Gateway, AuditFolder], cluster: KraftCluster
) -> None:
    gateway, folder = audited
    good = Acl("User:dave", AclOperation.READ, ResourceType.TOPIC, f"t-{uuid.uuid4().hex}")
    bad = BareAcl("dave", AclOperation.READ, ResourceType.TOPIC, good.name)

    def told(connection: RawConnection) -> list[tuple[int, str | None]]:
        results = ask_to_create(connection, good, bad, good).results
        return [(each.error_code.value, each.error_message) for each in results]

    with gateway.connect(user=ADMIN) as connection:
        through_gateway = told(connection)
        assert delete_acls(connection, filter_of(good)) == [(0, {good})]
    with RawConnection(cluster.brokers[1].sasl) as connection:
        connection.login_plain(ADMIN, USERS[ADMIN])
        assert told(connection) == through_gateway
        delete_acls(connection, filter_of(good))
    text = f"ALLOW Read of LITERAL Topic:'{good.name}' to {{}} from *"
    folder.wait_for(2, type="acl_created", outcome="ok", acl=text.format("User:dave"))
    folder.wait_for(1, type="acl_deleted", outcome="ok", acl=text.format("User:dave"))
    (refused,) = folder.wait_for(1, type="acl_created", outcome="refused", acl=text.format("dave"))
    assert "count" not in refused
