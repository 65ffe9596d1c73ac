"""Each of the settings that the page about the gateway shows as a whole is those of a node that could start."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_dt.config import UpstreamIdentity, from_properties, gateway_settings, listeners
from kafka_dt.config.load import load
from kafka_dt.gateway import identities
from kafka_dt.identity.mechanisms import MECHANISMS
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.docs.documents import Block, blocks

PAGE = "docs/how-to/gateway.md"
WHOLE = [block for block in blocks(PAGE, "properties") if block.text.startswith("# ")]
FOLDER = "/etc/kafka-dt"
USERS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="a-secret";'
LOGIN = 'org.apache.kafka.common.security.{0}.{1}LoginModule required username="gateway" password="a-secret";'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The secrets that the page keeps in files."""
    (tmp_path / "secret.key").write_text("k" * 32)
    (tmp_path / "users.jaas").write_text(USERS)
    return tmp_path


def upstream_login(text: str) -> str:
    return LOGIN.format(*(("plain", "Plain") if "upstream.sasl.mechanism=PLAIN" in text else ("scram", "Scram")))


def settings_of(block: Block, folder: Path) -> str:
    (folder / "upstream.jaas").write_text(upstream_login(block.text))
    file = folder / "server.properties"
    file.write_text(block.text.replace(FOLDER, str(folder)))
    loaded = load(file, ())
    assert not loaded.unknown
    assert not loaded.ignored
    made = listeners(loaded.settings, MECHANISMS)
    gateway = gateway_settings(loaded.settings, made)
    return "" if gateway is None else gateway.identity


def test_there_is_one_for_each_identity_and_one_for_the_administrators(folder: Path) -> None:
    assert [settings_of(block, folder) for block in WHOLE] == [*UpstreamIdentity, ""]


def test_the_file_of_identities_can_be_read(tmp_path: Path) -> None:
    (block,) = [block for block in blocks(PAGE, "text") if block.text.startswith('"User:')]
    file = tmp_path / "identities.jaas"
    file.write_text(block.text)
    logins = identities.read(file, ScramMechanism.SHA_256)
    assert {str(principal): login.credentials.mechanism for principal, login in logins.items()} == {
        "User:alice": "PLAIN",
        "User:etl": "PLAIN",
    }


def test_what_several_listeners_can_set_goes_together() -> None:
    (block,) = [block for block in blocks(PAGE, "properties") if block not in WHOLE]
    lines = dict(line.split("=", 1) for line in block.text.splitlines())
    made = listeners(from_properties(lines | {"sasl.enabled.mechanisms": "SCRAM-SHA-256"}).settings, MECHANISMS)
    assert [each.broker_port_base for each in made] == [9100, None]
    assert [each.broker_host_pattern for each in made] == ["", "broker-{id}.kafka.example.com"]
