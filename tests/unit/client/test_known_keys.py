"""Keys of a client.properties that no client of Kafka knows."""

from __future__ import annotations

import logging

import pytest

from kafka_dt.client import ClientConfig
from kafka_dt.client.config import client_keys, nearest_key

SERVER = {"bootstrap.servers": "broker:9092"}


def warnings(caplog: pytest.LogCaptureFixture, properties: dict[str, str]) -> list[str]:
    caplog.set_level(logging.WARNING)
    ClientConfig.from_properties(SERVER | properties)
    return caplog.messages


def test_a_mistyped_key_is_told_of_with_the_one_that_was_meant(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(caplog, {"request.timeout.m": "5000"}) == [
        "request.timeout.m has no effect: Kafka's clients have no such setting; did you mean request.timeout.ms?"
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("security.protocoll", "security.protocol"),
        ("sasl.mechanisms", "sasl.mechanism"),
        ("ssl.truststore.locaton", "ssl.truststore.location"),
        ("Sasl.Jaas.Config", "sasl.jaas.config"),
        ("boostrap.server", "bootstrap.servers"),
    ],
)
def test_the_nearest_key_is_the_one_that_was_meant(written: str, meant: str) -> None:
    assert nearest_key(written) == meant


def test_a_key_that_is_near_to_none_is_told_of_as_well(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(caplog, {"my.own.key": "1"}) == ["my.own.key has no effect: Kafka's clients have no such setting"]


def test_settings_of_kafkas_clients_that_mean_nothing_here_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    others = client_keys() - SERVER.keys() - {"security.protocol"}
    assert warnings(caplog, dict.fromkeys(others, "1000")) == []


def test_settings_of_config_providers_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(caplog, {"config.providers.file.class": "FileConfigProvider"}) == []


def test_neither_a_value_nor_what_may_be_a_torn_line_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    (torn, named) = warnings(caplog, {'"wonder";': "", "sasl.jaas.confg": "the secret"})
    assert "wonder" not in torn
    assert "sasl.jaas.config" in named
    assert "the secret" not in named
