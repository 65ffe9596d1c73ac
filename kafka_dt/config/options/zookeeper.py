"""The part of the option table that is about ZooKeeper: where it is, how a node logs in, how old an answer may be.

Source: org.apache.kafka.server.config.ZkConfigs.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_dt.config.options.option import Kind, Secret, Section, Source, option


@dataclass(frozen=True, kw_only=True)
class ZooKeeperOptions:
    """The connection to ZooKeeper, and what is kept there for others."""

    zookeeper_connect: str = option(
        "zookeeper.connect",
        Kind.STRING,
        "",
        "The ZooKeeper ensemble, `host:port,host:port/chroot`.",
        section=Section.ZOOKEEPER,
    )
    zookeeper_session_timeout_ms: int = option(
        "zookeeper.session.timeout.ms",
        Kind.INT,
        18000,
        "After this long without a sign of life ZooKeeper ends our session.",
        section=Section.ZOOKEEPER,
        unit="milliseconds",
        minimum=1,
    )
    zookeeper_connection_timeout_ms: int = option(
        "zookeeper.connection.timeout.ms",
        Kind.INT,
        18000,
        "How long the start waits for ZooKeeper.",
        section=Section.ZOOKEEPER,
        unit="milliseconds",
        minimum=1,
    )
    zookeeper_set_acl: bool = option(
        "zookeeper.set.acl",
        Kind.BOOLEAN,
        False,
        "Whether the znodes that we make are ours alone. Needs credentials for ZooKeeper.",
        section=Section.ZOOKEEPER,
    )
    zookeeper_ssl_client_enable: bool = option(
        "zookeeper.ssl.client.enable",
        Kind.BOOLEAN,
        False,
        "Whether to talk TLS to ZooKeeper.",
        section=Section.ZOOKEEPER,
    )
    zookeeper_ssl_truststore_location: str = option(
        "zookeeper.ssl.truststore.location",
        Kind.STRING,
        "",
        "The certificates that ZooKeeper's must come from (PEM or PKCS12).",
        section=Section.ZOOKEEPER,
    )
    zookeeper_ssl_truststore_password: Secret | None = option(
        "zookeeper.ssl.truststore.password",
        Kind.PASSWORD,
        None,
        "The password of the trust store.",
        section=Section.ZOOKEEPER,
    )
    zookeeper_ssl_keystore_location: str = option(
        "zookeeper.ssl.keystore.location",
        Kind.STRING,
        "",
        "Our certificate and private key for ZooKeeper (PEM or PKCS12).",
        section=Section.ZOOKEEPER,
    )
    zookeeper_ssl_keystore_password: Secret | None = option(
        "zookeeper.ssl.keystore.password",
        Kind.PASSWORD,
        None,
        "The password of the key store.",
        section=Section.ZOOKEEPER,
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = option(
        "zookeeper.ssl.endpoint.identification.algorithm",
        Kind.STRING,
        "HTTPS",
        "Whether ZooKeeper's certificate must bear the name that we connect to; an empty value says no.",
        section=Section.ZOOKEEPER,
        choices=("HTTPS", "https", ""),
    )
    zookeeper_digest: Secret | None = option(
        "kafka.dt.zookeeper.digest",
        Kind.PASSWORD,
        None,
        "`user:password` for ZooKeeper's digest scheme.",
        section=Section.ZOOKEEPER,
        source=Source.KAFKA_DT,
    )
    zookeeper_jaas_config: Secret | None = option(
        "kafka.dt.zookeeper.sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "The login module that a broker has in the section `Client` of its JAAS file, for SASL DIGEST-MD5: "
        '`org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="...";`. '
        "Needed beside brokers that own their znodes by SASL (`zookeeper.set.acl`).",
        section=Section.ZOOKEEPER,
        source=Source.KAFKA_DT,
    )
    zookeeper_max_staleness_ms: int = option(
        "kafka.dt.zookeeper.max.staleness.ms",
        Kind.LONG,
        30000,
        "The longest time for which a node may accept a token that was revoked, whatever happens to it: cut off from "
        "ZooKeeper, on a member that is cut off from the others, or frozen. A worker that has not proved for this "
        "long that it knows all revocations accepts no login by token. It makes such a proof, a write to ZooKeeper, "
        "three times in this period.",
        section=Section.ZOOKEEPER,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=1000,
    )
    change_retention_ms: int = option(
        "kafka.dt.zookeeper.change.retention.ms",
        Kind.LONG,
        60000,
        "How long the change nodes that we make stay for brokers and other nodes to read. A broker keeps its own "
        "for 15 minutes, too long at thousands of changes a second.",
        section=Section.ZOOKEEPER,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=1000,
    )
