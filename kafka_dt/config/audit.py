"""Put together the settings about audit events.

    audit = audit_settings(settings)     # None where nothing is written
    audit.files                          # the folder, None without one
    audit.topic                          # the topic, None without one

A setting of the folder or the topic is an error if that output is off.

Source: org.apache.kafka.storage.internals.log.LogConfig, org.apache.kafka.clients.CommonClientConfigs.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kafka_dt.config.options.audit import AUDIT_KAFKA_PREFIX, AUDIT_LOG_PREFIX, STRICT
from kafka_dt.config.options.option import ConfigError, Secret
from kafka_dt.config.settings import Settings

DIR: Final = f"{AUDIT_LOG_PREFIX}dir"
BOOTSTRAP: Final = f"{AUDIT_KAFKA_PREFIX}bootstrap.servers"
MODE: Final = "kafka.dt.audit.mode"
SIGNING_KEY: Final = f"{AUDIT_LOG_PREFIX}signing.key"
NODE_NAME: Final = "kafka.dt.audit.node.name"
_TOPIC: Final = f"{AUDIT_KAFKA_PREFIX}topic"
_OF_THE_PRODUCER: Final = ("topic", "acks", "compression.type")
"""The names behind the prefix for which `AuditTopicSettings` has fields."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFileSettings:
    """The folder."""

    directory: Path
    file_bytes: int
    roll_ms: int
    retention_ms: int
    """Negative keeps files."""
    signing_key: Secret | None
    """The private key that signs digests, in PEM; None for digests without a signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTopicSettings:
    """The topic."""

    client: Mapping[str, str] = field(repr=False)
    """Kafka's client properties by name (`bootstrap.servers`, `security.protocol` ...); secrets in clear."""
    topic: str
    acks: str
    """`all` or `1`."""
    compression_type: str
    """`none` or `gzip`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The outputs of events, at least one of the two."""

    node: str
    """The node's name in events and in names of files."""
    buffer_bytes: int
    """How much may wait for each output, in each worker."""
    strict: bool
    """Whether a success waits until its event is durable."""
    files: AuditFileSettings | None = None
    topic: AuditTopicSettings | None = None


def audit_settings(settings: Settings) -> AuditSettings | None:
    """Put together the outputs of events; None if there are none.

    :raises ConfigError: naming the key whose value cannot be used, or that sets nothing
    """
    if not settings.audit_log_dir:
        settings.refuse_leftovers(AUDIT_LOG_PREFIX, DIR)
    if not settings.audit_kafka_bootstrap_servers:
        settings.refuse_leftovers(AUDIT_KAFKA_PREFIX, BOOTSTRAP)
    if not settings.audit_log_dir and not settings.audit_kafka_bootstrap_servers:
        settings.refuse_leftovers("kafka.dt.audit.", f"{DIR} or {BOOTSTRAP}")
        return None
    return AuditSettings(
        node=_node(settings),
        buffer_bytes=settings.audit_buffer_bytes,
        strict=settings.audit_mode == STRICT,
        files=_files(settings) if settings.audit_log_dir else None,
        topic=_topic(settings) if settings.audit_kafka_bootstrap_servers else None,
    )


def _node(settings: Settings) -> str:
    if not settings.audit_node_name:
        return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:100] or "node"
    if not _NAME.fullmatch(settings.audit_node_name):
        reason = (
            f"{settings.audit_node_name!r} has other characters than letters, digits, '.', '_' and '-', or too many"
        )
        raise ConfigError(NODE_NAME, reason)
    return settings.audit_node_name


def _files(settings: Settings) -> AuditFileSettings:
    if settings.audit_log_signing_key is not None and settings.audit_mode != STRICT:
        raise ConfigError(SIGNING_KEY, f"it sets nothing without {MODE}={STRICT}")
    return AuditFileSettings(
        directory=Path(settings.audit_log_dir),
        file_bytes=settings.audit_log_file_bytes,
        roll_ms=settings.audit_log_roll_ms,
        retention_ms=settings.audit_log_retention_ms,
        signing_key=settings.audit_log_signing_key,
    )


def _topic(settings: Settings) -> AuditTopicSettings:
    name = settings.audit_kafka_topic
    if not _TOPIC_NAME.fullmatch(name) or name in {".", ".."}:
        raise ConfigError(_TOPIC, f"{name!r} is no name of a topic")
    return AuditTopicSettings(
        client=settings.client_properties(AUDIT_KAFKA_PREFIX, _OF_THE_PRODUCER),
        topic=name,
        acks="1" if settings.audit_kafka_acks == "1" else "all",
        compression_type=settings.audit_kafka_compression_type,
    )
