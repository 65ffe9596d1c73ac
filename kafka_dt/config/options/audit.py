"""The options of audit events: the files and the topic that a node writes them to.

What begins with `kafka.dt.audit.kafka.` and is a setting of Kafka's clients has its name, meaning and syntax.
`kafka_dt.config.audit` puts the settings together and refuses those that set nothing.

Source: org.apache.kafka.storage.internals.log.LogConfig for the names about files;
org.apache.kafka.clients.CommonClientConfigs, org.apache.kafka.clients.producer.ProducerConfig.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_dt.config.options.client import LOGIN_MECHANISMS, client_tls
from kafka_dt.config.options.option import Kind, Secret, option
from kafka_dt.security_protocol import SecurityProtocol

AUDIT_LOG_PREFIX: Final = "kafka.dt.audit.log."
AUDIT_KAFKA_PREFIX: Final = "kafka.dt.audit.kafka."
STRICT: Final = "strict"
DEFAULT_TOPIC: Final = "kafka-dt-audit"


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """The settings of audit events; without a folder and without brokers nothing is written."""

    audit_mode: str = option(
        "kafka.dt.audit.mode",
        "buffered",
        "`buffered`: no client waits for its event; a crash can lose those of the last moments. `strict`: the node "
        "tells a client of a login or a change only when the event is durable in the folder or the topic, and refuses "
        "both while it can write to neither; files are chained and have digests.",
        choices=("buffered", STRICT),
    )
    audit_log_dir: str = option(
        "kafka.dt.audit.log.dir",
        "",
        "The folder for audit events, as files of JSON lines; the node creates it if it is missing. Setting it, or "
        "`kafka.dt.audit.kafka.bootstrap.servers`, switches audit events on.",
    )
    audit_log_file_bytes: int = option(
        "kafka.dt.audit.log.file.bytes",
        64 * 1024 * 1024,
        "The largest size of a file: the node completes a file that would grow beyond it, and begins the next one.",
        minimum=1024,
    )
    audit_log_roll_ms: int = option(
        "kafka.dt.audit.log.roll.ms",
        300000,
        "The age at which the node completes a file. A program that reads complete files sees events with that delay.",
        minimum=100,
        kind=Kind.LONG,
    )
    audit_log_retention_ms: int = option(
        "kafka.dt.audit.log.retention.ms",
        -1,
        "The age at which the node deletes its complete files; -1 keeps them.",
        minimum=-1,
        kind=Kind.LONG,
    )
    audit_log_signing_key: Secret | None = option(
        "kafka.dt.audit.log.signing.key",
        None,
        "The private key (Ed25519, PKCS#8 in PEM) that signs the digests of complete files in strict mode; "
        "`kafka-dt audit verify` takes the public one.",
    )
    audit_buffer_bytes: int = option(
        "kafka.dt.audit.buffer.bytes",
        32 * 1024 * 1024,
        "How many bytes of events each worker keeps for the folder, and for the topic, while it cannot write to them. "
        "Further events are lost; the log says how many of each kind. Refused requests and failed logins fill at most "
        "a quarter of it, successful logins at most half.",
        minimum=1024,
    )
    audit_node_name: str = option(
        "kafka.dt.audit.node.name",
        "",
        "The name of this node in events and in file names: letters, digits, `.`, `_` and `-`. Without it the node "
        "uses the name of its host. Set it where the host's name changes at each start, as in containers: the node "
        "then completes the files that a crash left open.",
    )
    audit_kafka_bootstrap_servers: tuple[str, ...] = option(
        "kafka.dt.audit.kafka.bootstrap.servers",
        (),
        "Brokers of a cluster to which the node also writes audit events, `host:port` each. Needs the extra "
        "`audit-kafka`.",
    )
    audit_kafka_topic: str = option(
        "kafka.dt.audit.kafka.topic",
        DEFAULT_TOPIC,
        "The topic of the audit events.",
    )
    audit_kafka_security_protocol: str = option(
        "kafka.dt.audit.kafka.security.protocol",
        "PLAINTEXT",
        "The security protocol of the connections to these brokers. The settings from here on are those of a Kafka "
        "producer.",
        choices=tuple(SecurityProtocol),
    )
    audit_kafka_sasl_mechanism: str = option(
        "kafka.dt.audit.kafka.sasl.mechanism",
        "",
        "The SASL mechanism of the login at these brokers.",
        choices=("", *LOGIN_MECHANISMS),
    )
    audit_kafka_sasl_jaas_config: Secret | None = option(
        "kafka.dt.audit.kafka.sasl.jaas.config",
        None,
        "The user at these brokers; it needs WRITE on the topic.",
    )
    audit_kafka_ssl_truststore_type: str = client_tls(f"{AUDIT_KAFKA_PREFIX}ssl.truststore.type")
    audit_kafka_ssl_truststore_location: str = client_tls(f"{AUDIT_KAFKA_PREFIX}ssl.truststore.location")
    audit_kafka_ssl_truststore_password: Secret | None = client_tls(f"{AUDIT_KAFKA_PREFIX}ssl.truststore.password")
    audit_kafka_ssl_truststore_certificates: Secret | None = client_tls(
        f"{AUDIT_KAFKA_PREFIX}ssl.truststore.certificates"
    )
    audit_kafka_ssl_keystore_type: str = client_tls(f"{AUDIT_KAFKA_PREFIX}ssl.keystore.type")
    audit_kafka_ssl_keystore_location: str = client_tls(f"{AUDIT_KAFKA_PREFIX}ssl.keystore.location")
    audit_kafka_ssl_keystore_password: Secret | None = client_tls(f"{AUDIT_KAFKA_PREFIX}ssl.keystore.password")
    audit_kafka_ssl_key_password: Secret | None = client_tls(f"{AUDIT_KAFKA_PREFIX}ssl.key.password")
    audit_kafka_ssl_keystore_key: Secret | None = client_tls(f"{AUDIT_KAFKA_PREFIX}ssl.keystore.key")
    audit_kafka_ssl_keystore_certificate_chain: Secret | None = client_tls(
        f"{AUDIT_KAFKA_PREFIX}ssl.keystore.certificate.chain"
    )
    audit_kafka_ssl_endpoint_identification_algorithm: str = client_tls(
        f"{AUDIT_KAFKA_PREFIX}ssl.endpoint.identification.algorithm"
    )
    audit_kafka_ssl_enabled_protocols: tuple[str, ...] = client_tls(f"{AUDIT_KAFKA_PREFIX}ssl.enabled.protocols")
    audit_kafka_ssl_protocol: str = client_tls(f"{AUDIT_KAFKA_PREFIX}ssl.protocol")
    audit_kafka_ssl_cipher_suites: tuple[str, ...] = client_tls(f"{AUDIT_KAFKA_PREFIX}ssl.cipher.suites")
    audit_kafka_client_id: str = option(
        "kafka.dt.audit.kafka.client.id",
        "kafka-dt-audit",
        "The client id of the node at these brokers.",
    )
    audit_kafka_request_timeout_ms: int = option(
        "kafka.dt.audit.kafka.request.timeout.ms",
        30000,
        "How long the brokers may take to answer for a batch of events before the node sends it again.",
        minimum=1,
    )
    audit_kafka_acks: str = option(
        "kafka.dt.audit.kafka.acks",
        "all",
        "Which replicas must have a batch before it counts as written: all that are in sync, or only the leader.",
        choices=("all", "-1", "1"),
    )
    audit_kafka_compression_type: str = option(
        "kafka.dt.audit.kafka.compression.type",
        "none",
        "The compression of batches.",
        choices=("none", "gzip"),
    )
