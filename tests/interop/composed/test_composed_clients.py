"""Java, confluent-kafka, kafka-python and kcat use the composed node and the broker beside it."""

from __future__ import annotations

import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import kafka
import pytest

from tests.interop.composed.conftest import INSIDE, Neighbours
from tests.interop.conftest import unavailable
from tests.support.java.properties import token
from tests.support.java.reference_client import JavaClientError, JavaSession, JavaToken, ReferenceClient
from tests.support.processes.waiting import eventually

KNOWN_WITHIN_S = 10.0
TIMEOUT_S = 20.0

pytestmark = [] if INSIDE else [pytest.mark.soak]


@pytest.fixture
def alice(java_39: ReferenceClient, neighbours: Neighbours) -> Iterator[JavaSession]:
    """Alice's AdminClient at the node."""
    with java_39.open(neighbours.node, neighbours.alice) as session:
        yield session


@pytest.fixture
def made(alice: JavaSession) -> JavaToken:
    return alice.create(renewers=["User:bob"])


@pytest.fixture
def topic(java_39: ReferenceClient, neighbours: Neighbours) -> str:
    """A topic of alice's with one record."""
    name = f"alice-{uuid.uuid4().hex}"
    with java_39.open(neighbours.broker, neighbours.alice) as session:
        session.produce(name, "by java")
    return name


def logs_in(java: ReferenceClient, address: str, made: JavaToken) -> bool:
    """Whether a token logs in at an address."""
    with java.open(address, token(made.login)) as session:
        try:
            session.topics()
        except JavaClientError as refused:
            if refused.kind != "SaslAuthenticationException":
                raise
            return False
        return True


def test_a_token_of_the_node_logs_in_at_the_broker_and_writes_there(
    java_39: ReferenceClient, neighbours: Neighbours, made: JavaToken
) -> None:
    eventually(lambda: logs_in(java_39, neighbours.broker, made), KNOWN_WITHIN_S)
    with java_39.open(neighbours.broker, token(made.login)) as session:
        assert session.produce(f"alice-{uuid.uuid4().hex}", "by a token") == 0


def test_a_token_of_the_broker_logs_in_at_the_node_and_ends_there(
    java_39: ReferenceClient, neighbours: Neighbours, alice: JavaSession
) -> None:
    with java_39.open(neighbours.broker, neighbours.alice) as session:
        made = session.create()
    assert logs_in(java_39, neighbours.node, made)
    alice.expire(made.hmac)
    eventually(lambda: not logs_in(java_39, neighbours.broker, made), KNOWN_WITHIN_S)


def librdkafka(address: str, user: str, password: str, mechanism: str) -> dict[str, str]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def test_confluent_kafka_logs_in_with_the_token_at_the_node_and_reads_at_the_broker(
    neighbours: Neighbours, made: JavaToken, topic: str
) -> None:
    at_node = librdkafka(neighbours.node, made.token_id, made.hmac, "SCRAM-SHA-256")
    assert confluent_kafka.admin.AdminClient({**at_node}).list_topics(timeout=TIMEOUT_S).topics == {}
    at_broker = librdkafka(neighbours.broker, "alice", neighbours.password, "PLAIN")
    consumer = confluent_kafka.Consumer({**at_broker, "group.id": f"alice-{topic}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    deadline = time.monotonic() + TIMEOUT_S
    message = None
    while message is None and time.monotonic() < deadline:
        message = consumer.poll(0.5)
    consumer.close()
    assert message is not None
    assert (message.error(), message.value()) == (None, b"by java")


def test_kafka_python_logs_in_with_the_token_at_the_node_and_reads_at_the_broker(
    neighbours: Neighbours, made: JavaToken, topic: str
) -> None:
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512"}
    admin = kafka.KafkaAdminClient(
        bootstrap_servers=neighbours.node, sasl_plain_username=made.token_id, sasl_plain_password=made.hmac, **login
    )
    assert admin.list_topics() == []
    admin.close()
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=neighbours.broker,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="alice",
        sasl_plain_password=neighbours.password,
        group_id=f"alice-{topic}",
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(TIMEOUT_S * 1000),
    )
    assert next(consumer).value == b"by java"
    consumer.close()


def test_kcat_lists_the_node_with_the_token_and_reads_at_the_broker(
    neighbours: Neighbours, made: JavaToken, topic: str, tmp_path: Path
) -> None:
    if shutil.which("kcat") is None:
        unavailable("kcat is not installed")

    def kcat(login: dict[str, str], *arguments: str) -> str:
        settings = tmp_path / "kcat.conf"
        settings.touch(mode=0o600)
        settings.write_text("".join(f"{key}={text}\n" for key, text in login.items()))
        command = ["kcat", "-F", str(settings), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout

    at_node = librdkafka(neighbours.node, made.token_id, made.hmac, "SCRAM-SHA-256")
    assert " 0 topics:" in kcat(at_node, "-L")
    at_broker = librdkafka(neighbours.broker, "alice", neighbours.password, "PLAIN")
    assert kcat(at_broker, "-C", "-e", "-q", "-t", topic) == "by java\n"
