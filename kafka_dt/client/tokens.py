"""A delegation token as a client knows it, the texts of its parts, and the settings that log in with it.

    settings(token, "java", bootstrap_servers="broker:9092")
    spark.read.format("kafka").options(**spark_options(token, bootstrap_servers="broker:9092"))

Java (and Spark's Kafka source, which is Java) tells the server that these are a token's credentials. The Python
libraries have no way to say so and log in with plain SCRAM, which kafka-dt accepts for live tokens and a broker of
Apache Kafka does not.

Source: org.apache.kafka.common.security.token.delegation.DelegationToken and
org.apache.kafka.common.security.token.delegation.TokenInformation; KIP-48, "SCRAM extensions"; the documentation of
aiokafka, kafka-python, librdkafka and Spark's Kafka source.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kafka_dt.client.errors import InvalidArgument
from kafka_dt.jaas import SCRAM_LOGIN_MODULE, LoginModule
from kafka_dt.security_protocol import SecurityProtocol
from kafka_dt_protocol.sasl import ScramMechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """A token with its secret. Principals are texts such as `User:alice`; instants are milliseconds since 1970 UTC."""

    token_id: str
    """22 characters, base64url: the user name of a login with the token."""
    owner: str
    """Who a login with the token is."""
    requester: str
    """Who asked for it; servers before Kafka 3.3 do not say and the owner stands here."""
    renewers: tuple[str, ...]
    """Who may renew and expire it besides the owner."""
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    """When it ends unless it is renewed."""
    max_timestamp_ms: int
    """The end that no renewal can move."""
    hmac: bytes = field(repr=False)
    """The secret, raw: 64 bytes for HMAC-SHA512."""

    @property
    def hmac_base64(self) -> str:
        """The secret as users are given it: base64, the password of a SCRAM login with the token."""
        return base64.b64encode(self.hmac).decode("ascii")


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


def hmac_from_base64(text: str, source: str = "the HMAC") -> bytes:
    """Return the raw HMAC of the base64 text that a user was given; blanks around it do not matter.

    source: where the text comes from, for the error
    Raises InvalidArgument, which does not show the text.
    """
    text = text.strip()
    if not text:
        raise InvalidArgument(f"{source} is empty")
    try:
        hmac = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        # Not chained: the codec's error may hold the text.
        hmac = b""
    # Python takes too much padding and stray bits at the end: signs of a text that was cut or mistyped.
    if not hmac or base64.b64encode(hmac).decode("ascii") != text:
        raise InvalidArgument(f"{source} is not base64 text; give it as it was shown when the token was made")
    return hmac


def raw_hmac(hmac: object) -> bytes:
    """Return the HMAC that a caller gave as bytes.

    Raises InvalidArgument for a token or a text, with the way out; it does not show them.
    """
    if isinstance(hmac, DelegationToken):
        raise InvalidArgument("hmac is a DelegationToken; give its secret: token.hmac")
    if isinstance(hmac, str):
        raise InvalidArgument("hmac is a text; give the raw bytes: token.hmac, or hmac_from_base64(text)")
    if not isinstance(hmac, bytes):
        raise InvalidArgument(f"hmac is of the type {type(hmac).__name__}; give the raw bytes: token.hmac")
    return hmac


def split_principals(name: str, principals: Iterable[str]) -> list[tuple[str, str]]:
    """Return type and name of each principal.

    name: of the argument that holds them
    Raises InvalidArgument as `split_principal`, and for one text, whose letters would be taken for principals.
    """
    if isinstance(principals, str):
        raise InvalidArgument(f"{name} is one text; give a list: {name}=[{principals!r}]")
    return [split_principal(principal) for principal in principals]


def split_principal(principal: str) -> tuple[str, str]:
    """Return type and name of a principal such as `User:alice`.

    Raises InvalidArgument for a text without a type or without a name.
    """
    kind, colon, name = principal.partition(":")
    if not (kind and colon and name):
        raise InvalidArgument(f"{principal!r} is not a principal; write it with its type, as User:alice")
    return kind, name
