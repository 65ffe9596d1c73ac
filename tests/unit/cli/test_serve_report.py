"""What `kafka-dt serve` logs of its settings before it serves."""

from __future__ import annotations

import logging

import pytest

from kafka_dt.cli.check.dangers import dangers
from kafka_dt.cli.serve import report
from kafka_dt.config import from_properties

NOW_MS = 1_790_000_000_000


def test_keys_of_a_broker_are_one_line_and_each_danger_is_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    loaded = from_properties(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:1",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "log.dirs": "/var/kafka",
            "num.io.threads": "8",
            "zookeeper.ssl.crl.enable": "true",
            "my.plugin": "1",
            "delegation.token.secret.key": "k" * 31,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        }
    )
    report(loaded, dangers(loaded, NOW_MS))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "Settings of a broker that have no meaning here: log.dirs, num.io.threads"),
        ("WARNING", "zookeeper.ssl.crl.enable: kafka-dt does not support this security setting, and ignores it"),
        ("WARNING", "my.plugin: neither a broker nor kafka-dt has such a setting"),
        (
            "WARNING",
            "delegation.token.secret.key: a key has fewer than 32 characters and could be guessed",
        ),
    ]


def test_a_certificate_that_cannot_be_read_is_left_to_the_start() -> None:
    loaded = from_properties(
        {
            "listeners": "SASL_SSL://127.0.0.1:1",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "ssl.keystore.location": "/nowhere.pem",
            "ssl.keystore.type": "PEM",
            "delegation.token.secret.key": "k" * 32,
        }
    )
    report(loaded, dangers(loaded, NOW_MS))
