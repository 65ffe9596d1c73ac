"""A node behind a real load balancer (HAProxy), which names each client by the PROXY protocol."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafka_dt_protocol.wire.proxy_header import proxy_header
from tests.support.brokers.broker import USERS
from tests.support.identity.tls_listeners import TlsListeners
from tests.support.java.properties import plain
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.gateway import IDENTITY, PORT_BASE, UPSTREAM
from tests.support.nodes.node import Node
from tests.support.nodes.server import server_properties
from tests.support.processes.ports import free_ports
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import CREATE, METADATA, LoginRefused, RawConnection, ms
from tests.support.zookeeper.server import make_chroot

BALANCER = "127.0.0.2"
"""From where HAProxy connects to the node."""
CLUSTER_ID = 1001
"""The id of a broker that has none set."""
CLIENT, OTHER_CLIENT = "127.0.0.7", "127.0.0.8"
PER_IP = 3
HEALTH_CHECKS = 5
WITHIN_S = 20.0
LOCAL = proxy_header(None, None)


@dataclass(frozen=True)
class Balanced:
    """A node, and the ports of the balancer in front of each of its listeners."""

    node: Node
    audit: AuditFolder
    balancer: ChildProcess
    tls: TlsListeners
    plain_port: int
    tls_port: int

    def connect(self, source: str, *, tls: bool = False) -> RawConnection:
        address = f"127.0.0.1:{self.tls_port if tls else self.plain_port}"
        return RawConnection(address, self.tls.context() if tls else None, source=source)


@pytest.fixture(scope="module")
def balanced(tmp_path_factory: pytest.TempPathFactory, zookeeper_address: str) -> Iterator[Balanced]:
    if shutil.which("haproxy") is None:
        reason = "haproxy is not installed (Debian's package haproxy)"
        if os.environ.get("CI"):
            pytest.fail(f"{reason} (with CI set, this is no reason to skip)")
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("balanced")
    tls, audit = TlsListeners.make(folder), AuditFolder(folder / "audit")
    node_port, front_port = free_ports(2), free_ports(2)
    node = Node(
        folder,
        {
            **server_properties(make_chroot(zookeeper_address, "balanced")),
            **tls.properties,
            **audit.properties(),
            "listeners": f"SASL_PLAINTEXT://127.0.0.1:{node_port},SASL_SSL://127.0.0.1:{node_port + 1}",
            "kafka.dt.proxy.protocol": "required",
            "kafka.dt.proxy.protocol.networks": f"{BALANCER}/32",
            "max.connections.per.ip": PER_IP,
            "kafka.dt.workers": 1,
        },
    )
    configuration = folder / "haproxy.cfg"
    configuration.write_text(
        _haproxy((front_port, node_port, "send-proxy"), (front_port + 1, node_port + 1, "send-proxy-v2"))
    )
    balancer = ChildProcess("haproxy", ["haproxy", "-db", "-f", str(configuration)], folder / "haproxy.log")
    with node:
        balancer.start()
        try:
            eventually(lambda: not _refuses(front_port), WITHIN_S)
            yield Balanced(node, audit, balancer, tls, front_port, front_port + 1)
        finally:
            balancer.stop()
    node.check_log()


def _haproxy(*ways: tuple[int, int, str]) -> str:
    """Forward each port to one of the node, whose health is checked by a header of the balancer's own (LOCAL)."""
    sections = [
        f"listen to{port}\n  bind 127.0.0.1:{front}\n"
        f"  server node 127.0.0.1:{port} source {BALANCER} {send} check inter 100 check-send-proxy\n"
        for front, port, send in ways
    ]
    defaults = "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1m\n  timeout server 1m\n"
    return (
        "global\n  log stdout format raw local0\n"
        + defaults
        + "  log global\n  option log-health-checks\n"
        + "".join(sections)
    )


def _refuses(port: int) -> bool:
    try:
        RawConnection(f"127.0.0.1:{port}").close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize("tls", [False, True], ids=["version 1", "version 2, TLS behind it"])
def test_acls_audit_and_log_have_the_clients_own_address(balanced: Balanced, *, tls: bool) -> None:
    source = CLIENT if tls else OTHER_CLIENT
    with balanced.connect(source, tls=tls) as connection:
        connection.login_plain("alice", USERS["alice"])
        assert not connection.ask(CREATE, 2, renewers=(), max_lifetime=ms(-1)).error_code.value
    (created,) = balanced.audit.wait_for(1, type="token_created", client_address=source)
    assert created["owner"] == "User:alice"
    with balanced.connect(source, tls=tls) as connection, contextlib.suppress(LoginRefused):
        connection.login_plain("alice", "wrong")
    eventually(lambda: _failed(balanced.node, source), WITHIN_S)
    assert not re.search(rf"failed authentication.*{BALANCER}|{BALANCER}.*failed", balanced.node.log())


def test_limits_of_addresses_hold_for_clients_and_not_for_the_balancer(balanced: Balanced) -> None:
    with contextlib.ExitStack() as opened:
        for source in (CLIENT, OTHER_CLIENT):
            for _ in range(PER_IP):
                opened.enter_context(balanced.connect(source)).login_plain("alice", USERS["alice"])
        with balanced.connect(CLIENT) as one_too_many:
            assert one_too_many.closed()
    assert f"Refusing a connection of {CLIENT}: its address has {PER_IP} connections" in balanced.node.log()


def test_a_client_that_connects_directly_is_refused_with_and_without_a_header(balanced: Balanced) -> None:
    direct = balanced.node.address("SASL_PLAINTEXT")
    with RawConnection(direct, source="127.0.0.9") as forged:
        forged.send(b"PROXY TCP4 127.0.0.7 127.0.0.1 1 9092\r\n")
        assert forged.closed()
    with RawConnection(direct, source="127.0.0.9") as honest, contextlib.suppress(OSError):
        honest.send(b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff")
        assert honest.closed()
    lines = [line for line in balanced.node.log().splitlines() if "connection of 127.0.0.9:" in line]
    assert [line.rpartition("SASL_PLAINTEXT: ")[2] for line in lines] == [
        "a PROXY header from an address outside of kafka.dt.proxy.protocol.networks",
        "no PROXY header (kafka.dt.proxy.protocol=required)",
    ]


def test_health_checks_log_nothing_and_find_the_node_healthy(balanced: Balanced) -> None:
    for header in (b"", LOCAL) * HEALTH_CHECKS:
        with RawConnection(balanced.node.address("SASL_PLAINTEXT"), source=BALANCER) as check:
            check.send(header)
    with balanced.connect(CLIENT) as later:
        later.login_plain("alice", USERS["alice"])
    assert BALANCER not in balanced.node.log()
    assert "DOWN" not in balanced.balancer.output()  # HAProxy has checked all the time


def _failed(node: Node, source: str) -> bool:
    return bool(
        re.search(rf"connection of {re.escape(source)}:\d+ .*failed authentication, 'alice' by PLAIN", node.log())
    )


# A gateway that passes the addresses on


def test_a_gateway_tells_the_cluster_the_address_of_each_client_in_front_of_tls(
    tmp_path: Path, zookeeper_address: str
) -> None:
    tls, audit = TlsListeners.make(tmp_path), AuditFolder(tmp_path / "audit")
    behind = {
        **server_properties(make_chroot(zookeeper_address, "behind")),
        **tls.properties,
        **audit.properties(),
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "kafka.dt.proxy.protocol": "required",
        "kafka.dt.proxy.protocol.networks": "127.0.0.1/32",
        "kafka.dt.workers": 1,
    }
    with Node(tmp_path, behind, "cluster") as cluster:
        front = {
            **server_properties(make_chroot(zookeeper_address, "front")),
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "kafka.dt.workers": 1,
            PORT_BASE: free_ports(1) - CLUSTER_ID,
            IDENTITY: "service",
            f"{UPSTREAM}.proxy.protocol": "v2",
            f"{UPSTREAM}.bootstrap.servers": cluster.address("SASL_SSL"),
            f"{UPSTREAM}.security.protocol": "SASL_SSL",
            f"{UPSTREAM}.sasl.mechanism": "PLAIN",
            f"{UPSTREAM}.sasl.jaas.config": plain("bob", USERS["bob"])["sasl.jaas.config"],
            f"{UPSTREAM}.ssl.truststore.location": tls.properties["ssl.truststore.location"],
        }
        with Node(tmp_path, front, "gateway") as gateway:
            for source in (CLIENT, OTHER_CLIENT):
                with RawConnection(gateway.sasl, source=source) as connection:
                    connection.login_plain("alice", USERS["alice"])
                    connection.ask(METADATA, 4, topics=(), allow_auto_topic_creation=False)
                audit.wait_for(1, type="login", outcome="ok", principal="User:bob", client_address=source)
            audit.wait_for(1, type="login", outcome="ok", principal="User:bob", client_address="127.0.0.1")
        gateway.check_log()
    cluster.check_log()
