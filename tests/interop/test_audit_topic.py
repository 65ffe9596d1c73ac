"""Audit events in a topic of real brokers: each of them, over every security protocol, and after brokers were away."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import aiokafka
import pytest

from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.config import audit_settings, from_properties
from kafka_dt.node.audit_trail import event_topic
from tests.support.brokers.broker import USERS, Broker
from tests.support.brokers.kraft import RELEASES, KraftCluster
from tests.support.brokers.kraft_operator import Operator
from tests.support.identity.scram_changes import upsertion
from tests.support.identity.tls_listeners import TlsListeners
from tests.support.java.jvm import Java
from tests.support.java.maven import Bundle, Classpath
from tests.support.nodes.audit import AuditFolder, Event
from tests.support.nodes.node import WORKERS, Node, connected_ports, node_properties, secrets_of
from tests.support.processes.process import ProcessFailed, hanging
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import RawConnection
from tests.support.zookeeper.server import make_chroot

KAFKA = "kafka.dt.audit.kafka"
ALTER_USERS = 51
AUDITOR_PASSWORD = "the password of the auditor"
LOGINS = 300
WITHIN_S = 60.0
IDLE_MS = 1500
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.fixture
def connect(zookeeper_connect: str, request: pytest.FixtureRequest) -> str:
    """The chroot of one node."""
    name = "".join(character if character.isalnum() else "-" for character in request.node.name)
    return make_chroot(zookeeper_connect.partition("/")[0], f"audit-{name[:30]}-{uuid.uuid4().hex[:6]}")


@pytest.fixture(scope="module")
def kraft(
    java: Java, classpath_of: Callable[[Bundle], Classpath], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KraftCluster]:
    """A broker that a test may end and start again."""
    classpath = tuple(jar for bundle in RELEASES["4.x"] for jar in classpath_of(bundle))
    with KraftCluster(
        tmp_path_factory.mktemp("kraft"),
        java=java,
        classpath=classpath,
        brokers=1,
        overrides={"connections.max.idle.ms": IDLE_MS, "auto.create.topics.enable": False},
    ) as running:
        yield running


def audited(
    folder: Path, connect: str, servers: str, buffer_bytes: int = 1024 * 1024, **kafka: object
) -> tuple[Node, AuditFolder, str]:
    """A node that writes its events to a folder and a topic of its own."""
    topic = f"audit-{uuid.uuid4().hex}"
    files = AuditFolder(folder / "audit")
    settings = {f"{KAFKA}.{key.replace('_', '.')}": value for key, value in kafka.items()}
    own = {f"{KAFKA}.bootstrap.servers": servers, f"{KAFKA}.topic": topic}
    properties = node_properties(connect) | files.properties(buffer_bytes=buffer_bytes)
    return Node(folder, properties | own | settings), files, topic


def log_in(node: Node, count: int) -> None:
    for _ in range(count):
        node.connect(user="alice").close()


async def records(servers: str, topic: str, count: int) -> list[bytes]:
    """The records of a topic of one partition; there are so many and no more."""
    async with reading(servers, topic) as consumer, asyncio.timeout(WITHIN_S):
        found = [(await consumer.getone()).value for _ in range(count)]
        end = await consumer.end_offsets(consumer.assignment())
        assert list(end.values()) == [count]
    return found


async def events_of(servers: str, topic: str, count: int) -> Mapping[str, Event]:
    """So many different events of a topic; what was sent and not acknowledged may be there twice."""
    found: dict[str, Event] = {}
    async with reading(servers, topic) as consumer, asyncio.timeout(WITHIN_S):
        while len(found) < count:
            event = json.loads((await consumer.getone()).value)
            found[event["id"]] = event
    return found


def reading(servers: str, topic: str) -> Any:
    return aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest", group_id=None)


def by_id(events: list[Event]) -> Mapping[str, Event]:
    found = {event["id"]: event for event in events}
    assert len(found) == len(events)
    return found


@pytest.fixture
def ways(
    broker: Broker, tls: TlsListeners, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Mapping[str, tuple[str, Mapping[str, Any]]]:
    """The address and the settings of a client for each way to come to a broker."""
    key_store, trust_store = tmp_path / "auditor.pem", tmp_path / "trusted.pem"
    key_store.touch(mode=0o600)
    key_store.write_text(tls.alice.key_pem() + tls.alice.chain_pem)
    trust_store.write_text(tls.root.certificate_pem)
    monkeypatch.setenv("KAFKA_DT_TEST_AUDITOR", f'{SCRAM} username="auditor" password="{AUDITOR_PASSWORD}";')
    trust: dict[str, Any] = {"ssl_truststore_location": trust_store}
    scram = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_jaas_config": "env:KAFKA_DT_TEST_AUDITOR"}
    plain = {"sasl_mechanism": "PLAIN", "sasl_jaas_config": f'{PLAIN} username="bob" password="{USERS["bob"]}";'}
    return {
        "PLAINTEXT": (broker.plaintext, {"acks": "1", "compression_type": "gzip"}),
        "SASL_PLAINTEXT": (broker.sasl, {"security_protocol": "SASL_PLAINTEXT", **scram}),
        "SASL_SSL": (broker.address("SASL_SSL"), {"security_protocol": "SASL_SSL", **plain, **trust}),
        "SSL": (
            broker.address("SSL"),
            {"security_protocol": "SSL", "ssl_keystore_location": key_store, **trust},
        ),
    }


@pytest.fixture
def auditor(broker: Broker) -> None:
    """A SCRAM user of the broker."""
    with RawConnection(broker.sasl) as admin:
        admin.login_plain("admin", USERS["admin"])
        answer = admin.ask(ALTER_USERS, 0, deletions=(), upsertions=(upsertion("auditor", AUDITOR_PASSWORD),))
        assert answer.results[0].error_code.value == 0

    def known() -> bool:
        with RawConnection(broker.sasl) as connection:
            try:
                connection.login_scram("auditor", AUDITOR_PASSWORD, "SCRAM-SHA-256")
            except Exception:  # noqa: BLE001 - whatever it is, it is not so yet
                return False
        return True

    eventually(known, WITHIN_S)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL"])
@pytest.mark.usefixtures("auditor")
async def test_the_topic_has_what_the_files_have(
    broker: Broker,
    ways: Mapping[str, tuple[str, Mapping[str, Any]]],
    connect: str,
    tmp_path: Path,
    protocol: str,
) -> None:
    servers, settings = ways[protocol]
    node, files, topic = audited(tmp_path, connect, servers, **settings)
    with node:
        log_in(node, LOGINS)
        async with node.client("alice") as client:
            token = await client.create()
            await client.expire(token.hmac)
    written = files.events()
    assert len(written) == LOGINS + 3
    found = await records(broker.plaintext, topic, len(written))
    assert by_id([json.loads(record) for record in found]) == by_id(written)
    text = b"".join(found).decode()
    for secret in (AUDITOR_PASSWORD, *USERS.values(), *secrets_of(token)):
        assert secret not in text
        assert secret not in node.log()
    assert "lost" not in node.log()
    node.check_log()


async def test_events_of_the_time_when_the_broker_was_away_come_when_it_is_back(
    kraft: KraftCluster, connect: str, tmp_path: Path
) -> None:
    broker = kraft.brokers[1]
    node, files, topic = audited(tmp_path, connect, broker.plaintext, request_timeout_ms=2000)
    Operator(kraft).make_topic(topic, 1)
    with node:
        log_in(node, 10)
        await records(broker.plaintext, topic, 10)
        broker.kill()
        log_in(node, LOGINS)
        eventually(lambda: "cannot be written to topic" in node.log(), WITHIN_S)
        broker.start()
        eventually(lambda: "are written to topic" in node.log(), WITHIN_S)
    written = by_id(files.events())
    assert await events_of(broker.plaintext, topic, len(written)) == written
    assert "are lost" not in node.log()
    node.check_log()


async def test_a_connection_that_the_broker_has_closed_for_its_idleness_is_made_anew(
    kraft: KraftCluster, connect: str, tmp_path: Path
) -> None:
    broker = kraft.brokers[1]
    node, files, topic = audited(tmp_path, connect, broker.plaintext)
    Operator(kraft).make_topic(topic, 1)
    port = int(broker.plaintext.rpartition(":")[2])
    with node:
        for round_ in range(1, 3):
            log_in(node, 10)
            await records(broker.plaintext, topic, 10 * round_)
            workers = node.workers()
            eventually(lambda: not any(port in connected_ports(pid) for pid in workers), WITHIN_S)  # noqa: B023 - at once
    assert len(files.events()) == 20
    node.check_log()


async def test_what_does_not_fit_while_the_broker_is_away_is_lost_and_counted(
    kraft: KraftCluster, connect: str, tmp_path: Path
) -> None:
    broker = kraft.brokers[1]
    node, _, topic = audited(tmp_path, connect, broker.plaintext, request_timeout_ms=1000, buffer_bytes=20_000)
    Operator(kraft).make_topic(topic, 1)
    with node:
        log_in(node, 20)
        await records(broker.plaintext, topic, 20)
        broker.kill()
        log_in(node, LOGINS)
        eventually(lambda: "are lost" in node.log(), WITHIN_S)
        broker.start()
        # A worker that stood still for a second has said both once more.
        eventually(
            lambda: (
                WORKERS <= node.log().count("are written to topic") == node.log().count("cannot be written to topic")
            ),
            WITHIN_S,
        )
    kept = 20 + LOGINS - sum(_last_of_each_worker(node.log()))
    assert 20 < kept < 20 + LOGINS
    assert len(await events_of(broker.plaintext, topic, kept)) == kept
    node.check_log()


def _last_of_each_worker(log: str) -> list[int]:
    """The last count of lost events of the topic, of each worker that told one."""
    last: dict[str, int] = {}
    for line in log.splitlines():
        if "for topic " in line and "are lost: " in line:
            worker = line.partition("[")[2].partition("]")[0]
            last[worker] = int(line.partition("are lost: ")[2].split()[0])
    return list(last.values())


async def test_a_topic_that_is_missing_is_said_and_gets_everything_when_it_is_made(
    kraft: KraftCluster, connect: str, tmp_path: Path
) -> None:
    broker = kraft.brokers[1]
    node, files, topic = audited(tmp_path, connect, broker.plaintext, request_timeout_ms=1000)
    with node:
        log_in(node, 10)
        eventually(lambda: "there is no such topic" in node.log(), WITHIN_S)
        Operator(kraft).make_topic(topic, 1)
        eventually(lambda: node.log().count("are written to") == node.log().count("cannot be written to"), WITHIN_S)
    written = by_id(files.events())
    assert len(written) == 10
    assert await events_of(broker.plaintext, topic, len(written)) == written
    node.check_log()


def test_a_broker_that_hangs_leaves_nothing_behind_however_often_it_is_tried(kraft: KraftCluster) -> None:
    broker = kraft.brokers[1]
    topic = f"audit-{uuid.uuid4().hex}"
    Operator(kraft).make_topic(topic, 1)
    settings = {f"{KAFKA}.bootstrap.servers": broker.plaintext, f"{KAFKA}.topic": topic}
    found = audit_settings(from_properties(settings | {f"{KAFKA}.request.timeout.ms": "1000"}).settings)
    assert found is not None
    assert found.topic is not None
    sink = event_topic(found.topic)
    sink.open()
    with closing(sink):
        sink.write([b"1\n"])
        assert sink._loop is not None
        before = open_files()
        with hanging(broker.process.pid):
            for _ in range(3):
                with pytest.raises(SinkFailed):
                    sink.write([b"2\n"])
                assert asyncio.all_tasks(sink._loop) == set()
                assert open_files() < before
        sink.write([b"3\n"])


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_topic_that_may_not_be_written_to_is_said_and_hurts_nobody(
    kraft: KraftCluster, connect: str, tmp_path: Path
) -> None:
    jaas = f'{PLAIN} username="alice" password="{USERS["alice"]}";'
    node, files, _ = audited(
        tmp_path,
        connect,
        kraft.brokers[1].sasl,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_jaas_config=jaas,
        request_timeout_ms=2000,
    )
    with node:
        log_in(node, 10)
        eventually(lambda: "cannot be written to topic" in node.log(), WITHIN_S)
    assert len(files.events()) == 10
    assert "TopicAuthorizationFailed" in node.log()
    node.check_log()


def test_the_extra_that_is_missing_is_named(tmp_path: Path, connect: str) -> None:
    """A node without aiokafka, as pip installs it without the extra."""
    hidden = tmp_path / "hidden" / "aiokafka"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text('raise ImportError("not installed")\n')
    properties = node_properties(connect) | {f"{KAFKA}.bootstrap.servers": "127.0.0.1:1", f"{KAFKA}.topic": "audit"}
    node = Node(tmp_path / "node", properties, environment={"PYTHONPATH": str(hidden.parent)})
    with pytest.raises(ProcessFailed, match=r"pip install ./protocol '\.\[audit-kafka\]'"):
        node.start()
