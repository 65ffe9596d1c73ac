"""A file: each message is a line at its end, on the disk before its alert counts as delivered.

If the disk is full, the file is cut back to whole lines. Several processes may write to it: each waits for its turn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kafka_dt.files import lock
from kafka_dt.pipeline.alerts.alert import Alert
from kafka_dt.pipeline.alerts.destination import NotDelivered, key_of
from kafka_dt.pipeline.alerts.forms import Form


class AlertFile:
    """Appends alerts; a new file is for its owner alone."""

    digest = False

    def __init__(self, path: Path, form: Form) -> None:
        self._path = path
        self._form = form
        self.name = f"file {path}"
        self.key = key_of("file", str(path.absolute()))

    def send(self, alerts: Sequence[Alert]) -> None:
        """Write alerts."""
        lines = "".join(f"{message.text}\n" for alert in alerts for message in self._form(alert)).encode()
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                lock(descriptor)
                size = os.fstat(descriptor).st_size
                try:
                    while lines:
                        lines = lines[file.write(lines) :]
                    os.fsync(descriptor)
                except OSError:
                    os.ftruncate(descriptor, size)
                    raise
        except OSError as error:
            raise NotDelivered(error.strerror or type(error).__name__) from None
