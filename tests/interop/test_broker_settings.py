"""A `server.properties` means here what it means to a broker: Kafka's own class is the oracle."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from kafka_dt.config import load
from tests.support.java.programs import program
from tests.support.java.tools import KafkaTools

SOURCE = Path(__file__).with_name("SettingsOracle.java")
KEYS = (
    b"key",
    b"key \t ",
    b"a key",
    rb"\ key\u0020",
    rb"key\u00a0",
    rb"ke\
       y",
)


def file_of(key: bytes) -> bytes:
    """A broker's file with a text for the secret key."""
    return b"zookeeper.connect=localhost:2181\ndelegation.token.secret.key = " + key + b"\n"


@pytest.fixture(scope="module")
def keys_of_a_broker(kafka_39: KafkaTools) -> dict[bytes, str]:
    """Ask Kafka everything at once; its secret key by the text of it."""
    command = program(kafka_39.java, SOURCE, classpath=kafka_39.classpath)
    asked = b"".join(base64.b64encode(file_of(key)) + b"\n" for key in KEYS)
    done = subprocess.run(command, input=asked, capture_output=True, timeout=60, check=True)
    return {key: base64.b64decode(line).decode() for key, line in zip(KEYS, done.stdout.splitlines(), strict=True)}


@pytest.mark.parametrize("key", KEYS)
def test_the_secret_key_is_that_of_a_broker(keys_of_a_broker: dict[bytes, str], tmp_path: Path, key: bytes) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(file_of(key))
    found = load(path).settings.secret_key
    assert found is not None
    assert found.value == keys_of_a_broker[key]
