"""What of the settings is refused before anything is opened."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_dt.audit import EventType, Outcome
from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.topic import BATCH_BYTES, EventTopic
from kafka_dt.config import AuditSettings, ConfigError, audit_settings, from_properties
from kafka_dt.node.audit_trail import AuditTrail, event_topic
from kafka_dt.tls import server_context
from tests.support.identity.tls_material import authority, leaf

KAFKA = "kafka.dt.audit.kafka."
TOPIC = {f"{KAFKA}bootstrap.servers": "k1:9092,k2:9092"}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def settings(properties: dict[str, str]) -> AuditSettings:
    found = audit_settings(from_properties(properties).settings)
    assert found is not None
    return found


def producer(properties: dict[str, str]) -> EventTopic:
    topic = settings(TOPIC | properties).topic
    assert topic is not None
    return event_topic(topic)


def only_line(directory: Path) -> tuple[str, Any]:
    (path,) = directory.iterdir()
    return path.name, json.loads(path.read_text())


def trail_of(found: AuditSettings) -> AuditTrail:
    return AuditTrail(found, 3, now_ms=lambda: 7, random_hex=lambda count: "ab" * count)


def test_the_folder_is_made_for_its_owner_and_group_and_not_before_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "var" / "audit"
    found = settings({"kafka.dt.audit.log.dir": str(folder)})
    AuditTrail.check(found)
    assert not folder.parent.exists()
    trail_of(found)
    assert folder.is_dir()
    assert folder.stat().st_mode & 0o027 == 0


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    wanted = settings({"kafka.dt.audit.log.dir": str(tmp_path / "file" / "audit")})
    with pytest.raises(ConfigError, match=r"kafka\.dt\.audit\.log\.dir: .*/file is not a directory"):
        AuditTrail.check(wanted)
    with pytest.raises(ConfigError, match=r"kafka\.dt\.audit\.log\.dir: .*/audit cannot be made: Not a directory"):
        trail_of(wanted)


def test_a_folder_that_cannot_be_written_to_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root, which tests may run as, can write anywhere
    with pytest.raises(ConfigError, match=r"kafka\.dt\.audit\.log\.dir: .* cannot be written to"):
        AuditTrail.check(settings({"kafka.dt.audit.log.dir": str(tmp_path)}))


async def test_a_trail_writes_what_its_recorder_is_told(tmp_path: Path) -> None:
    found = settings({"kafka.dt.audit.log.dir": str(tmp_path), "kafka.dt.audit.node.name": "kdt1"})
    trail = trail_of(found)
    trail.start()
    trail.recorder.record(EventType.KEYS_CHANGED, Outcome.OK, keys=("k",))
    await trail.close()
    name, line = only_line(tmp_path)
    assert name == "audit-kdt1-3-19700101T000000Z-0.jsonl"
    assert (line["node"], line["id"], line["keys"]) == ("kdt1-3", "abababababababab-1", ["k"])


async def test_a_topic_is_written_to_with_the_certificates_that_its_files_have_now(tmp_path: Path) -> None:
    """The broker's certificate is of an authority that the trust store has only later; it then hangs up."""
    authorities = authority("Old"), authority("New")
    broker, trust = leaf("broker", authorities[1]), tmp_path / "trust.pem"
    trust.write_text(authorities[0].certificate_pem)
    greeted: list[bytes] = []

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeted.append(await reader.read(4))
        writer.close()

    store = {"ssl.keystore.key": broker.key_pem(), "ssl.keystore.certificate.chain": broker.chain_pem}
    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=server_context(store))
    topic = producer(
        {
            f"{KAFKA}bootstrap.servers": f"127.0.0.1:{server.sockets[0].getsockname()[1]}",
            f"{KAFKA}security.protocol": "SSL",
            f"{KAFKA}ssl.truststore.location": str(trust),
        }
    )
    async with server:
        try:
            for text, greetings in (("", 0), (authorities[1].certificate_pem, 1), ("broken", 2)):
                if text:
                    trust.write_text(text)
                with pytest.raises(SinkFailed):
                    await asyncio.to_thread(topic.write, [b"{}\n"])
                assert len(greeted) >= greetings
                assert greetings or not greeted
        finally:
            await asyncio.to_thread(topic.close)


def test_a_topic_without_the_extra_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiokafka", None)
    with pytest.raises(ConfigError, match="the extra audit-kafka"):
        AuditTrail.check(settings(TOPIC))


@pytest.mark.parametrize(
    ("properties", "key", "reason"),
    [
        ({"bootstrap.servers": "k1"}, "bootstrap.servers", "not of the form host:port"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism", "it is not set"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config", "PLAIN needs it"),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.jaas.config": f'{SCRAM} username="id" password="hmac" tokenauth="true";',
            },
            "sasl.jaas.config",
            "log in as a user",
        ),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/none"}, "ssl.truststore.location", "/none"),
    ],
)
def test_client_settings_that_cannot_be_used_are_named_in_full(
    properties: dict[str, str], key: str, reason: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        producer({f"{KAFKA}{name}": value for name, value in properties.items()})
    assert str(refused.value).startswith(f"{KAFKA}{key}:")
    assert reason in str(refused.value)
    assert "hmac" not in str(refused.value)


def test_settings_become_the_arguments_of_the_producer() -> None:
    made = producer(
        {
            f"{KAFKA}security.protocol": "SASL_PLAINTEXT",
            f"{KAFKA}sasl.mechanism": "SCRAM-SHA-512",
            f"{KAFKA}sasl.jaas.config": f'{SCRAM} username="auditor" password="hidden";',
            f"{KAFKA}acks": "1",
            f"{KAFKA}compression.type": "gzip",
            f"{KAFKA}request.timeout.ms": "5000",
        }
    )
    assert made.arguments == {
        "bootstrap_servers": ["k1:9092", "k2:9092"],
        "client_id": "kafka-dt-audit",
        "request_timeout_ms": 5000,
        "acks": 1,
        "compression_type": "gzip",
        "max_batch_size": BATCH_BYTES,
        "security_protocol": "SASL_PLAINTEXT",
        "ssl_context": None,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "auditor",
        "sasl_plain_password": "hidden",
    }
    assert "hidden" not in repr(made)
    assert made.name == "topic kafka-dt-audit"
