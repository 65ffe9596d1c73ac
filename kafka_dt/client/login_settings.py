"""A token as the settings of a Kafka client, ready to paste.

    settings(token, "java", bootstrap_servers="broker:9092")
    spark.read.format("kafka").options(**spark_options(token, bootstrap_servers="broker:9092"))

What each library takes differs: Java (and Spark's Kafka source, which is Java) tells the server that these are a
token's credentials; the Python libraries have no way to say so and log in with plain SCRAM, which kafka-dt accepts
for live tokens and a broker of Apache Kafka does not.

Source: KIP-48, "SCRAM extensions"; the documentation of aiokafka, kafka-python, librdkafka and Spark's Kafka source.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from kafka_dt.jaas import SCRAM_LOGIN_MODULE, LoginModule
from kafka_dt.security_protocol import SecurityProtocol
from kafka_dt_protocol.sasl import ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_dt.client.tokens import DelegationToken


class ClientKind(StrEnum):
    """A Kafka client library."""

    JAVA = "java"
    AIOKAFKA = "aiokafka"
    KAFKA_PYTHON = "kafka-python"
    CONFLUENT = "confluent"
    SPARK = "spark"

    @classmethod
    def _missing_(cls, value: object) -> None:
        kinds = ", ".join(kind.value for kind in cls)
        raise ValueError(f"{value!r} is not a valid kind of client; it is one of {kinds} (kcat takes confluent's)")


def settings(
    token: DelegationToken,
    kind: ClientKind | str,
    *,
    bootstrap_servers: str | None = None,
    security_protocol: SecurityProtocol | str = SecurityProtocol.SASL_SSL,
    mechanism: ScramMechanism | str = ScramMechanism.SHA_256,
) -> Mapping[str, str]:
    """Return the settings with which a library logs in with a token. They hold its secret.

    kind: java (client.properties), aiokafka and kafka-python (keyword arguments), confluent (the dictionary; kcat and
    all of librdkafka too), spark (options of a Kafka source or sink)
    bootstrap_servers: `host:port` texts with commas between; None omits the setting
    security_protocol: SASL_SSL, or SASL_PLAINTEXT on a trusted network. What TLS needs besides is not part of this
    (trust store, `ssl_context`)
    mechanism: SCRAM-SHA-256 or SCRAM-SHA-512, one that the listener takes; a token logs in with either
    Raises ValueError for an unknown kind or mechanism, or a protocol without SASL.
    """
    kind, mechanism = ClientKind(kind), ScramMechanism(mechanism)
    protocol = SecurityProtocol(security_protocol)
    if not protocol.uses_sasl:
        raise ValueError(f"a token logs in by SASL, which {protocol} has not")
    if kind in {ClientKind.AIOKAFKA, ClientKind.KAFKA_PYTHON}:
        made = {
            "security_protocol": protocol.value,
            "sasl_mechanism": mechanism.value,
            "sasl_plain_username": token.token_id,
            "sasl_plain_password": token.hmac_base64,
        }
        return _with_servers("bootstrap_servers", bootstrap_servers, made)
    made = {"security.protocol": protocol.value, "sasl.mechanism": mechanism.value}
    if kind is ClientKind.CONFLUENT:
        made |= {"sasl.username": token.token_id, "sasl.password": token.hmac_base64}
    else:
        made |= {"sasl.jaas.config": jaas_line(token)}
    made = _with_servers("bootstrap.servers", bootstrap_servers, made)
    return {f"kafka.{key}": value for key, value in made.items()} if kind is ClientKind.SPARK else made


def spark_options(
    token: DelegationToken,
    *,
    bootstrap_servers: str,
    security_protocol: SecurityProtocol | str = SecurityProtocol.SASL_SSL,
    mechanism: ScramMechanism | str = ScramMechanism.SHA_256,
    properties: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the options with which Spark's Kafka source or sink logs in with a token. They hold its secret.

    A query keeps the options it was started with, and so its token: for one that outlives the token there is
    `kafka_dt.pipeline.token_file`.

    bootstrap_servers: the brokers, or a gateway: `host:port` texts with commas between
    security_protocol, mechanism: as in `settings`
    properties: further settings of Kafka's Java client, such as `ssl.truststore.location`; a file is one that the
    driver and every executor have
    Raises ValueError as `settings`, and for a property that says again how to log in or where.
    """
    login = settings(
        token,
        ClientKind.SPARK,
        bootstrap_servers=bootstrap_servers,
        security_protocol=security_protocol,
        mechanism=mechanism,
    )
    further = {f"kafka.{key}": value for key, value in (properties or {}).items()}
    if twice := sorted(login.keys() & further.keys()):
        raise ValueError(f"properties must not have {', '.join(key.removeprefix('kafka.') for key in twice)}")
    return {**login, **further}


def jaas_line(token: DelegationToken) -> str:
    """Return the value of Java's `sasl.jaas.config` for a login with a token. It holds the secret."""
    options = {"username": token.token_id, "password": token.hmac_base64, "tokenauth": "true"}
    return LoginModule(SCRAM_LOGIN_MODULE, options).line


def _with_servers(key: str, servers: str | None, made: dict[str, str]) -> dict[str, str]:
    return made if servers is None else {key: servers} | made
