"""The settings of the metrics listener: what they become, and which set nothing."""

from __future__ import annotations

import re

import pytest

from kafka_dt.config import ConfigError, Endpoint, MetricsSettings, from_properties, metrics_settings

METRICS = "kafka.dt.metrics."


def made(properties: dict[str, str]) -> MetricsSettings | None:
    return metrics_settings(from_properties(properties).settings)


def test_there_is_no_listener_unless_it_is_said_where() -> None:
    assert made({}) is None
    assert made({f"{METRICS}listener": "none"}) is None


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("http://127.0.0.1:9404", Endpoint("http", "127.0.0.1", 9404)),
        ("http://:9404/", Endpoint("http", "", 9404)),
        ("http://[::1]:0", Endpoint("http", "::1", 0)),
        ("http://localhost:9404", Endpoint("http", "localhost", 9404)),
    ],
)
def test_a_url_says_where_it_listens(text: str, endpoint: Endpoint) -> None:
    settings = made({f"{METRICS}listener": text})
    assert settings is not None
    assert (settings.endpoint, settings.tls, settings.user) == (endpoint, None, "")


def test_tls_has_the_settings_of_a_listener_by_kafkas_names() -> None:
    settings = made(
        {
            f"{METRICS}listener": "https://:9404",
            f"{METRICS}ssl.keystore.location": "/etc/tls.pem",
            f"{METRICS}ssl.key.password": "hidden",
            f"{METRICS}user": "prometheus",
            f"{METRICS}password": "also hidden",
        }
    )
    assert settings is not None
    assert settings.tls is not None
    assert settings.tls["ssl.keystore.location"] == "/etc/tls.pem"
    assert settings.tls["ssl.key.password"] == "hidden"
    assert not [key for key in settings.tls if not key.startswith("ssl.")]
    assert settings.password is not None
    assert settings.password.value == "also hidden"
    assert "hidden" not in repr(settings).replace("[hidden]", "")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"listener": "127.0.0.1:9404"}, "kafka.dt.metrics.listener: '127.0.0.1:9404' is not of the form"),
        ({"listener": "http://:70000"}, "kafka.dt.metrics.listener: 'http://:70000' is not of the form"),
        ({"listener": "https://:9404"}, "kafka.dt.metrics.ssl.keystore.location: is needed for https://:9404"),
        ({"listener": "http://:9404", "user": "x"}, "kafka.dt.metrics.password: user and password are needed both"),
        ({"listener": "http://:9404", "password": "x"}, "kafka.dt.metrics.user: user and password are needed both"),
        (
            {"listener": "http://:9404", "ssl.keystore.location": "x"},
            "kafka.dt.metrics.ssl.keystore.location: it sets nothing without kafka.dt.metrics.listener=https://...",
        ),
        ({"user": "x"}, "kafka.dt.metrics.user: it sets nothing without kafka.dt.metrics.listener"),
    ],
)
def test_what_cannot_be_used_or_sets_nothing_is_an_error_that_names_the_key(
    properties: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        made({f"{METRICS}{key}": value for key, value in properties.items()})
