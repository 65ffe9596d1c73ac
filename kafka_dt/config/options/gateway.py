"""The options of a gateway: the cluster behind it, and the logins there.

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
    """The user as which the gateway logs in upstream for a client."""

    OWNER_TOKEN = "owner-token"  # noqa: S105 - the name of a kind
    MAPPED = "mapped"
    SERVICE = "service"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class GatewayOptions:
    """The settings of a gateway; without `upstream_bootstrap_servers` none has an effect."""

    upstream_bootstrap_servers: tuple[str, ...] = option(
        "kafka.dt.gateway.upstream.bootstrap.servers",
        Kind.LIST,
        (),
        "Brokers of the cluster to which the gateway forwards requests, `host:port` each. Setting it makes the node a "
        "gateway.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_identity: str = option(
        "kafka.dt.gateway.upstream.identity",
        Kind.STRING,
        "",
        "The user as which the gateway logs in upstream for a client; a gateway needs this setting. `owner-token`: "
        "the client's own principal, with a delegation token of that cluster that the gateway creates for it (Kafka "
        "3.3 or later; the gateway needs CREATE_TOKENS on the user). `mapped`: the user that "
        "`kafka.dt.gateway.upstream.identity.file` names for the client's principal. `service`: the gateway's own "
        "user, for every client. `none`: no login upstream. Clients without a login (on a PLAINTEXT listener, or on "
        "SSL without a certificate) can use the last two only.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=tuple(UpstreamIdentity),
    )
    upstream_identity_file: str = option(
        "kafka.dt.gateway.upstream.identity.file",
        Kind.STRING,
        "",
        "The upstream login of each client, for `mapped`: a JAAS file with a section for each principal, such as "
        '`"User:alice" { org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" '
        'password="..."; };`. The gateway reads the file again when it changes. It refuses a principal that the file '
        "does not name.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_identity_mechanism: str = option(
        "kafka.dt.gateway.upstream.identity.mechanism",
        Kind.STRING,
        "",
        "The SCRAM mechanism of the upstream logins for clients, by token or with a `ScramLoginModule` of the file. "
        "Without it the gateway uses `kafka.dt.gateway.upstream.sasl.mechanism` if that is a SCRAM mechanism, else "
        "SCRAM-SHA-256.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=("", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    )
    broker_port_base: int = option(
        "kafka.dt.gateway.broker.port.base",
        Kind.INT,
        NO_PORT_BASE,
        "Gives each broker behind the gateway a port of its own: this number plus the broker's id. A gateway needs "
        "either this or `kafka.dt.gateway.broker.host.pattern`; with several listeners, set one for each.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        minimum=NO_PORT_BASE,
        per_listener=True,
    )
    broker_host_pattern: str = option(
        "kafka.dt.gateway.broker.host.pattern",
        Kind.STRING,
        "",
        "Gives each broker behind the gateway a host name of its own, on the port of the listener. `{id}` stands for "
        "the broker's id, as in `broker-{id}.kafka.example.com`. The names must resolve to the gateway, and its "
        "certificate must hold them. For TLS listeners only: a client names the host in its TLS handshake.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        per_listener=True,
    )
    upstream_security_protocol: str = option(
        "kafka.dt.gateway.upstream.security.protocol",
        Kind.STRING,
        "PLAINTEXT",
        "The security protocol of the connections to the brokers behind the gateway. The settings from here on are "
        "those of a Kafka client.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    upstream_sasl_mechanism: str = option(
        "kafka.dt.gateway.upstream.sasl.mechanism",
        Kind.STRING,
        "",
        "The SASL mechanism of the gateway's own login upstream.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=("", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    )
    upstream_sasl_jaas_config: Secret | None = option(
        "kafka.dt.gateway.upstream.sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "The gateway's own user upstream. By this login the gateway also asks for the cluster's brokers, which needs "
        "no permission, and, for `owner-token`, creates the tokens.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_truststore_type: str = option(
        "kafka.dt.gateway.upstream.ssl.truststore.type",
        Kind.STRING,
        "JKS",
        "The format of the trust store. The gateway recognizes the format by the content, so you need not set it.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=("JKS", "PKCS12", "PEM"),
    )
    upstream_ssl_truststore_location: str = option(
        "kafka.dt.gateway.upstream.ssl.truststore.location",
        Kind.STRING,
        "",
        "A file with the certificates of the authorities that may sign the brokers' certificates (PEM or PKCS12). "
        "Without a trust store the gateway trusts the machine's certificates.",
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
        "The trusted certificates themselves, in PEM, instead of a trust store.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_keystore_type: str = option(
        "kafka.dt.gateway.upstream.ssl.keystore.type",
        Kind.STRING,
        "JKS",
        "The format of the key store. The gateway recognizes the format by the content, so you need not set it.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=("JKS", "PKCS12", "PEM"),
    )
    upstream_ssl_keystore_location: str = option(
        "kafka.dt.gateway.upstream.ssl.keystore.location",
        Kind.STRING,
        "",
        "A file with the gateway's private key and certificate chain (PEM or PKCS12), for brokers that ask for a "
        "certificate.",
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
        "The private key itself, in PEM, instead of a key store.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_keystore_certificate_chain: Secret | None = option(
        "kafka.dt.gateway.upstream.ssl.keystore.certificate.chain",
        Kind.PASSWORD,
        None,
        "The certificates that belong to the private key, in PEM, the gateway's own first.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_endpoint_identification_algorithm: str = option(
        "kafka.dt.gateway.upstream.ssl.endpoint.identification.algorithm",
        Kind.STRING,
        "https",
        "Whether a broker's certificate must hold the host name that the gateway connects to; an empty value turns "
        "the check off.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        choices=("https", "HTTPS", ""),
    )
    upstream_ssl_enabled_protocols: tuple[str, ...] = option(
        "kafka.dt.gateway.upstream.ssl.enabled.protocols",
        Kind.LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The TLS versions that the gateway offers.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_protocol: str = option(
        "kafka.dt.gateway.upstream.ssl.protocol",
        Kind.STRING,
        "TLSv1.3",
        "The highest TLS version that the gateway offers, if it is among "
        "`kafka.dt.gateway.upstream.ssl.enabled.protocols`.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_ssl_cipher_suites: tuple[str, ...] = option(
        "kafka.dt.gateway.upstream.ssl.cipher.suites",
        Kind.LIST,
        (),
        "The cipher suites that the gateway offers; none means OpenSSL's defaults.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_client_id: str = option(
        "kafka.dt.gateway.upstream.client.id",
        Kind.STRING,
        "kafka-dt",
        "The client id of the gateway's own requests; requests of clients keep their own.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
    )
    upstream_request_timeout_ms: int = option(
        "kafka.dt.gateway.upstream.request.timeout.ms",
        Kind.INT,
        30000,
        "How long a broker may take to answer one of the gateway's own requests, such as a login.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=1,
    )
    upstream_setup_timeout_ms: int = option(
        "kafka.dt.gateway.upstream.socket.connection.setup.timeout.ms",
        Kind.INT,
        10000,
        "How long a connection to a broker may take to open, TLS included.",
        section=Section.GATEWAY,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=1,
    )
