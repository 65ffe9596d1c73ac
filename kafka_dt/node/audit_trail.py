"""The audit trail of a worker: the log with its sinks, and the recorder that writes to it, as the settings say.

Limits: nodes log in to the topic's brokers by PLAIN and SCRAM. aiokafka cannot say that a user name is a token's, and a
token ends.

Source: docs/audit.md.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from kafka_dt.audit.chain import Chain
from kafka_dt.audit.chained_files import ChainedFiles
from kafka_dt.audit.files import EventFiles, FileRules
from kafka_dt.audit.recorder import QueuedLog, Recorder
from kafka_dt.audit.threaded import Sink
from kafka_dt.audit.topic import TOPIC_MODULE, AiokafkaMissing, EventTopic
from kafka_dt.client import ClientConfig, ClientConfigError
from kafka_dt.client.producing import producer_arguments
from kafka_dt.config import AuditFileSettings, AuditSettings, AuditTopicSettings, ConfigError
from kafka_dt.config.audit import DIR, SIGNING_KEY
from kafka_dt.config.options.audit import AUDIT_KAFKA_PREFIX
from kafka_dt.extras import installed_by
from kafka_dt.files import why_not_made, why_unusable
from kafka_dt.metrics.counts import FILES, TOPIC
from kafka_dt.tls import ReloadingContext, TlsError, client_context

INSTANCE_BYTES: Final = 8
_DIRECTORY_MODE: Final = 0o750
_RIGHTS: Final = os.R_OK | os.W_OK | os.X_OK


class AuditTrail:
    """The audit of one worker.

    Args:
        settings: where events go.
        number: which worker of its node it is.
        now_ms: the wall clock, milliseconds since the epoch.
        random_hex: gives hex digits of that many random bytes.

    Raises:
        ConfigError: a setting cannot be used.
    """

    def __init__(
        self, settings: AuditSettings, number: int, *, now_ms: Callable[[], int], random_hex: Callable[[int], str]
    ) -> None:
        sinks: dict[str, Sink | ChainedFiles] = {}
        if settings.files is not None:
            _require(why_not_made(settings.files.directory, _RIGHTS, mode=_DIRECTORY_MODE))
            rules = FileRules(
                directory=settings.files.directory,
                node=settings.node,
                worker=number,
                file_bytes=settings.files.file_bytes,
                roll_ms=settings.files.roll_ms,
                retention_ms=settings.files.retention_ms,
                now_ms=now_ms,
            )
            signing_key = _signing_key(settings.files)
            sinks[FILES] = ChainedFiles(rules, Chain(signing_key)) if settings.strict else EventFiles(rules)
        if settings.topic is not None:
            sinks[TOPIC] = event_topic(settings.topic)
        self._log = QueuedLog(tuple(sinks.values()), buffer_bytes=settings.buffer_bytes, strict=settings.strict)
        self.deliveries: Final = MappingProxyType(dict(zip(sinks, self._log.deliveries, strict=True)))
        """What brings events to each sink, by its name in metrics."""
        self.recorder: Final = Recorder(
            self._log,
            node=f"{settings.node}-{number}",
            instance=random_hex(INSTANCE_BYTES),
            now_ms=now_ms,
            durability=self._log.durability,
        )

    @staticmethod
    def check(settings: AuditSettings) -> None:
        """See that the settings can be used. Makes nothing, not even the folder.

        Raises:
            ConfigError: naming the key that cannot be.
        """
        if settings.files is not None:
            _require(why_unusable(settings.files.directory, _RIGHTS))
            _signing_key(settings.files)
        if settings.topic is not None:
            event_topic(settings.topic)

    @staticmethod
    def optional_modules(settings: AuditSettings) -> tuple[str, ...]:
        """Name the modules of extras that a trail with these settings imports."""
        return (TOPIC_MODULE,) if settings.topic is not None else ()

    @property
    def lost(self) -> int:
        """How many events at least one sink has lost."""
        return self._log.lost

    @property
    def holds_up(self) -> bool:
        """Whether the node can do nothing now, because no sink can write what has to be written first."""
        durability = self._log.durability
        return durability is not None and not durability.possible

    def start(self) -> None:
        """Begin to write."""
        self._log.start()

    async def close(self) -> None:
        """Write the recorded events, and end; after that no event may be recorded."""
        await self._log.close()


def event_topic(settings: AuditTopicSettings) -> EventTopic:
    """Make the sink of the topic, which does not connect yet; reads the files of trust and key stores.

    Raises:
        ConfigError: naming the key whose value cannot be used, or the extra that is missing.
    """
    try:
        client = ClientConfig.from_properties(settings.client)
        connection = producer_arguments(client)
        followed = ReloadingContext(settings.client, client_context) if client.security_protocol.uses_tls else None
    except (ClientConfigError, TlsError) as error:
        raise ConfigError(AUDIT_KAFKA_PREFIX + error.key, error.reason) from error
    arguments = {
        "acks": settings.acks if settings.acks == "all" else int(settings.acks),
        "compression_type": None if settings.compression_type == "none" else settings.compression_type,
    }
    try:
        context = None if followed is None else partial(_context_of_now, followed)
        return EventTopic(settings.topic, client.request_timeout_ms / 1000, connection | arguments, context)
    except AiokafkaMissing:
        raise ConfigError(
            f"{AUDIT_KAFKA_PREFIX}bootstrap.servers",
            f"events in a topic need the extra audit-kafka ({installed_by('audit-kafka')})",
        ) from None


def _signing_key(files: AuditFileSettings) -> Ed25519PrivateKey | None:
    if files.signing_key is None:
        return None
    try:
        key = load_pem_private_key(files.signing_key.value.encode(), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(SIGNING_KEY, "it is no private key (Ed25519, PKCS#8 in PEM, without a password)")
    return key


def _require(reason: str | None) -> None:
    if reason is not None:
        raise ConfigError(DIR, reason)


def _context_of_now(followed: ReloadingContext) -> ssl.SSLContext:
    """Return the context for a new producer; with files that cannot be used it is the old one."""
    followed.follow("the audit topic", AUDIT_KAFKA_PREFIX.__add__)
    return followed.current
