"""The options of audit events: the files and the topic that a node writes them to.

What begins with `kafka.dt.audit.kafka.` and is a setting of Kafka's clients has its name, meaning and syntax.
`kafka_dt.config.audit` puts the settings together and refuses those that set nothing.

Source: org.apache.kafka.storage.internals.log.LogConfig for the names about files;
org.apache.kafka.clients.CommonClientConfigs, org.apache.kafka.clients.producer.ProducerConfig,
org.apache.kafka.common.config.SaslConfigs, org.apache.kafka.common.config.SslConfigs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_dt.config.options.option import Kind, Secret, Section, Source, option

AUDIT_LOG_PREFIX: Final = "kafka.dt.audit.log."
AUDIT_KAFKA_PREFIX: Final = "kafka.dt.audit.kafka."
DEFAULT_TOPIC: Final = "kafka-dt-audit"


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The settings of audit events; without a folder and without brokers nothing is written."""

    audit_log_dir: str = option(
        "kafka.dt.audit.log.dir",
        Kind.STRING,
        "",
        "The folder for audit events, as files of JSON lines; the node creates it if it is missing. Setting it, or "
        "`kafka.dt.audit.kafka.bootstrap.servers`, switches audit events on.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_log_file_bytes: int = option(
        "kafka.dt.audit.log.file.bytes",
        Kind.INT,
        64 * 1024 * 1024,
        "The largest size of a file: the node completes a file that would grow beyond it, and begins the next one.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        unit="bytes",
        minimum=1024,
    )
    audit_log_roll_ms: int = option(
        "kafka.dt.audit.log.roll.ms",
        Kind.LONG,
        300000,
        "The age at which the node completes a file. A program that reads complete files sees events with that delay.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=100,
    )
    audit_log_retention_ms: int = option(
        "kafka.dt.audit.log.retention.ms",
        Kind.LONG,
        -1,
        "The age at which the node deletes its complete files; -1 keeps them.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=-1,
    )
    audit_buffer_bytes: int = option(
        "kafka.dt.audit.buffer.bytes",
        Kind.INT,
        32 * 1024 * 1024,
        "How many bytes of events each worker keeps for the folder, and for the topic, while it cannot write to them. "
        "Further events are lost; the log says how many of each kind. Refused requests and failed logins fill at most "
        "a quarter of it, successful logins at most half.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        unit="bytes",
        minimum=1024,
    )
    audit_node_name: str = option(
        "kafka.dt.audit.node.name",
        Kind.STRING,
        "",
        "The name of this node in events and in file names: letters, digits, `.`, `_` and `-`. Without it the node "
        "uses the name of its host. Set it where the host's name changes at each start, as in containers: the node "
        "then completes the files that a crash left open.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_bootstrap_servers: tuple[str, ...] = option(
        "kafka.dt.audit.kafka.bootstrap.servers",
        Kind.LIST,
        (),
        "Brokers of a cluster to which the node also writes audit events, `host:port` each. Needs the extra "
        "`audit-kafka`.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_topic: str = option(
        "kafka.dt.audit.kafka.topic",
        Kind.STRING,
        DEFAULT_TOPIC,
        "The topic of the audit events.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_security_protocol: str = option(
        "kafka.dt.audit.kafka.security.protocol",
        Kind.STRING,
        "PLAINTEXT",
        "The security protocol of the connections to these brokers. The settings from here on are those of a Kafka "
        "producer.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    audit_kafka_sasl_mechanism: str = option(
        "kafka.dt.audit.kafka.sasl.mechanism",
        Kind.STRING,
        "",
        "The SASL mechanism of the login at these brokers.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    )
    audit_kafka_sasl_jaas_config: Secret | None = option(
        "kafka.dt.audit.kafka.sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "The user at these brokers; it needs WRITE on the topic.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_truststore_type: str = option(
        "kafka.dt.audit.kafka.ssl.truststore.type",
        Kind.STRING,
        "JKS",
        "The format of the trust store. The node recognizes the format by the content, so you need not set it.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("JKS", "PKCS12", "PEM"),
    )
    audit_kafka_ssl_truststore_location: str = option(
        "kafka.dt.audit.kafka.ssl.truststore.location",
        Kind.STRING,
        "",
        "A file with the certificates of the authorities that may sign the brokers' certificates (PEM or PKCS12). "
        "Without a trust store the node trusts the machine's certificates.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_truststore_password: Secret | None = option(
        "kafka.dt.audit.kafka.ssl.truststore.password",
        Kind.PASSWORD,
        None,
        "The password of a PKCS12 trust store.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_truststore_certificates: Secret | None = option(
        "kafka.dt.audit.kafka.ssl.truststore.certificates",
        Kind.PASSWORD,
        None,
        "The trusted certificates themselves, in PEM, instead of a trust store.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_keystore_type: str = option(
        "kafka.dt.audit.kafka.ssl.keystore.type",
        Kind.STRING,
        "JKS",
        "The format of the key store. The node recognizes the format by the content, so you need not set it.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("JKS", "PKCS12", "PEM"),
    )
    audit_kafka_ssl_keystore_location: str = option(
        "kafka.dt.audit.kafka.ssl.keystore.location",
        Kind.STRING,
        "",
        "A file with the node's private key and certificate chain (PEM or PKCS12), for brokers that ask for a "
        "certificate.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_keystore_password: Secret | None = option(
        "kafka.dt.audit.kafka.ssl.keystore.password",
        Kind.PASSWORD,
        None,
        "The password of a PKCS12 key store.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_key_password: Secret | None = option(
        "kafka.dt.audit.kafka.ssl.key.password",
        Kind.PASSWORD,
        None,
        "The password of an encrypted private key in PEM.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_keystore_key: Secret | None = option(
        "kafka.dt.audit.kafka.ssl.keystore.key",
        Kind.PASSWORD,
        None,
        "The private key itself, in PEM, instead of a key store.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_keystore_certificate_chain: Secret | None = option(
        "kafka.dt.audit.kafka.ssl.keystore.certificate.chain",
        Kind.PASSWORD,
        None,
        "The certificates that belong to the private key, in PEM, the node's own first.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_endpoint_identification_algorithm: str = option(
        "kafka.dt.audit.kafka.ssl.endpoint.identification.algorithm",
        Kind.STRING,
        "https",
        "Whether a broker's certificate must hold the host name that the node connects to; an empty value turns the "
        "check off.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("https", "HTTPS", ""),
    )
    audit_kafka_ssl_enabled_protocols: tuple[str, ...] = option(
        "kafka.dt.audit.kafka.ssl.enabled.protocols",
        Kind.LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The TLS versions that the node offers.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_protocol: str = option(
        "kafka.dt.audit.kafka.ssl.protocol",
        Kind.STRING,
        "TLSv1.3",
        "The highest TLS version that the node offers, if it is among `kafka.dt.audit.kafka.ssl.enabled.protocols`.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_cipher_suites: tuple[str, ...] = option(
        "kafka.dt.audit.kafka.ssl.cipher.suites",
        Kind.LIST,
        (),
        "The cipher suites that the node offers; none means OpenSSL's defaults.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_client_id: str = option(
        "kafka.dt.audit.kafka.client.id",
        Kind.STRING,
        "kafka-dt-audit",
        "The client id of the node at these brokers.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_request_timeout_ms: int = option(
        "kafka.dt.audit.kafka.request.timeout.ms",
        Kind.INT,
        30000,
        "How long the brokers may take to answer for a batch of events before the node sends it again.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=1,
    )
    audit_kafka_acks: str = option(
        "kafka.dt.audit.kafka.acks",
        Kind.STRING,
        "all",
        "Which replicas must have a batch before it counts as written: all that are in sync, or only the leader.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("all", "-1", "1"),
    )
    audit_kafka_compression_type: str = option(
        "kafka.dt.audit.kafka.compression.type",
        Kind.STRING,
        "none",
        "The compression of batches.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("none", "gzip"),
    )
