"""settings(): what each library takes, and that each library's own validation takes it."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from kafka_dt.client import ClientConfig, ClientKind, SecurityProtocol, jaas_line, settings, spark_options
from kafka_dt.jaas import SCRAM_LOGIN_MODULE, parse_login_module
from kafka_dt_protocol.sasl import Challenge, CredentialRequest, ScramMechanism, ScramServer, Success, derive_credential
from tests.unit.client.conftest import TOKEN

# Nothing listens there, and none of the constructors is to find that out.
NOWHERE = "127.0.0.1:1"
MECHANISMS = list(ScramMechanism)


def test_java_is_told_that_it_is_a_token() -> None:
    assert settings(TOKEN, "java", bootstrap_servers="a:1,b:2") == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
        f' username="{TOKEN.token_id}" password="{TOKEN.hmac_base64}" tokenauth="true";',
    }


@pytest.mark.parametrize("kind", ["aiokafka", "kafka-python"])
def test_python_libraries_get_keyword_arguments(kind: str) -> None:
    assert settings(TOKEN, kind, bootstrap_servers="a:1", security_protocol="SASL_PLAINTEXT") == {
        "bootstrap_servers": "a:1",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": TOKEN.token_id,
        "sasl_plain_password": TOKEN.hmac_base64,
    }


def test_librdkafka_gets_its_own_names() -> None:
    assert settings(TOKEN, ClientKind.CONFLUENT, mechanism="SCRAM-SHA-512") == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": TOKEN.token_id,
        "sasl.password": TOKEN.hmac_base64,
    }


def test_spark_gets_javas_settings_with_its_prefix() -> None:
    java = settings(TOKEN, "java", bootstrap_servers="a:1")
    assert settings(TOKEN, "spark", bootstrap_servers="a:1") == {f"kafka.{key}": value for key, value in java.items()}


def test_spark_options_are_those_settings_and_what_else_javas_client_needs() -> None:
    login = settings(TOKEN, "spark", bootstrap_servers="a:1", mechanism="SCRAM-SHA-512")
    made = spark_options(
        TOKEN,
        bootstrap_servers="a:1",
        mechanism="SCRAM-SHA-512",
        properties={"ssl.truststore.location": "/etc/ssl/kafka.pem", "ssl.truststore.type": "PEM"},
    )
    assert made == {
        **login,
        "kafka.ssl.truststore.location": "/etc/ssl/kafka.pem",
        "kafka.ssl.truststore.type": "PEM",
    }


def test_spark_options_say_once_how_to_log_in() -> None:
    with pytest.raises(ValueError, match=r"must not have sasl\.jaas\.config, security\.protocol") as refused:
        spark_options(
            TOKEN,
            bootstrap_servers="a:1",
            properties={"sasl.jaas.config": "other", "security.protocol": "SSL", "client.id": "job"},
        )
    assert TOKEN.hmac_base64 not in str(refused.value)


@pytest.mark.parametrize("kind", ClientKind)
def test_servers_are_left_out_when_none_are_given(kind: ClientKind) -> None:
    assert not any("bootstrap" in key for key in settings(TOKEN, kind))


def test_what_cannot_be_is_refused() -> None:
    for wrong in ({"kind": "sarama"}, {"mechanism": "PLAIN"}, {"security_protocol": "TLS"}):
        with pytest.raises(ValueError, match="is not a valid"):
            settings(TOKEN, **({"kind": "java"} | wrong))
    with pytest.raises(ValueError, match=r"one of java, aiokafka, kafka-python, .* \(kcat takes"):
        settings(TOKEN, "kcat")
    for without_sasl in ("PLAINTEXT", "SSL"):
        with pytest.raises(ValueError, match="a token logs in by SASL"):
            settings(TOKEN, "java", security_protocol=without_sasl)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_our_own_client_takes_javas_settings(mechanism: ScramMechanism) -> None:
    java = settings(
        TOKEN, "java", bootstrap_servers=NOWHERE, security_protocol=SecurityProtocol.SASL_PLAINTEXT, mechanism=mechanism
    )
    credentials = ClientConfig.from_properties(java).login
    assert credentials is not None
    assert (credentials.username, credentials.password) == (TOKEN.token_id, TOKEN.hmac_base64)
    assert credentials.token_auth
    assert credentials.mechanism == mechanism


def test_the_jaas_line_is_read_back() -> None:
    module = parse_login_module(jaas_line(TOKEN))
    assert module.name == SCRAM_LOGIN_MODULE
    assert module.token_auth


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka_takes_them(protocol: str, mechanism: ScramMechanism) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    made: dict[str, Any] = dict(
        settings(TOKEN, "aiokafka", bootstrap_servers=NOWHERE, security_protocol=protocol, mechanism=mechanism)
    )
    if protocol == "SASL_SSL":
        made["ssl_context"] = ssl.create_default_context()
    consumer = aiokafka.AIOKafkaConsumer(**made)
    await consumer.stop()
    with pytest.raises(ValueError, match="sasl_mechanism"):
        aiokafka.AIOKafkaConsumer(**(made | {"sasl_mechanism": "SCRAM-MD5"}))


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_takes_them(protocol: str, mechanism: ScramMechanism) -> None:
    # Its constructors connect at once, so its own checks are asked one by one, and its SCRAM is really carried out.
    kafka = pytest.importorskip("kafka")
    sasl = pytest.importorskip("kafka.net.sasl")
    made = settings(TOKEN, "kafka-python", bootstrap_servers=NOWHERE, security_protocol=protocol, mechanism=mechanism)
    assert set(made) <= set(kafka.KafkaConsumer.DEFAULT_CONFIG)
    _log_in(sasl.get_sasl_mechanism(made["sasl_mechanism"])(host="localhost", **made), mechanism)
    with pytest.raises(kafka.errors.KafkaConfigurationError, match="Unrecognized"):
        kafka.KafkaConsumer(**made, sasl_username="x")


def _log_in(client: Any, mechanism: ScramMechanism) -> None:
    """Let a library's own SCRAM log in with the token."""
    server = ScramServer(mechanism, "servernonce")
    asked = server.step(client.auth_bytes())
    assert asked == CredentialRequest(TOKEN.token_id, token=False)
    challenge = server.resume(derive_credential(mechanism, TOKEN.hmac_base64, b"salt", 4096))
    assert isinstance(challenge, Challenge)
    client.receive(challenge.message)
    success = server.step(client.auth_bytes())
    assert isinstance(success, Success)
    assert client.receive(success.message)


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_confluent_takes_them(protocol: str, mechanism: ScramMechanism) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    made = settings(TOKEN, "confluent", bootstrap_servers=NOWHERE, security_protocol=protocol, mechanism=mechanism)
    confluent_kafka.Consumer({**made, "group.id": "g"}).close()
    with pytest.raises(confluent_kafka.KafkaException, match="No such configuration"):
        confluent_kafka.Consumer({**made, "group.id": "g", "sasl.user": "x"})
