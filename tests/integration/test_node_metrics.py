"""The metrics of a real node: what clients do is counted, once for all workers, also when a process is killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_dt.client import RequestRefused
from kafka_dt.metrics.gauges import SAMPLE_SECONDS
from kafka_dt.monitoring.pages import FRESH_S
from kafka_dt.monitoring.process import PROCESS_NAME
from tests.support.brokers.broker import SECRET_KEY, USERS
from tests.support.identity.tls_listeners import TlsListeners
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.metrics import MetricsEndpoint, metrics_properties
from tests.support.nodes.node import Node, children, found_in_memory, node_properties, process_name, secrets_of
from tests.support.processes.ports import free_ports
from tests.support.processes.process import ProcessFailed
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import DESCRIBE, LoginRefused, RawConnection
from tests.support.zookeeper.server import make_chroot

WITHIN_S = 15.0


@pytest.fixture(scope="module")
def endpoint() -> MetricsEndpoint:
    return MetricsEndpoint(free_ports(1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("measured")


@pytest.fixture(scope="module")
def node(zookeeper_address: str, endpoint: MetricsEndpoint, folder: Path) -> Iterator[Node]:
    """A node that is scraped; its tests only look at what grows."""
    audit = AuditFolder(folder / "audit").properties()
    properties = node_properties(make_chroot(zookeeper_address, "metrics"))
    with Node(folder, properties | metrics_properties(endpoint.port) | audit) as running:
        yield running
    running.check_log()


def metrics_process(node: Node) -> int:
    """The process that serves the metrics."""
    assert node.process.pid is not None
    (found,) = (pid for pid in children(node.process.pid) if process_name(pid) == PROCESS_NAME)
    return found


class Growth:
    """How much a counter has grown."""

    def __init__(self, endpoint: MetricsEndpoint, name: str, **labels: str) -> None:
        self._endpoint = endpoint
        self._name = name
        self._labels = labels
        time.sleep(SAMPLE_SECONDS + FRESH_S)  # what is shown may be that old
        self._before = self._now()

    def reaches(self, amount: float) -> None:
        eventually(lambda: self._now() - self._before >= amount, WITHIN_S)
        assert self._now() - self._before == amount

    def _now(self) -> float:
        return self._endpoint.value(self._name, **self._labels) or 0.0


def test_logins_are_counted_by_mechanism_and_result(node: Node, endpoint: MetricsEndpoint) -> None:
    good = Growth(endpoint, "kafka_dt_logins_total", mechanism="PLAIN", result="ok")
    bad = Growth(endpoint, "kafka_dt_logins_total", mechanism="PLAIN", result="wrong_credentials")
    unknown = Growth(endpoint, "kafka_dt_logins_total", mechanism="other", result="unsupported_mechanism")
    connections = Growth(endpoint, "kafka_dt_connections_total")
    for _ in range(5):
        node.connect(user="alice").close()
    with RawConnection(node.sasl) as guesser, pytest.raises(LoginRefused):
        log_in(guesser, "PLAIN", "alice")
    with RawConnection(node.sasl) as odd:
        odd.handshake("MADE-UP")
    good.reaches(5)
    bad.reaches(1)
    unknown.reaches(1)
    connections.reaches(7)


async def test_the_life_of_a_token_is_counted(node: Node, endpoint: MetricsEndpoint) -> None:
    requests = {
        (operation, result): Growth(endpoint, "kafka_dt_token_requests_total", operation=operation, result=result)
        for operation, result in (
            ("create", "ok"),
            ("renew", "ok"),
            ("expire", "ok"),
            ("renew", "DELEGATION_TOKEN_NOT_FOUND"),
        )
    }
    logins = Growth(endpoint, "kafka_dt_logins_total", mechanism="SCRAM-SHA-256", result="ok")
    before = endpoint.value("kafka_dt_tokens") or 0  # other tests may have left some
    async with node.client("alice") as client:
        token = await client.create()
        async with node.token_client(token):
            pass
        await client.renew(token.hmac)
        await asyncio.to_thread(eventually, lambda: endpoint.value("kafka_dt_tokens") == before + 1, WITHIN_S)
        assert endpoint.value("kafka_dt_tokens_expiring_within_a_day") == before + 1
        await client.expire(token.hmac)
        with pytest.raises(RequestRefused):
            await client.renew(token.hmac)
    for growth in requests.values():
        await asyncio.to_thread(growth.reaches, 1)
    await asyncio.to_thread(logins.reaches, 1)
    create = endpoint.value("kafka_dt_request_duration_seconds_count", api="CreateDelegationToken")
    assert create is not None
    assert create >= 1
    await asyncio.to_thread(eventually, lambda: endpoint.value("kafka_dt_tokens") == before, WITHIN_S)


def test_open_connections_are_those_of_all_workers(node: Node, endpoint: MetricsEndpoint) -> None:
    with node.on_every_worker(lambda: node.connect("PLAINTEXT")):
        eventually(lambda: endpoint.value("kafka_dt_connections", listener="PLAINTEXT") == 2, WITHIN_S)
    eventually(lambda: endpoint.value("kafka_dt_connections", listener="PLAINTEXT") == 0, WITHIN_S)


def test_each_worker_tells_its_staleness_and_its_connection_to_zookeeper(node: Node, endpoint: MetricsEndpoint) -> None:
    staleness = endpoint.series("kafka_dt_staleness_seconds")
    assert set(staleness) == {(("worker", "0"),), (("worker", "1"),)}
    assert all(0 <= value <= 30 for value in staleness.values())
    assert endpoint.value("kafka_dt_staleness_limit_seconds") == 30
    assert set(endpoint.series("kafka_dt_store_connected").values()) == {1}
    eventually(lambda: endpoint.value("kafka_dt_clock_ahead_seconds") == 0, WITHIN_S)
    assert endpoint.value("kafka_dt_tokens_unreadable") == 0
    answers = endpoint.value("kafka_dt_store_request_duration_seconds_count")
    assert answers is not None
    assert answers > 0
    assert node.workers()


def test_written_audit_events_are_counted_by_kind(node: Node, endpoint: MetricsEndpoint) -> None:
    written = Growth(endpoint, "kafka_dt_audit_events_total", type="login", outcome="ok", sink="files")
    with node.connect(user="bob"):
        written.reaches(1)
    lost = endpoint.series("kafka_dt_audit_events_lost_total")
    assert lost
    assert set(lost.values()) == {0}


async def test_no_name_that_a_client_sends_becomes_a_label(node: Node, endpoint: MetricsEndpoint) -> None:
    async with node.client("alice", client_id="mark-client") as client:
        token = await client.create()
        async with node.token_client(token, client_id="mark-client"):
            pass
    for login in (("PLAIN", "mark-user"), ("SCRAM-SHA-256", "mark-user")):
        with RawConnection(node.sasl) as refused, pytest.raises(LoginRefused):
            log_in(refused, *login)
    with RawConnection(node.sasl) as odd:
        odd.handshake("mark-mechanism")
    text = await asyncio.to_thread(endpoint.scrape)
    for mark in ("mark-", "127.0.0.1", "alice", token.token_id, *secrets_of(token), *USERS.values()):
        assert mark not in text


def log_in(connection: RawConnection, mechanism: str, user: str, password: str = "wrong") -> None:
    if mechanism == "PLAIN":
        connection.login_plain(user, password)
    else:
        connection.login_scram(user, password, mechanism)


def test_the_sums_of_a_node_do_not_go_back_when_a_worker_is_killed_and_its_gauges_vanish(
    node: Node, endpoint: MetricsEndpoint
) -> None:
    with node.on_every_worker(lambda: node.connect(user="alice")) as connections:
        eventually(lambda: endpoint.value("kafka_dt_connections", listener="SASL_PLAINTEXT") == 2, WITHIN_S)
        restarts = Growth(endpoint, "kafka_dt_worker_restarts_total")
        logins = Growth(endpoint, "kafka_dt_logins_total", mechanism="PLAIN", result="ok")
        victim = min(connections)
        os.kill(victim, signal.SIGSTOP)  # so that no successor is there before it is looked for
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: endpoint.value("kafka_dt_connections", listener="SASL_PLAINTEXT") == 1, WITHIN_S)
        restarts.reaches(1)
        logins.reaches(0)
        eventually(lambda: endpoint.value("kafka_dt_workers", phase="ready") == 2, WITHIN_S)
    growth = Growth(endpoint, "kafka_dt_logins_total", mechanism="PLAIN", result="ok")
    for _ in range(20):  # some of them at the successor
        node.connect(user="alice").close()
    growth.reaches(20)


def restart(node: Node, endpoint: MetricsEndpoint) -> None:
    """End a worker as a restart of it does, and wait for its successor."""
    before, workers = endpoint.value("kafka_dt_worker_restarts_total") or 0.0, node.workers()
    os.kill(workers[0], signal.SIGTERM)
    eventually(lambda: endpoint.value("kafka_dt_worker_restarts_total") == before + 1, WITHIN_S)
    eventually(lambda: len(endpoint.series("kafka_dt_staleness_seconds")) == len(workers), WITHIN_S)


def test_a_worker_that_ends_by_itself_hands_over_what_it_has_counted_last(
    node: Node, endpoint: MetricsEndpoint
) -> None:
    logins = Growth(endpoint, "kafka_dt_logins_total", mechanism="PLAIN", result="ok")
    connections = Growth(endpoint, "kafka_dt_connections_total")
    written = Growth(endpoint, "kafka_dt_audit_events_total", type="login", outcome="ok", sink="files")
    for _ in range(3):
        for _ in range(20):
            node.connect(user="alice").close()
        restart(node, endpoint)
    logins.reaches(60)
    connections.reaches(60)
    written.reaches(60)


def test_audit_events_that_a_worker_loses_while_it_ends_are_counted(zookeeper_address: str, tmp_path: Path) -> None:
    nowhere = {
        "kafka.dt.audit.kafka.topic": "audit",
        "kafka.dt.audit.kafka.bootstrap.servers": f"127.0.0.1:{free_ports(1)}",
    }
    properties = node_properties(make_chroot(zookeeper_address, "losing")) | {"kafka.dt.workers": 1} | nowhere
    own = MetricsEndpoint(free_ports(1))
    with Node(tmp_path, properties | metrics_properties(own.port)) as running:
        for _ in range(20):
            running.connect(user="alice").close()
        restart(running, own)
        lost = {"type": "login", "outcome": "ok", "sink": "topic"}
        eventually(lambda: own.value("kafka_dt_audit_events_lost_total", **lost) == 20, WITHIN_S)


def test_the_process_that_serves_metrics_may_die_and_comes_back_with_the_same_numbers(
    node: Node, endpoint: MetricsEndpoint
) -> None:
    with node.connect(user="alice") as client:
        workers, victim = node.workers(), metrics_process(node)
        logins = Growth(endpoint, "kafka_dt_logins_total", mechanism="PLAIN", result="ok")
        restarts = Growth(endpoint, "kafka_dt_worker_restarts_total")
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: "The metrics listener: it ended with status -9" in node.log(), WITHIN_S)
        eventually(lambda: serves(endpoint), WITHIN_S)
        assert metrics_process(node) != victim
        logins.reaches(0)
        assert client.ask(DESCRIBE, 3, owners=None).error_code.value == 0
        assert node.workers() == workers
        restarts.reaches(0)


def serves(endpoint: MetricsEndpoint) -> bool:
    with contextlib.suppress(OSError):
        return endpoint.get("/livez")[0] == 200
    return False


def test_a_worker_that_stands_still_is_seen_by_its_staleness_and_its_lag(node: Node, endpoint: MetricsEndpoint) -> None:
    eventually(lambda: endpoint.readiness() == (200, ["ready"]), WITHIN_S)
    frozen = node.workers()[0]
    os.kill(frozen, signal.SIGSTOP)
    try:
        eventually(lambda: max(endpoint.series("kafka_dt_event_loop_lag_seconds").values()) > 3, WITHIN_S)
    finally:
        os.kill(frozen, signal.SIGCONT)
    eventually(lambda: max(endpoint.series("kafka_dt_event_loop_lag_seconds").values()) < 1, WITHIN_S)


def test_the_process_that_serves_metrics_knows_no_secret(node: Node) -> None:
    assert not found_in_memory(metrics_process(node), SECRET_KEY)
    assert found_in_memory(node.workers()[0], SECRET_KEY)


def test_metrics_are_served_over_tls_to_those_who_have_the_password_until_the_node_dies(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    tls = TlsListeners.make(tmp_path)
    properties = {
        "kafka.dt.metrics.listener": f"https://127.0.0.1:{(port := free_ports(1))}",
        "kafka.dt.metrics.ssl.keystore.location": tls.key_store,
        "kafka.dt.metrics.user": "prometheus",
        "kafka.dt.metrics.password": "not-for-the-log",
    }
    friend = MetricsEndpoint(port, "prometheus:not-for-the-log", tls.context())
    stranger = MetricsEndpoint(port, "", tls.context())
    with Node(tmp_path / "node", node_properties(zookeeper_connect) | properties) as running:
        ends = friend.value("kafka_dt_metrics_certificate_expiry_timestamp_seconds")
        assert ends == tls.server.certificate.not_valid_after_utc.timestamp()
        assert stranger.get("/metrics")[0] == 401
        assert stranger.get("/livez") == (200, "alive\n")
        with pytest.raises(OSError, match=r"Remote end closed|reset"):
            MetricsEndpoint(port).get("/livez")
        probe = [str(running.program), "health", "--config", str(running.configuration)]
        assert subprocess.run(probe, capture_output=True, text=True, check=False).stdout == "ready\n"
        assert "not-for-the-log" not in running.log()
        process = metrics_process(running)
        running.kill()
        eventually(lambda: not Path(f"/proc/{process}").exists(), WITHIN_S)


def test_a_port_that_is_taken_is_an_error_that_names_the_setting(zookeeper_connect: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = Node(tmp_path, node_properties(zookeeper_connect) | metrics_properties(port))
        with pytest.raises(ProcessFailed, match=f"kafka.dt.metrics.listener: http://127.0.0.1:{port} is in use"):
            refused.start()
