"""The part of the option table that is about audit events: the files and the topic that they are written to.

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
        "A folder for audit events, as files of JSON lines; it is made if it is not there. Setting it, or "
        "`kafka.dt.audit.kafka.bootstrap.servers`, switches audit events on.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_log_file_bytes: int = option(
        "kafka.dt.audit.log.file.bytes",
        Kind.INT,
        64 * 1024 * 1024,
        "A file that would grow beyond this is complete, and the next one is begun.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        unit="bytes",
        minimum=1024,
    )
    audit_log_roll_ms: int = option(
        "kafka.dt.audit.log.roll.ms",
        Kind.LONG,
        300000,
        "A file that is older than this is complete. Who reads the files sees events that much later.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=100,
    )
    audit_log_retention_ms: int = option(
        "kafka.dt.audit.log.retention.ms",
        Kind.LONG,
        -1,
        "Complete files of this node that are older than this are removed; -1 keeps them.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=-1,
    )
    audit_buffer_bytes: int = option(
        "kafka.dt.audit.buffer.bytes",
        Kind.INT,
        32 * 1024 * 1024,
        "How much each worker keeps for the folder, and for the topic, while they cannot be written to. Events "
        "that come after that are lost; the log says how many of each kind. Refused requests and failed logins fill "
        "at most a quarter of it, successful logins at most half.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        unit="bytes",
        minimum=1024,
    )
    audit_node_name: str = option(
        "kafka.dt.audit.node.name",
        Kind.STRING,
        "",
        "What events and files call this node: letters, digits, `.`, `_` and `-`. Without it the name of the "
        "host. Set it where that changes at each start, as in containers, so that files that a crash has left "
        "open are completed.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_bootstrap_servers: tuple[str, ...] = option(
        "kafka.dt.audit.kafka.bootstrap.servers",
        Kind.LIST,
        (),
        "Brokers of a cluster that audit events are written to as well, `host:port` each. Needs the extra "
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
        "How these brokers are spoken to. The settings from here on are those of a Kafka producer.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    audit_kafka_sasl_mechanism: str = option(
        "kafka.dt.audit.kafka.sasl.mechanism",
        Kind.STRING,
        "",
        "The SASL mechanism of the login there.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    )
    audit_kafka_sasl_jaas_config: Secret | None = option(
        "kafka.dt.audit.kafka.sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "The user there; it takes WRITE on the topic.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_truststore_type: str = option(
        "kafka.dt.audit.kafka.ssl.truststore.type",
        Kind.STRING,
        "JKS",
        "The format of the trust store. It is seen from the content, so this need not be set.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("JKS", "PKCS12", "PEM"),
    )
    audit_kafka_ssl_truststore_location: str = option(
        "kafka.dt.audit.kafka.ssl.truststore.location",
        Kind.STRING,
        "",
        "A file with the certificates that those of the brokers must come from (PEM or PKCS12). Without a trust "
        "store the machine's certificates are trusted.",
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
        "The trusted certificates themselves, in PEM.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_keystore_type: str = option(
        "kafka.dt.audit.kafka.ssl.keystore.type",
        Kind.STRING,
        "JKS",
        "The format of the key store. It is seen from the content, so this need not be set.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("JKS", "PKCS12", "PEM"),
    )
    audit_kafka_ssl_keystore_location: str = option(
        "kafka.dt.audit.kafka.ssl.keystore.location",
        Kind.STRING,
        "",
        "A file with our private key and certificate chain (PEM or PKCS12), where brokers want one.",
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
        "The private key itself, in PEM.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_keystore_certificate_chain: Secret | None = option(
        "kafka.dt.audit.kafka.ssl.keystore.certificate.chain",
        Kind.PASSWORD,
        None,
        "The certificates that go with it, in PEM.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_endpoint_identification_algorithm: str = option(
        "kafka.dt.audit.kafka.ssl.endpoint.identification.algorithm",
        Kind.STRING,
        "https",
        "Whether a broker's certificate must bear the name that we connect to; an empty value says no.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("https", "HTTPS", ""),
    )
    audit_kafka_ssl_enabled_protocols: tuple[str, ...] = option(
        "kafka.dt.audit.kafka.ssl.enabled.protocols",
        Kind.LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The protocol versions that are spoken.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_protocol: str = option(
        "kafka.dt.audit.kafka.ssl.protocol",
        Kind.STRING,
        "TLSv1.3",
        "The highest protocol version that is spoken, if it is among them.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_ssl_cipher_suites: tuple[str, ...] = option(
        "kafka.dt.audit.kafka.ssl.cipher.suites",
        Kind.LIST,
        (),
        "The cipher suites that are spoken; without any, OpenSSL's defaults.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_client_id: str = option(
        "kafka.dt.audit.kafka.client.id",
        Kind.STRING,
        "kafka-dt-audit",
        "The client id there.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
    )
    audit_kafka_request_timeout_ms: int = option(
        "kafka.dt.audit.kafka.request.timeout.ms",
        Kind.INT,
        30000,
        "How long the brokers may take for a batch of events, before it is tried again.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        unit="milliseconds",
        minimum=1,
    )
    audit_kafka_acks: str = option(
        "kafka.dt.audit.kafka.acks",
        Kind.STRING,
        "all",
        "Who has to have a batch before it counts as written: all replicas that are in sync, or the leader alone.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("all", "-1", "1"),
    )
    audit_kafka_compression_type: str = option(
        "kafka.dt.audit.kafka.compression.type",
        Kind.STRING,
        "none",
        "How batches are compressed.",
        section=Section.AUDIT,
        source=Source.KAFKA_DT,
        choices=("none", "gzip"),
    )
