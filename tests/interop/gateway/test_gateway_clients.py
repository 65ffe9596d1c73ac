"""Unmodified clients produce and consume through the gateway, logged in with a token of kafka-dt."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka
import pytest

from kafka_dt.client import DelegationToken
from tests.interop.conftest import unavailable
from tests.interop.gateway.conftest import RELEASE
from tests.support.java.properties import TokenLogin, token
from tests.support.java.records_client import ReadBack, RecordsClient, value
from tests.support.java.tools import KafkaTools
from tests.support.nodes.gateway import Gateway

COUNT = 500
TIMEOUT_S = 30.0
PROTOCOLS = ["classic"] if RELEASE == "3.9" else ["classic", "consumer"]
"""Of consumer groups (KIP-848 came with 4.0)."""
ALL = ReadBack.of(COUNT, partitions=2)


def keyed() -> list[tuple[bytes, bytes]]:
    return [(str(number).encode(), value(number).encode()) for number in range(COUNT)]


@pytest.fixture
def login(gateway: Gateway, alice: DelegationToken) -> dict[str, str]:
    return gateway.settings(alice, "java")


@pytest.mark.client("java", "records")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_java_producer_and_a_group_of_java_consumers(
    records: RecordsClient, login: dict[str, str], topic: str, group: str, protocol: str
) -> None:
    assert records.send(login, topic, COUNT).acknowledged == COUNT
    member = {**login, "group.id": group, "group.protocol": protocol}
    assert records.read(member, topic, COUNT) == ALL
    # The group has committed what it has read: its next member finds only what came since.
    records.send(login, topic, 10, first=COUNT)
    assert records.read(member, topic, 10) == ReadBack.of(10, first=COUNT, partitions=2)


def test_java_transactions_are_seen_whole_or_not_at_all(
    records: RecordsClient, login: dict[str, str], topic: str, group: str, make_topic: Callable[..., str]
) -> None:
    writer = {**login, "transactional.id": group}
    records.transact(writer, topic, 100, first=COUNT, commit=False)
    records.transact(writer, topic, COUNT)
    records.transact(writer, topic, 100, first=COUNT, commit=False)
    reader = {**login, "group.id": group, "isolation.level": "read_committed", "enable.auto.commit": "false"}
    target = make_topic(2, 1)
    assert records.copy({**writer, **reader, "auto.offset.reset": "earliest"}, topic, target, COUNT) == COUNT
    del reader["group.id"]
    assert records.read(reader, target, COUNT) == ALL


def test_the_console_tools(
    kafka_4x: KafkaTools, gateway: Gateway, alice: DelegationToken, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(2)
    login = token(TokenLogin(alice.token_id, alice.hmac_base64), "SCRAM-SHA-512")
    kafka_4x.produce(gateway.sasl, login, topic, "one record\nanother\n").ok()
    consumed = kafka_4x.consume(gateway.sasl, {**login, "group.id": f"alice-{topic}"}, topic, count=2).ok()
    assert consumed.stdout.splitlines()[:2] == ["one record", "another"]


@pytest.mark.client("aiokafka", "records")
async def test_aiokafka(gateway: Gateway, alice: DelegationToken, topic: str, group: str) -> None:
    login = gateway.settings(alice, "aiokafka")
    async with aiokafka.AIOKafkaProducer(**login, enable_idempotence=True) as producer:
        for sent in [await producer.send(topic, content, key) for key, content in keyed()]:
            await sent
    async with aiokafka.AIOKafkaConsumer(topic, **login, group_id=group, auto_offset_reset="earliest") as consumer:
        found = [await consumer.getone() for _ in range(COUNT)]
        await consumer.commit()
    assert ReadBack.gathered((each.partition, each.key, each.value) for each in found) == ALL


@pytest.mark.client("kafka-python", "records")
def test_kafka_python(gateway: Gateway, alice: DelegationToken, topic: str, group: str) -> None:
    login = gateway.settings(alice, "kafka-python")
    producer = kafka.KafkaProducer(**login)
    sent = [producer.send(topic, content, key) for key, content in keyed()]
    producer.flush(TIMEOUT_S)
    assert {each.get(TIMEOUT_S).partition for each in sent} == {0, 1}
    producer.close()
    consumer = kafka.KafkaConsumer(topic, **login, group_id=group, auto_offset_reset="earliest")
    found = [next(consumer) for _ in range(COUNT)]
    consumer.commit()
    consumer.close()
    assert ReadBack.gathered((each.partition, each.key, each.value) for each in found) == ALL


@pytest.mark.client("confluent-kafka", "records")
def test_confluent_kafka(gateway: Gateway, alice: DelegationToken, topic: str, group: str) -> None:
    login = gateway.settings(alice, "confluent")
    producer = confluent_kafka.Producer({**login, "enable.idempotence": True, "queue.buffering.max.ms": 5})
    for key, content in keyed():
        producer.produce(topic, content, key)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = confluent_kafka.Consumer({**login, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[confluent_kafka.Message] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(found) < COUNT and time.monotonic() < deadline:
        found += consumer.consume(COUNT, timeout=0.2)
    consumer.commit(asynchronous=False)
    consumer.close()
    assert ReadBack.gathered((each.partition(), each.key(), each.value()) for each in found) == ALL


@pytest.mark.client("kcat", "login", "records")
def test_kcat(gateway: Gateway, alice: DelegationToken, topic: str, tmp_path: Path) -> None:
    if shutil.which("kcat") is None:
        unavailable("kcat is not installed")
    settings = tmp_path / "kcat.conf"
    settings.touch(mode=0o600)
    settings.write_text("".join(f"{key}={text}\n" for key, text in gateway.settings(alice, "confluent").items()))
    kcat = ["kcat", "-F", str(settings), "-t", topic]
    subprocess.run([*kcat, "-P"], input="one record\n", text=True, timeout=TIMEOUT_S, check=True)
    read = subprocess.run([*kcat, "-C", "-e", "-q"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    assert read.stdout == "one record\n"
