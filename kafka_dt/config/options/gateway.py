"""The part of the option table that is about the gateway: the cluster behind it, and who we are there.

What begins with `kafka.dt.gateway.upstream.` and is a setting of Kafka's clients has its name, meaning and syntax.
`kafka_dt.config.gateway` puts the settings together and refuses those that contradict each other.

Source: org.apache.kafka.clients.CommonClientConfigs, org.apache.kafka.common.config.SaslConfigs,
org.apache.kafka.common.config.SslConfigs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kafka_dt.config.options.option import Kind, Secret, Section, Source, option

GATEWAY_PREFIX: Final = "kafka.dt.gateway."
UPSTREAM_PREFIX: Final = "kafka.dt.gateway.upstream."
NO_PORT_BASE: Final = -1


class UpstreamIdentity(StrEnum):
    """Who a client is to the cluster behind the gateway."""

    OWNER_TOKEN = "owner-token"  # noqa: S105 - the name of a kind
    MAPPED = "mapped"
    SERVICE = "service"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class GatewayOptions:
    """The settings of a gateway; all of them mean nothing without `upstream_bootstrap_servers`."""

    upstream_bootstrap_servers: tuple[str, ...] = option(
        "kafka.dt.gateway.upstream.bootstrap.servers",
        Kind.LIST,
        (),
        "Brokers of the cluster that requests are forwarded to, `host:port` each. Setting it makes the node a gateway.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_identity: str = option(
        "kafka.dt.gateway.upstream.identity",
        Kind.STRING,
        "",
        "Who a client is to the cluster behind the gateway; it has to be said. `owner-token`: itself, by a delegation "
        "token of that cluster that the gateway gets for it (Kafka 3.3 or later; takes CREATE_TOKENS on the user). "
        "`mapped`: what `kafka.dt.gateway.upstream.identity.file` says. `service`: the gateway's own user, everybody. "
        "`none`: nobody, over a connection without a login. Clients that are not logged in here (a PLAINTEXT listener, "
        "or SSL without a certificate) go with the last two only.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=tuple(UpstreamIdentity),
    )
    upstream_identity_file: str = option(
        "kafka.dt.gateway.upstream.identity.file",
        Kind.STRING,
        "",
        "Whom each client is to be there, for `mapped`: a JAAS file with a section for each principal, such as "
        '`"User:alice" { org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" '
        'password="..."; };`. It is read again when it changes. A principal that is not in it is refused.',
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_identity_mechanism: str = option(
        "kafka.dt.gateway.upstream.identity.mechanism",
        Kind.STRING,
        "",
        "The SCRAM mechanism of clients' logins there, by token or with a `ScramLoginModule` of the file. Without it "
        "that of `kafka.dt.gateway.upstream.sasl.mechanism` if it is one, else SCRAM-SHA-256.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=("", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    )
    broker_port_base: int = option(
        "kafka.dt.gateway.broker.port.base",
        Kind.INT,
        NO_PORT_BASE,
        "Each broker behind the gateway has a port of its own: this number plus its id. A gateway has either this or "
        "`kafka.dt.gateway.broker.host.pattern`; several listeners need one each.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        minimum=NO_PORT_BASE,
        per_listener=True,
    )
    broker_host_pattern: str = option(
        "kafka.dt.gateway.broker.host.pattern",
        Kind.STRING,
        "",
        "Each broker behind the gateway has a host name of its own, on the port of the listener: `{id}` in it stands "
        "for its id, as in `broker-{id}.kafka.example.com`. The names have to resolve to the gateway, and its "
        "certificate has to bear them; for TLS listeners alone, since TLS is what tells the name.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        per_listener=True,
    )
    upstream_security_protocol: str = option(
        "kafka.dt.gateway.upstream.security.protocol",
        Kind.STRING,
        "PLAINTEXT",
        "How the brokers behind the gateway are spoken to. The settings from here on are those of a Kafka client.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    upstream_sasl_mechanism: str = option(
        "kafka.dt.gateway.upstream.sasl.mechanism",
        Kind.STRING,
        "",
        "The SASL mechanism of the gateway's own login there.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=("", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    )
    upstream_sasl_jaas_config: Secret | None = option(
        "kafka.dt.gateway.upstream.sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "The gateway's own user there. It also asks for the brokers of the cluster, which takes no right, and for "
        "`owner-token` makes the tokens.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_truststore_type: str = option(
        "kafka.dt.gateway.upstream.ssl.truststore.type",
        Kind.STRING,
        "JKS",
        "The format of the trust store. It is seen from the content, so this need not be set.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=("JKS", "PKCS12", "PEM"),
    )
    upstream_ssl_truststore_location: str = option(
        "kafka.dt.gateway.upstream.ssl.truststore.location",
        Kind.STRING,
        "",
        "A file with the certificates that those of the brokers must come from (PEM or PKCS12). Without a trust store "
        "the machine's certificates are trusted.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_truststore_password: Secret | None = option(
        "kafka.dt.gateway.upstream.ssl.truststore.password",
        Kind.PASSWORD,
        None,
        "The password of a PKCS12 trust store.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_truststore_certificates: Secret | None = option(
        "kafka.dt.gateway.upstream.ssl.truststore.certificates",
        Kind.PASSWORD,
        None,
        "The trusted certificates themselves, in PEM.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_keystore_type: str = option(
        "kafka.dt.gateway.upstream.ssl.keystore.type",
        Kind.STRING,
        "JKS",
        "The format of the key store. It is seen from the content, so this need not be set.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=("JKS", "PKCS12", "PEM"),
    )
    upstream_ssl_keystore_location: str = option(
        "kafka.dt.gateway.upstream.ssl.keystore.location",
        Kind.STRING,
        "",
        "A file with the gateway's private key and certificate chain (PEM or PKCS12), where brokers want one.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_keystore_password: Secret | None = option(
        "kafka.dt.gateway.upstream.ssl.keystore.password",
        Kind.PASSWORD,
        None,
        "The password of a PKCS12 key store.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_key_password: Secret | None = option(
        "kafka.dt.gateway.upstream.ssl.key.password",
        Kind.PASSWORD,
        None,
        "The password of an encrypted private key in PEM.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_keystore_key: Secret | None = option(
        "kafka.dt.gateway.upstream.ssl.keystore.key",
        Kind.PASSWORD,
        None,
        "The private key itself, in PEM.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_keystore_certificate_chain: Secret | None = option(
        "kafka.dt.gateway.upstream.ssl.keystore.certificate.chain",
        Kind.PASSWORD,
        None,
        "The certificates that go with it, in PEM.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_endpoint_identification_algorithm: str = option(
        "kafka.dt.gateway.upstream.ssl.endpoint.identification.algorithm",
        Kind.STRING,
        "https",
        "Whether a broker's certificate must bear the name that we connect to; an empty value says no.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=("https", "HTTPS", ""),
    )
    upstream_ssl_enabled_protocols: tuple[str, ...] = option(
        "kafka.dt.gateway.upstream.ssl.enabled.protocols",
        Kind.LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The protocol versions that are spoken.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_protocol: str = option(
        "kafka.dt.gateway.upstream.ssl.protocol",
        Kind.STRING,
        "TLSv1.3",
        "The highest protocol version that is spoken, if it is among them.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_cipher_suites: tuple[str, ...] = option(
        "kafka.dt.gateway.upstream.ssl.cipher.suites",
        Kind.LIST,
        (),
        "The cipher suites that are spoken; without any, OpenSSL's defaults.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_client_id: str = option(
        "kafka.dt.gateway.upstream.client.id",
        Kind.STRING,
        "kafka-dt",
        "The client id of the gateway's own requests; those of clients keep their own.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_request_timeout_ms: int = option(
        "kafka.dt.gateway.upstream.request.timeout.ms",
        Kind.INT,
        30000,
        "How long a broker may take to answer a request of the gateway's own, such as a login.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=1,
    )
    upstream_setup_timeout_ms: int = option(
        "kafka.dt.gateway.upstream.socket.connection.setup.timeout.ms",
        Kind.INT,
        10000,
        "How long a broker may take to be connected to, TLS included.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=1,
    )
