"""The audit trail of a worker: the log with its sinks, and the recorder that writes to it, as the settings say.

    AuditTrail.check(settings)          # before anything is opened
    trail = AuditTrail(settings, 0, now_ms=now_ms, random_hex=secrets.token_hex)
    trail.start()
    trail.recorder.record(...)
    await trail.close()

Source: docs/audit.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from kafka_dt.audit.delivery import Sink
from kafka_dt.audit.files import EventFiles, FileLimits
from kafka_dt.audit.log import QueuedLog
from kafka_dt.audit.recorder import Recorder
from kafka_dt.audit.topic import EventTopic, TopicProducer
from kafka_dt.config import AuditFileSettings, AuditSettings, ConfigError
from kafka_dt.config.audit import DIR

INSTANCE_BYTES: Final = 8
_DIRECTORY_MODE: Final = 0o750


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
        sinks: list[Sink] = []
        if settings.files is not None:
            _require_directory(settings.files)
            limits = FileLimits(
                file_bytes=settings.files.file_bytes,
                roll_ms=settings.files.roll_ms,
                retention_ms=settings.files.retention_ms,
            )
            sinks.append(EventFiles(settings.files.directory, settings.node, number, limits, now_ms=now_ms))
        if settings.topic is not None:
            sinks.append(EventTopic(TopicProducer.of(settings.topic)))
        self._log = QueuedLog(sinks, buffer_bytes=settings.buffer_bytes)
        node = f"{settings.node}-{number}"
        self.recorder: Final = Recorder(self._log, node=node, instance=random_hex(INSTANCE_BYTES), now_ms=now_ms)

    @staticmethod
    def check(settings: AuditSettings) -> None:
        """See that the settings can be used; makes the folder.

        Raises:
            ConfigError: naming the key that cannot be.
        """
        if settings.files is not None:
            _require_directory(settings.files)
        if settings.topic is not None:
            TopicProducer.of(settings.topic)

    def start(self) -> None:
        """Begin to write."""
        self._log.start()

    async def close(self) -> None:
        """Write what was recorded, and end; nothing may be recorded any more."""
        await self._log.close()


def _require_directory(files: AuditFileSettings) -> None:
    try:
        files.directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(DIR, f"{files.directory} cannot be made: {error.strerror}") from None
    if not os.access(files.directory, os.R_OK | os.W_OK | os.X_OK):
        raise ConfigError(DIR, f"{files.directory} cannot be written to")
