"""The options about ZooKeeper: where it is, how a node logs in, how old an answer may be.

Source: org.apache.kafka.server.config.ZkConfigs.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_dt.config.options.option import Kind, Secret, option


@dataclass(frozen=True, kw_only=True)
class ZooKeeperOptions:
    """The connection to ZooKeeper, and the change znodes that a node keeps there for other nodes and brokers."""

    zookeeper_connect: str = option(
        "zookeeper.connect",
        "",
        "The servers of the ZooKeeper ensemble, `host:port,host:port/chroot`.",
    )
    zookeeper_session_timeout_ms: int = option(
        "zookeeper.session.timeout.ms",
        18000,
        "How long ZooKeeper waits for a sign of life from the node; then it ends the node's session.",
        minimum=1,
    )
    zookeeper_connection_timeout_ms: int = option(
        "zookeeper.connection.timeout.ms",
        18000,
        "How long the node waits for ZooKeeper when it starts.",
        minimum=1,
    )
    zookeeper_set_acl: bool = option(
        "zookeeper.set.acl",
        False,
        "Whether only the node's own login may change the znodes that the node creates. Needs a login at ZooKeeper.",
    )
    zookeeper_ssl_client_enable: bool = option(
        "zookeeper.ssl.client.enable",
        False,
        "Whether the node connects to ZooKeeper by TLS.",
    )
    zookeeper_ssl_truststore_location: str = option(
        "zookeeper.ssl.truststore.location",
        "",
        "A file with the certificates of the authorities that may sign ZooKeeper's certificate (PEM or PKCS12).",
    )
    zookeeper_ssl_truststore_password: Secret | None = option(
        "zookeeper.ssl.truststore.password",
        None,
        "The password of the trust store.",
    )
    zookeeper_ssl_keystore_location: str = option(
        "zookeeper.ssl.keystore.location",
        "",
        "A file with the node's own certificate and private key for ZooKeeper (PEM or PKCS12).",
    )
    zookeeper_ssl_keystore_password: Secret | None = option(
        "zookeeper.ssl.keystore.password",
        None,
        "The password of the key store.",
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = option(
        "zookeeper.ssl.endpoint.identification.algorithm",
        "HTTPS",
        "Whether ZooKeeper's certificate must hold the host name that the node connects to; an empty value turns the "
        "check off.",
        choices=("HTTPS", "https", ""),
    )
    zookeeper_digest: Secret | None = option(
        "kafka.dt.zookeeper.digest",
        None,
        "The login at ZooKeeper by its digest scheme, `user:password`.",
    )
    zookeeper_jaas_config: Secret | None = option(
        "kafka.dt.zookeeper.sasl.jaas.config",
        None,
        "The login at ZooKeeper by SASL DIGEST-MD5: the login module that a broker has in the section `Client` of its "
        'JAAS file, `org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="...";`. '
        "Needed beside brokers that own their znodes by SASL (`zookeeper.set.acl`).",
    )
    zookeeper_max_staleness_ms: int = option(
        "kafka.dt.zookeeper.max.staleness.ms",
        30000,
        "The longest time for which a node may accept logins by a revoked token of ZooKeeper, also when the node is "
        "cut off from it, is connected to a member that is cut off from the others, or was frozen. A worker that has "
        "not proved for this long that it knows all revocations refuses every login by such a token. Connections that "
        "have logged in before stay open, unless `kafka.dt.token.sessions.end.when.stale` is set; "
        "`connections.max.reauth.ms` bounds that. Each proof is a write to ZooKeeper; a worker makes three in this "
        "period.",
        minimum=1000,
        kind=Kind.LONG,
    )
    change_retention_ms: int = option(
        "kafka.dt.zookeeper.change.retention.ms",
        60000,
        "How long the node keeps its change znodes, so that brokers and other nodes can read them. A broker keeps its "
        "own for 15 minutes, which is too long at thousands of changes a second.",
        minimum=1000,
        kind=Kind.LONG,
    )
