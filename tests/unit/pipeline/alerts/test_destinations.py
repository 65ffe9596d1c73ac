"""What a user writes after --alert, and the settings."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from kafka_dt.cli import main
from kafka_dt.pipeline.alerts import AlertError, destination
from kafka_dt.pipeline.alerts.destinations import check_settings
from tests.unit.pipeline.alerts.conftest import NOON


@pytest.mark.parametrize("given", ["", "slack:x", "webhook", "file:", "kafka", "https://example.com"])
def test_another_kind_is_wrong(given: str) -> None:
    with pytest.raises(AlertError, match=r"webhook:\.\.\., file:\.\.\."):
        destination(given, {}, lambda: NOON)


@pytest.mark.parametrize("key", ["webhok.header.X", "email.pasword", "kafka", "bootstrap.servers", "file.mode"])
def test_a_setting_that_no_destination_has_is_named(key: str) -> None:
    with pytest.raises(AlertError, match=key):
        check_settings({key: "x"})


def test_the_settings_of_the_manual_are_known() -> None:
    check_settings(
        dict.fromkeys(("webhook.header.X", "email.server", "syslog.ssl.truststore.location", "kafka.acks"), "")
    )


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "kafka.bootstrap.servers"),
        ({"kafka.bootstrap.servers": "b:1", "kafka.sasl.jaas.config": "env:NO_SUCH"}, "NO_SUCH is not set"),
        (
            {
                "kafka.bootstrap.servers": "b:1",
                "kafka.security.protocol": "SASL_PLAINTEXT",
                "kafka.sasl.mechanism": "SCRAM-SHA-256",
                "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
                'username="id" password="hmac" tokenauth="true";',
            },
            "which ends some day",
        ),
    ],
)
def test_a_topic_needs_brokers_and_the_login_of_a_user(settings: dict[str, str], says: str) -> None:
    with pytest.raises(AlertError, match=says):
        destination("kafka:alerts", settings, lambda: NOON)


def test_a_wrong_destination_is_wrong_usage_and_its_secret_is_not_shown() -> None:
    given = ["pipeline", "report", "--table", "t", "--to", "r", "--alert", "webhook:htps://example.com/s3cret"]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 2
    assert "Invalid value for '--alert': webhook:...: the URL of a webhook begins with" in result.output
    assert "s3cret" not in result.output
