"""A file: each alert is a line of JSON at its end, on the disk before the alert counts as delivered."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kafka_dt.pipeline.alerts.alert import Alert
from kafka_dt.pipeline.alerts.destination import NotDelivered, key_of


class AlertFile:
    """Appends alerts; a new file is for its owner alone."""

    digest = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = f"file {path}"
        self.key = key_of("file", str(path.absolute()))

    def send(self, alerts: Sequence[Alert]) -> None:
        """Write alerts."""
        lines = "".join(f"{alert.as_json()}\n" for alert in alerts).encode("ascii")
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write(lines)
                file.flush()
                os.fsync(descriptor)
        except OSError as error:
            raise NotDelivered(error.strerror or type(error).__name__, again=False) from None
