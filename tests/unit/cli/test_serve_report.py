"""What `kafka-dt serve` says about settings that have no effect."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import pytest

from kafka_dt.cli.serve import report_left_out
from kafka_dt.config import from_properties


def test_settings_without_effect_are_named_by_what_it_means(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    properties = {
        "log.dirs": "/var/kafka",
        "zookeeper.ssl.crl.enable": "true",
        "listener.name.a.principal.builder.class": "com.example.Builder",
        "my.plugin": "1",
        "delegation.token.secret.key": "k" * 32,
    }
    report_left_out(from_properties(properties))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "Settings of a broker that have no meaning here: log.dirs"),
        (
            "WARNING",
            "Security settings that kafka-dt does not support and ignores: "
            "listener.name.a.principal.builder.class, zookeeper.ssl.crl.enable",
        ),
        ("WARNING", "Settings that neither a broker nor kafka-dt knows: my.plugin"),
    ]


def test_settings_that_a_broker_reads_otherwise_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    properties = {"super.users": "User:Zo\u00eb", "ssl.keystore.location": "/\u00e9"}
    report_left_out(from_properties({"delegation.token.secret.key": "k" * 32, **properties}, properties.keys()))
    assert [record.getMessage() for record in caplog.records] == [
        r"Settings that a broker reads otherwise, as ISO-8859-1; write \uXXXX in their values: "
        "ssl.keystore.location, super.users"
    ]


@pytest.mark.parametrize(
    ("properties", "lines"),
    [
        (
            {},
            ["delegation.token.secret.key is not set: every request about tokens is refused"],
        ),
        (
            {"kafka.dt.secret.keys.previous": "o" * 32},
            [
                "delegation.token.secret.key is not set: every request about tokens is refused",
                "kafka.dt.secret.keys.previous has no effect without delegation.token.secret.key",
            ],
        ),
        (
            {"delegation.token.secret.key": "k" * 31, "kafka.dt.secret.keys.previous": "short\n" + "o" * 32},
            ["Secret keys with fewer than 32 characters, which could be guessed: 2"],
        ),
        ({"delegation.token.secret.key": "k" * 32, "kafka.dt.secret.keys.previous": "o" * 32}, []),
    ],
)
def test_keys_that_should_be_others_are_one_line_each(
    properties: dict[str, str], lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    report_left_out(from_properties(properties))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", line) for line in lines
    ]


def test_key_files_that_every_user_can_open_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = Path(folder) / "secret.key"
        file.write_text("k" * 32)
        file.chmod(0o604)
        report_left_out(from_properties({"delegation.token.secret.key": f"file:{file}"}))
    assert caplog.messages == [f"Files of secret keys that every user of this machine can open (chmod o=): {file}"]


def test_a_limit_of_tokens_that_the_cluster_makes_is_told_to_have_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    properties = {"kafka.dt.token.store": "upstream", "delegation.token.max.lifetime.ms": "3600000"}
    report_left_out(from_properties(properties))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            "Settings that have no effect, since the cluster behind the gateway has all tokens: "
            "delegation.token.max.lifetime.ms",
        )
    ]


def test_listeners_that_offer_a_historic_mechanism_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    properties = {
        "listeners": "OLD://:1,NEW://:2,OLDER://:3",
        "listener.security.protocol.map": "OLD:SASL_PLAINTEXT,NEW:SASL_PLAINTEXT,OLDER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,DIGEST-MD5",
        "listener.name.new.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "delegation.token.secret.key": "k" * 32,
    }
    report_left_out(from_properties(properties))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "DIGEST-MD5 is offered on OLD, OLDER; it is historic (RFC 6331), SCRAM is safer")
    ]
