"""The settings that the page about Kafka 4 begins with are those of a node on the cluster's own tokens."""

from __future__ import annotations

from pathlib import Path

from kafka_dt.config import UpstreamIdentity, gateway_settings, listeners
from kafka_dt.config.load import load
from kafka_dt.identity.mechanisms import mechanisms_of
from tests.support.docs.documents import blocks, read

PAGE = "docs/how-to/kafka-4.md"
LOGIN = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="gateway" password="a-secret";'


def test_ten_lines_make_a_node(tmp_path: Path) -> None:
    block = blocks(PAGE, "properties")[0]
    assert len(block.text.splitlines()) == 1 + 10
    (tmp_path / "upstream.jaas").write_text(LOGIN)
    file = tmp_path / "gateway.properties"
    file.write_text(block.text.replace("/etc/kafka-dt", str(tmp_path)))
    loaded = load(file, ())
    assert not loaded.unknown
    assert not loaded.ignored
    settings = loaded.settings
    gateway = gateway_settings(settings, listeners(settings, mechanisms_of(settings)))
    assert gateway is not None
    assert gateway.serves_its_tokens
    assert gateway.identity is UpstreamIdentity.RELAY


def test_the_page_opens_with_a_picture() -> None:
    assert read(PAGE).split("\n\n")[1].startswith("![")
