"""kafka_dt.client.config: Kafka's client properties, read and refused."""

from __future__ import annotations

import logging
import ssl

import pytest

from kafka_dt.client import Address, ClientConfig, ClientConfigError, Credentials, SecurityProtocol, parse_addresses
from kafka_dt.client.config import client_keys, nearest_key

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="wonder";'
SCRAM = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required"
    ' username="id" password="c2VjcmV0" tokenauth="true";'
)
SASL = {"bootstrap.servers": "b:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}


def test_the_defaults_are_kafkas() -> None:
    config = ClientConfig.from_properties({"bootstrap.servers": "broker:9092", "group.id": "not looked at"})
    assert config.security_protocol is SecurityProtocol.PLAINTEXT
    assert config.login is None
    assert config.ssl_context is None
    assert (config.request_timeout_ms, config.setup_timeout_ms) == (30_000, 10_000)


def test_everything_can_be_set() -> None:
    config = ClientConfig.from_properties(
        {
            "bootstrap.servers": "broker:9092",
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": SCRAM,
            "client.id": "me",
            "request.timeout.ms": "1000",
            "socket.connection.setup.timeout.ms": " 2000 ",
        }
    )
    assert config.login is not None
    assert (config.login.username, config.login.password) == ("id", "c2VjcmV0")
    assert config.login.token_auth
    assert isinstance(config.ssl_context, ssl.SSLContext)
    assert (config.client_id, config.request_timeout_ms, config.setup_timeout_ms) == ("me", 1000, 2000)


def test_no_secret_is_shown() -> None:
    config = ClientConfig.from_properties(SASL | {"sasl.jaas.config": PLAIN})
    assert "wonder" not in repr(config)


def test_credentials_are_not_looked_at_without_sasl() -> None:
    plain = {"bootstrap.servers": "b:1", "sasl.jaas.config": "nonsense"}
    assert ClientConfig.from_properties(plain).login is None


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a:1", [Address("a", 1)]),
        (" a:1 , b.example:2,", [Address("a", 1), Address("b.example", 2)]),
        ("[::1]:9092", [Address("::1", 9092)]),
        ("SASL_SSL://a:1", [Address("a", 1)]),
        (["a:1", "127.0.0.1:65535"], [Address("a", 1), Address("127.0.0.1", 65535)]),
    ],
)
def test_addresses_are_read(text: str | list[str], addresses: list[Address]) -> None:
    assert list(parse_addresses(text)) == addresses


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"


@pytest.mark.parametrize(
    ("properties", "key", "reason"),
    [
        ({}, "bootstrap.servers", "at least one"),
        ({"bootstrap.servers": "a"}, "bootstrap.servers", "not of the form"),
        ({"bootstrap.servers": "a:0"}, "bootstrap.servers", "not of the form"),
        ({"bootstrap.servers": "a:65536"}, "bootstrap.servers", "not of the form"),
        ({"bootstrap.servers": "a:1", "security.protocol": "TLS"}, "security.protocol", "none of PLAINTEXT, SSL"),
        ({"bootstrap.servers": "a:1", "request.timeout.ms": "soon"}, "request.timeout.ms", "not a number"),
        ({"bootstrap.servers": "a:1", "request.timeout.ms": "0"}, "request.timeout.ms", "above 0"),
        (SASL | {"sasl.mechanism": ""}, "sasl.mechanism", "GSSAPI"),
        (SASL | {"sasl.mechanism": "LOGIN"}, "sasl.mechanism", "none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        (SASL, "sasl.jaas.config", "PlainLoginModule required username"),
        (SASL | {"sasl.jaas.config": "nonsense"}, "sasl.jaas.config", "not understood"),
        (SASL | {"sasl.jaas.config": SCRAM}, "sasl.jaas.config", "PLAIN needs"),
        (
            SASL | {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": PLAIN},
            "sasl.jaas.config",
            "SCRAM-SHA-256 needs",
        ),
        (
            SASL | {"sasl.jaas.config": PLAIN.replace("username=", "user_x=")},
            "sasl.jaas.config",
            "no username",
        ),
        (SASL | {"sasl.jaas.config": PLAIN.replace('"wonder"', '""')}, "sasl.jaas.config", "no password"),
        (
            {"bootstrap.servers": "a:1", "security.protocol": "SSL", "ssl.truststore.location": "/none"},
            "ssl.truststore.location",
            "cannot be read",
        ),
    ],
)
def test_an_unusable_setting_is_named(properties: dict[str, str], key: str, reason: str) -> None:
    with pytest.raises(ClientConfigError, match=reason) as caught:
        ClientConfig.from_properties(properties)
    assert caught.value.key == key


def test_a_config_made_by_hand_is_held_to_the_same() -> None:
    for protocol in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SSL):
        with pytest.raises(ClientConfigError, match="needs"):
            ClientConfig(bootstrap_servers=(Address("a", 1),), security_protocol=protocol)


# Keys that no client of Kafka knows

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


ENVIRONMENT = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


def test_a_password_comes_from_a_config_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_DT_PASSWORD", "wonder")
    given = SASL | ENVIRONMENT | {"sasl.jaas.config": PLAIN.replace("wonder", "${env:KAFKA_DT_PASSWORD}")}
    login = Credentials("PLAIN", "alice", "wonder")
    assert ClientConfig.from_properties(given).credentials == Credentials.from_properties(given) == login


def test_a_variable_of_a_config_provider_without_a_value_is_an_error_and_no_password() -> None:
    login = {"sasl.jaas.config": 'S required username="u" password="${env:KAFKA_DT_MISSING}";'}
    with pytest.raises(ClientConfigError, match=r"^sasl\.jaas\.config: \$\{env:KAFKA_DT_MISSING\}: the environment"):
        ClientConfig.from_properties(SERVER | ENVIRONMENT | login)
    vault = {
        "config.providers": "vault",
        "config.providers.vault.class": "com.example.Vault",
        "client.id": "${vault:a}",
    }
    with pytest.raises(
        ClientConfigError, match=r"^client\.id: .* does not have 'com\.example\.Vault'; write the value"
    ):
        ClientConfig.from_properties(SERVER | vault)
    ClientConfig.from_properties(SERVER | {"config.providers": "other"} | login)


@pytest.mark.parametrize("key", ["bootstrap.servers", "security.protocol", "request.timeout.ms"])
def test_the_value_of_a_config_provider_is_in_no_error(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("KAFKA_DT_PASSWORD", "won'der")
    with pytest.raises(ClientConfigError) as raised:
        ClientConfig.from_properties(SERVER | ENVIRONMENT | {key: "${env:KAFKA_DT_PASSWORD}"})
    assert str(raised.value) == f"{key}: the value of its provider is not one of this setting"


def test_a_setting_of_another_program_may_have_the_value_of_a_config_provider(caplog: pytest.LogCaptureFixture) -> None:
    """Kafka's tools share the file, and kafka-dt does not read the setting."""
    others = {"config.providers": "file", "schema.registry.ssl.key.password": "${file:/pw:u}"}
    (unknown,) = warnings(caplog, others)
    assert "schema.registry.ssl.key.password" in unknown


def test_neither_a_value_nor_what_may_be_a_torn_line_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    (torn, named) = warnings(caplog, {'"wonder";': "", "sasl.jaas.confg": "the secret"})
    assert "wonder" not in torn
    assert "sasl.jaas.config" in named
    assert "the secret" not in named
