"""The options of a gateway: the cluster behind it, and the logins there.

What begins with `kafka.dt.gateway.upstream.` and is a setting of Kafka's clients has its name, meaning and syntax.
`kafka_dt.config.gateway` puts the settings together and refuses those that contradict each other.

Source: org.apache.kafka.clients.CommonClientConfigs, org.apache.kafka.common.config.SaslConfigs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kafka_dt.config.options.client import LOGIN_MECHANISMS, SCRAM_MECHANISMS, client_tls
from kafka_dt.config.options.option import Kind, Secret, option, per_listener
from kafka_dt.security_protocol import SecurityProtocol

GATEWAY_PREFIX: Final = "kafka.dt.gateway."
UPSTREAM_PREFIX: Final = "kafka.dt.gateway.upstream."
STORE_PREFIX: Final = "kafka.dt.upstream."
"""Of the settings of the cluster as the store of tokens."""
NEWS_TOPIC: Final = "kafka.dt.upstream.news.topic"
NO_PORT_BASE: Final = -1


class UpstreamIdentity(StrEnum):
    """The user as which the gateway logs in upstream for a client."""

    OWNER_TOKEN = "owner-token"  # noqa: S105 - the name of a kind
    RELAY = "relay"
    MAPPED = "mapped"
    SERVICE = "service"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class GatewayOptions:
    """The settings of a gateway; without `upstream_bootstrap_servers` none has an effect."""

    upstream_bootstrap_servers: tuple[str, ...] = option(
        "kafka.dt.gateway.upstream.bootstrap.servers",
        (),
        "Brokers of the cluster to which the gateway forwards requests, `host:port` each. Setting it makes the node a "
        "gateway.",
        reloads=True,
    )
    upstream_identity: str = option(
        "kafka.dt.gateway.upstream.identity",
        "",
        "The user as which the gateway logs in upstream for a client; a gateway needs this setting. `owner-token`: "
        "the client's own principal, with a delegation token of that cluster that the gateway creates for it (Kafka "
        "3.3 or later; the gateway needs CREATE_TOKENS on the user). `relay`: the client logs in at the cluster. "
        "The gateway passes on what PLAIN, SCRAM and OAUTHBEARER say, and needs no users of its own; who logs in by "
        "token, by a certificate or by Kerberos acts upstream as with `owner-token`. `mapped`: the user that "
        "`kafka.dt.gateway.upstream.identity.file` names for the client's principal. `service`: the gateway's own "
        "user, for every client. `none`: no login upstream. Clients without a login (on a PLAINTEXT listener, or on "
        "SSL without a certificate) can use the last two only.",
        choices=tuple(UpstreamIdentity),
    )
    upstream_identity_file: str = option(
        "kafka.dt.gateway.upstream.identity.file",
        "",
        "The upstream login of each client, for `mapped`: a JAAS file with a section for each principal, such as "
        '`"User:alice" { org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" '
        'password="..."; };`. The gateway reads the file again when it changes. It refuses a principal that the file '
        "does not name.",
    )
    upstream_identity_logins: int = option(
        "kafka.dt.gateway.upstream.identity.max.logins.per.ip",
        100,
        "For `relay`: how many connections of one client address may have a login under way at the cluster, in each "
        "worker. The cluster sees the address of the gateway only, so its own limits cannot tell clients apart.",
        minimum=1,
    )
    upstream_identity_mechanism: str = option(
        "kafka.dt.gateway.upstream.identity.mechanism",
        "",
        "The SCRAM mechanism of the upstream logins for clients, by token or with a `ScramLoginModule` of the file. "
        "Without it the gateway uses `kafka.dt.gateway.upstream.sasl.mechanism` if that is a SCRAM mechanism, else "
        "SCRAM-SHA-256.",
        choices=("", *SCRAM_MECHANISMS),
    )
    broker_port_base: int = per_listener(
        "kafka.dt.gateway.broker.port.base",
        NO_PORT_BASE,
        "Gives each broker behind the gateway a port of its own: this number plus the broker's id. A gateway needs "
        "either this or `kafka.dt.gateway.broker.host.pattern`; with several listeners, set one for each.",
        minimum=NO_PORT_BASE,
    )
    broker_host_pattern: str = per_listener(
        "kafka.dt.gateway.broker.host.pattern",
        "",
        "Gives each broker behind the gateway a host name of its own, on the port of the listener. `{id}` stands for "
        "the broker's id, as in `broker-{id}.kafka.example.com`. The names must resolve to the gateway, and its "
        "certificate must hold them. For TLS listeners only: a client names the host in its TLS handshake.",
    )
    upstream_token_refresh_ms: int = option(
        "kafka.dt.upstream.token.refresh.ms",
        500,
        "How often a worker reads the tokens of the cluster, if `kafka.dt.token.store` has `upstream`: how long it "
        "takes until a node obeys a revocation that was made at a broker. A worker spends at most a fifth of its time "
        "on it, besides its proofs, unless `kafka.dt.upstream.max.staleness.ms` needs more.",
        minimum=100,
    )
    upstream_news_topic: str = option(
        NEWS_TOPIC,
        "__kafka_dt_revocations",
        "The topic of the cluster by which nodes tell each other of revocations, if `kafka.dt.token.store` has "
        "`upstream`; the same for all nodes of the cluster. The first node creates it if it may, or "
        "`kafka-dt upstream init` does. Empty: nodes hear of each other's revocations when their brokers do.",
    )
    upstream_max_staleness_ms: int = option(
        "kafka.dt.upstream.max.staleness.ms",
        30000,
        "The longest time for which a node may accept logins by a revoked token of the cluster "
        "(`kafka.dt.token.store` has `upstream`), also when the node is cut off from the cluster, or its broker from "
        "the controllers. A worker that has not proved for this long that it knows all revocations refuses every login "
        "by such a token. Connections that have logged in before stay open, unless "
        "`kafka.dt.token.sessions.end.when.stale` is set; `connections.max.reauth.ms` bounds that.",
        minimum=3000,
        kind=Kind.LONG,
    )
    upstream_security_protocol: str = option(
        "kafka.dt.gateway.upstream.security.protocol",
        "PLAINTEXT",
        "The security protocol of the connections to the brokers behind the gateway. The settings from here on are "
        "those of a Kafka client.",
        choices=tuple(SecurityProtocol),
    )
    upstream_sasl_mechanism: str = option(
        "kafka.dt.gateway.upstream.sasl.mechanism",
        "",
        "The SASL mechanism of the gateway's own login upstream.",
        choices=("", *LOGIN_MECHANISMS),
    )
    upstream_sasl_jaas_config: Secret | None = option(
        "kafka.dt.gateway.upstream.sasl.jaas.config",
        None,
        "The gateway's own user upstream. By this login the gateway also asks for the cluster's brokers, which needs "
        "no permission, and, for `owner-token`, creates the tokens.",
        reloads=True,
    )
    upstream_ssl_truststore_type: str = client_tls(f"{UPSTREAM_PREFIX}ssl.truststore.type")
    upstream_ssl_truststore_location: str = client_tls(f"{UPSTREAM_PREFIX}ssl.truststore.location")
    upstream_ssl_truststore_password: Secret | None = client_tls(f"{UPSTREAM_PREFIX}ssl.truststore.password")
    upstream_ssl_truststore_certificates: Secret | None = client_tls(f"{UPSTREAM_PREFIX}ssl.truststore.certificates")
    upstream_ssl_keystore_type: str = client_tls(f"{UPSTREAM_PREFIX}ssl.keystore.type")
    upstream_ssl_keystore_location: str = client_tls(f"{UPSTREAM_PREFIX}ssl.keystore.location")
    upstream_ssl_keystore_password: Secret | None = client_tls(f"{UPSTREAM_PREFIX}ssl.keystore.password")
    upstream_ssl_key_password: Secret | None = client_tls(f"{UPSTREAM_PREFIX}ssl.key.password")
    upstream_ssl_keystore_key: Secret | None = client_tls(f"{UPSTREAM_PREFIX}ssl.keystore.key")
    upstream_ssl_keystore_certificate_chain: Secret | None = client_tls(
        f"{UPSTREAM_PREFIX}ssl.keystore.certificate.chain"
    )
    upstream_ssl_endpoint_identification_algorithm: str = client_tls(
        f"{UPSTREAM_PREFIX}ssl.endpoint.identification.algorithm"
    )
    upstream_ssl_enabled_protocols: tuple[str, ...] = client_tls(f"{UPSTREAM_PREFIX}ssl.enabled.protocols")
    upstream_ssl_protocol: str = client_tls(f"{UPSTREAM_PREFIX}ssl.protocol")
    upstream_ssl_cipher_suites: tuple[str, ...] = client_tls(f"{UPSTREAM_PREFIX}ssl.cipher.suites")
    upstream_proxy_protocol: str = option(
        "kafka.dt.gateway.upstream.proxy.protocol",
        "off",
        "Whether the gateway tells the brokers the address of each client, by the PROXY protocol in front of each "
        "connection. Kafka's own brokers do not understand it: `v2` is for clusters behind a load balancer, or another "
        "gateway, that expects it.",
        choices=("off", "v2"),
    )
    upstream_client_id: str = option(
        "kafka.dt.gateway.upstream.client.id",
        "kafka-dt",
        "The client id of the gateway's own requests; requests of clients keep their own.",
    )
    upstream_request_timeout_ms: int = option(
        "kafka.dt.gateway.upstream.request.timeout.ms",
        30000,
        "How long a broker may take to answer one of the gateway's own requests, such as a login.",
        minimum=1,
    )
    upstream_setup_timeout_ms: int = option(
        "kafka.dt.gateway.upstream.socket.connection.setup.timeout.ms",
        10000,
        "How long a connection to a broker may take to open, TLS included.",
        minimum=1,
    )
