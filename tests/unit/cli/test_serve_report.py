"""What `kafka-dt serve` says about settings that have no effect."""

from __future__ import annotations

import logging

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
        "delegation.token.secret.key": "secret",
    }
    report_left_out(from_properties(properties))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "Settings of a broker that have no meaning here: log.dirs"),
        (
            "WARNING",
            "Not supported; what they would protect is not protected: "
            "listener.name.a.principal.builder.class, zookeeper.ssl.crl.enable",
        ),
        ("WARNING", "Settings that neither a broker nor kafka-dt knows: my.plugin"),
    ]
