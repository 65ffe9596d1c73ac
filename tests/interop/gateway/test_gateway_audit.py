"""Audit events of a gateway: the logins at it and the tokens it makes; what it passes on is the cluster's to tell."""

from __future__ import annotations

from pathlib import Path

import aiokafka
import pytest

from tests.support.brokers.kraft import KraftCluster
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.gateway import PORTS, Gateway, gateway_properties
from tests.support.nodes.node import secrets_of
from tests.support.processes.ports import free_ports
from tests.support.protocol.raw import LoginRefused
from tests.support.zookeeper.server import make_chroot

COUNT = 20


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
