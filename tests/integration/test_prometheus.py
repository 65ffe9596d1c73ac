"""A real Prometheus scrapes a real node: each alert fires when what it is about is caused, and the dashboard has data.

Alerts and panels about a cluster behind a gateway are in tests/interop/gateway/test_gateway_alerts.py, those about a
cluster whose tokens a node serves in tests/interop/kraft/test_kraft_alerts.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from kafka_dt.client import DelegationToken
from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode
from tests.support.docs.documents import ROOT
from tests.support.identity.tls_listeners import TlsListeners
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.full_disk import full_disk
from tests.support.nodes.metrics import metrics_properties
from tests.support.nodes.node import WORKERS, Node, node_properties
from tests.support.nodes.prometheus import ALERTS, Prometheus, dashboard_queries, programs
from tests.support.processes.ports import free_ports
from tests.support.processes.process import hanging
from tests.support.processes.waiting import eventually
from tests.support.processes.wall_clock import WallClock
from tests.support.protocol.raw import CREATE, DESCRIBE, ConnectionClosed, LoginRefused, ms
from tests.support.zookeeper.server import child_zookeeper
from tests.support.zookeeper.token_znodes import token_znodes

pytestmark = pytest.mark.soak

WITHIN_S = 60.0
STALENESS_MS = 3_000
AUDIT_BUFFER_BYTES = 4_096
REFUSED_LOGINS = 120
"""More than 1/s of a minute."""
UNDECIDED_LOGINS = 20
RESTARTS = 4
BEHIND_S = 20
AT_ONCE = 8


def test_the_rules_and_their_own_tests_hold() -> None:
    for arguments in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]):
        command = [str(programs() / "promtool"), *arguments]
        done = subprocess.run(command, cwd=ALERTS.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_configuration_of_the_containers(tmp_path: Path) -> None:
    text = (ROOT / "docker/monitoring/prometheus.yml").read_text().replace("/etc/alerts", str(ALERTS.parent))
    (tmp_path / "prometheus.yml").write_text(text)
    command = [str(programs() / "promtool"), "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 rule files found" in done.stdout


def test_a_node_that_is_not_there_is_missing_and_down_until_it_is(zookeeper_connect: str, tmp_path: Path) -> None:
    port = free_ports(1)
    prometheus = Prometheus(programs(), tmp_path, port)
    with prometheus.process.starting():
        prometheus.wait_for_alerts("KafkaDtMissing", "KafkaDtDown")
        with Node(tmp_path, node_properties(zookeeper_connect) | metrics_properties(port)):
            prometheus.wait_until_scraping()
            eventually(lambda: prometheus.firing() == set(), WITHIN_S)
        prometheus.process.stop()


def fail_to_log_in(node: Node, count: int, token: DelegationToken | None = None) -> None:
    """Log in some times: by a token, or with a wrong password."""

    def log_in() -> None:
        with suppress(LoginRefused, ConnectionClosed, ConnectionError):
            if token is not None:
                node.connect_by_token(token).close()
            else:
                with node.connect() as connection:
                    connection.login_plain("alice", "no password of hers")

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for attempt in [threads.submit(log_in) for _ in range(count)]:
            attempt.result()


def test_alerts_of_a_node_that_has_lost_its_zookeeper(tmp_path: Path) -> None:
    port = free_ports(1)
    with child_zookeeper(tmp_path / "zookeeper") as zookeeper:
        staleness = {"kafka.dt.zookeeper.max.staleness.ms": STALENESS_MS, "zookeeper.session.timeout.ms": STALENESS_MS}
        node = Node(tmp_path, node_properties(zookeeper.address) | metrics_properties(port) | staleness)
        with node, Prometheus(programs(), tmp_path, port).running() as prometheus:
            token = node.make_token("alice")
            zookeeper.kill()
            prometheus.wait_for_alerts("KafkaDtNotReady", "KafkaDtGoesStale")
            fail_to_log_in(node, UNDECIDED_LOGINS, token)
            prometheus.wait_for_alerts("KafkaDtLoginsUndecided")


def test_alerts_of_a_node_with_a_wrong_clock_and_a_damaged_token(zookeeper_connect: str, tmp_path: Path) -> None:
    clock = WallClock(tmp_path / "clock")
    properties = node_properties(zookeeper_connect) | metrics_properties(port := free_ports(1))
    properties["delegation.token.expiry.check.interval.ms"] = 1_000
    node = Node(tmp_path, properties, environment=clock.environment)
    with node, Prometheus(programs(), tmp_path, port).running() as prometheus:
        clock.move(-BEHIND_S)
        with token_znodes(zookeeper_connect) as znodes:
            znodes.put("damaged", b"{")
            znodes.kazoo.create(TokenChangeZnode.PREFIX, b"damaged", sequence=True)
        prometheus.wait_for_alerts("KafkaDtClockOff", "KafkaDtTokensUnreadable")


def test_alerts_of_a_node_whose_clients_workers_and_disk_fail(zookeeper_connect: str, tmp_path: Path) -> None:
    tls = TlsListeners.make(tmp_path)
    audit = AuditFolder(tmp_path / "audit").properties(buffer_bytes=AUDIT_BUFFER_BYTES)
    properties = node_properties(zookeeper_connect) | metrics_properties(port := free_ports(1)) | audit
    properties |= tls_listener(tls, properties)
    node = Node(tmp_path, properties)
    with node, Prometheus(programs(), tmp_path, port).running() as prometheus:
        prometheus.wait_for_alerts("KafkaDtCertificateEnds")  # those of tests last a day
        with full_disk(node):
            fail_to_log_in(node, REFUSED_LOGINS)
            prometheus.wait_for_alerts("KafkaDtLoginsRefused", "KafkaDtAuditEventsLost")
        with hanging(node.workers()[0]):
            prometheus.wait_for_alerts("KafkaDtEventLoopLags")
        for _ in range(RESTARTS):
            kill_a_worker(node)
        prometheus.wait_for_alerts("KafkaDtWorkersRestart")


def test_the_alert_of_a_node_that_has_as_many_connections_as_it_may(zookeeper_connect: str, tmp_path: Path) -> None:
    port = free_ports(1)
    properties = node_properties(zookeeper_connect, max_connections_per_ip=1) | metrics_properties(port)
    with (
        Node(tmp_path, properties) as node,
        Prometheus(programs(), tmp_path, port).running() as prometheus,
        node.connect() as first,
    ):
        first.handshake("PLAIN")  # it is there, so that the next ones are too many
        prometheus.wait_for_alerts("KafkaDtConnectionsRefused", doing=lambda: node.connect().close())


def kill_a_worker(node: Node) -> None:
    """Kill a worker, and wait until another one has taken its place."""
    before = node.workers()
    os.kill(before[0], signal.SIGKILL)
    eventually(lambda: before[0] not in node.workers() and len(node.workers()) == WORKERS, WITHIN_S)


def tls_listener(tls: TlsListeners, properties: dict[str, object]) -> dict[str, object]:
    """Settings of one more listener, with TLS."""
    return {
        **{key: value for key, value in tls.properties.items() if key.startswith(("ssl.", "listener.name.sasl_ssl."))},
        "listeners": f"{properties['listeners']},SASL_SSL://127.0.0.1:0",
        "listener.security.protocol.map": f"{properties['listener.security.protocol.map']},SASL_SSL:SASL_SSL",
    }


def test_the_dashboards_queries_of_a_node_have_data(zookeeper_connect: str, tmp_path: Path) -> None:
    tls = TlsListeners.make(tmp_path)
    audit = AuditFolder(tmp_path / "audit").properties()
    properties: dict[str, object] = node_properties(zookeeper_connect) | audit
    properties |= tls_listener(tls, properties)
    properties |= {
        "kafka.dt.metrics.listener": f"https://127.0.0.1:{(port := free_ports(1))}",
        "kafka.dt.metrics.ssl.keystore.location": tls.key_store,
    }
    node = Node(tmp_path, properties)
    of_a_cluster = ("kafka_dt_gateway_", "kafka_dt_revocation_news")
    of_the_node = [query for query in dashboard_queries() if not any(name in query for name in of_a_cluster)]

    def use() -> None:
        """Do what panels show: requests about tokens, and logins, of which the first with a token waits."""
        with node.connect(user="alice") as client:
            client.ask(CREATE, 2, renewers=(), max_lifetime=ms(-1))
            client.ask(DESCRIBE, 3, owners=None)
        node.connect_by_token(node.make_token("alice")).close()

    with node, Prometheus(programs(), tmp_path, port, "https").running() as prometheus:
        rules = prometheus.ask("rules")["groups"][0]["rules"]
        written = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
        assert [rule["name"] for rule in rules] == [rule["alert"] for rule in written]
        prometheus.wait_for_data(of_the_node, use)
        assert prometheus.firing() == {"KafkaDtCertificateEnds"}
