"""The settings of audit events: what they become, and which set nothing."""

import re
import socket
from pathlib import Path

import pytest

from kafka_dt.config import AuditFileSettings, AuditSettings, ConfigError, audit_settings, from_properties

AUDIT = "kafka.dt.audit."
FILES = {f"{AUDIT}log.dir": "/var/log/kafka-dt"}
TOPIC = {f"{AUDIT}kafka.bootstrap.servers": "k1:9092, k2:9092"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def made(properties: dict[str, str]) -> AuditSettings | None:
    return audit_settings(from_properties(properties).settings)


def audit(properties: dict[str, str]) -> AuditSettings:
    found = made(properties)
    assert found is not None
    return found


def test_nothing_is_written_unless_it_is_said_where() -> None:
    assert made({}) is None


def test_a_folder_has_limits_that_go_without_saying() -> None:
    found = audit(FILES)
    assert found.files == AuditFileSettings(
        directory=Path("/var/log/kafka-dt"),
        file_bytes=64 * 1024 * 1024,
        roll_ms=300_000,
        retention_ms=-1,
        signing_key=None,
    )
    assert found.topic is None
    assert not found.strict
    assert found.buffer_bytes == 32 * 1024 * 1024


def test_the_limits_of_files_can_be_set() -> None:
    limits = {"log.file.bytes": "5000", "log.roll.ms": "100", "log.retention.ms": "86400000"}
    found = audit(FILES | {f"{AUDIT}{name}": value for name, value in limits.items()}).files
    assert found is not None
    assert (found.file_bytes, found.roll_ms, found.retention_ms) == (5000, 100, 86_400_000)


def test_a_topic_has_the_settings_of_a_client_under_their_own_names() -> None:
    topic = audit(TOPIC | {f"{AUDIT}kafka.ssl.protocol": "TLSv1.2", f"{AUDIT}kafka.acks": "-1"}).topic
    assert topic is not None
    assert (topic.topic, topic.acks, topic.compression_type) == ("kafka-dt-audit", "all", "none")
    assert topic.client == {
        "bootstrap.servers": "k1:9092,k2:9092",
        "security.protocol": "PLAINTEXT",
        "ssl.truststore.type": "JKS",
        "ssl.keystore.type": "JKS",
        "ssl.endpoint.identification.algorithm": "https",
        "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        "ssl.protocol": "TLSv1.2",
        "client.id": "kafka-dt-audit",
        "request.timeout.ms": "30000",
    }


def test_there_can_be_both() -> None:
    found = audit(FILES | TOPIC)
    assert found.files is not None
    assert found.topic is not None


def test_no_secret_shows(tmp_path: Path) -> None:
    (tmp_path / "jaas").write_text(f'{PLAIN} username="auditor" password="hidden-one";')
    found = audit(TOPIC | {f"{AUDIT}kafka.sasl.jaas.config": f"file:{tmp_path}/jaas"})
    assert found.topic is not None
    assert "hidden-one" in found.topic.client["sasl.jaas.config"]
    assert "hidden-one" not in repr(found)


def test_a_node_is_called_what_its_host_is_called() -> None:
    assert audit(FILES).node == re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())
    assert audit(FILES | {f"{AUDIT}node.name": "kdt-1.example"}).node == "kdt-1.example"


@pytest.mark.parametrize("name", ["a/b", "a b", "ü", "x" * 101, "a\nb"])
def test_a_name_that_cannot_be_in_the_name_of_a_file_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"{AUDIT}node.name")):
        made(FILES | {f"{AUDIT}node.name": name})


@pytest.mark.parametrize("name", ["", "..", "a topic", "t" * 250])
def test_what_is_no_name_of_a_topic_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"{AUDIT}kafka.topic")):
        made(TOPIC | {f"{AUDIT}kafka.topic": name})


@pytest.mark.parametrize(
    ("properties", "key", "without"),
    [
        ({"log.roll.ms": "5000"}, "log.roll.ms", "kafka.dt.audit.log.dir"),
        ({"kafka.topic": "audit"}, "kafka.topic", "kafka.dt.audit.kafka.bootstrap.servers"),
        ({"kafka.sasl.jaas.config": "x"}, "kafka.sasl.jaas.config", "kafka.dt.audit.kafka.bootstrap.servers"),
        ({"log.dir": "/x", "kafka.acks": "1"}, "kafka.acks", "kafka.dt.audit.kafka.bootstrap.servers"),
        ({"kafka.bootstrap.servers": "k:1", "log.file.bytes": "5000"}, "log.file.bytes", "kafka.dt.audit.log.dir"),
        ({"node.name": "kdt1"}, "node.name", "kafka.dt.audit.log.dir or"),
        ({"buffer.bytes": "5000"}, "buffer.bytes", "kafka.dt.audit.log.dir or"),
    ],
)
def test_a_setting_that_sets_nothing_is_an_error(properties: dict[str, str], key: str, without: str) -> None:
    with pytest.raises(ConfigError) as refused:
        made({f"{AUDIT}{name}": value for name, value in properties.items()})
    assert str(refused.value).startswith(f"{AUDIT}{key}: it sets nothing without {without}")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log.file.bytes", "10"),
        ("log.roll.ms", "0"),
        ("log.retention.ms", "-2"),
        ("buffer.bytes", "1"),
        ("kafka.acks", "0"),
        ("kafka.compression.type", "zip"),
        ("kafka.sasl.mechanism", "GSSAPI"),
        ("kafka.security.protocol", "TLS"),
        ("log.directory", "/x"),
    ],
)
def test_a_value_that_cannot_be_used_names_its_key(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        made(FILES | TOPIC | {f"{AUDIT}{key}": value})
    assert str(refused.value).startswith(f"{AUDIT}{key}")
