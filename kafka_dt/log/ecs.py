"""Lines of JSON, for programs: one object a line, with the field names of the Elastic Common Schema.

Names have dots and values are flat, as ECS's own logging libraries write them. What ECS has no field for stands below
`kafka_dt.`. Other programs need not escape what they show of `message`: it has no control characters.

Source: Elastic Common Schema 8.11; the specification of ecs-logging.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from kafka_dt.log.about import FIELDS
from kafka_dt.log.cutting import LONGEST_WORDS, cut, cut_traceback, with_cut_values
from kafka_dt.log.floods import held_back
from kafka_dt.log.text import one_line

ECS_VERSION: Final = "8.11.0"
SERVICE: Final = "kafka-dt"


class EcsFormatter(logging.Formatter):
    """Writes a record as one line of JSON.

    Args:
        process: what this process is in the node.
        guarded: whether to cut what may be foreign.
    """

    def __init__(self, process: str, *, guarded: bool) -> None:
        super().__init__()
        self._guarded = guarded
        self._same = {
            "ecs.version": ECS_VERSION,
            "service.name": SERVICE,
            "service.version": version("kafka-dt"),
            "host.name": socket.gethostname(),
            "process.pid": os.getpid(),
            "process.name": process,
        }

    def format(self, record: logging.LogRecord) -> str:
        """Format a record, which stays as it is."""
        message = (with_cut_values(record) if self._guarded else record).getMessage()
        fields: dict[str, Any] = {
            "@timestamp": _instant(record.created),
            "log.level": record.levelname.lower(),
            "message": one_line(message, record, guarded=self._guarded),
            **self._same,
            "log.logger": record.name,
        }
        for name, value in getattr(record, FIELDS, {}).items():
            fields[name] = cut(value, LONGEST_WORDS) if self._guarded else value
        if others := held_back(record):
            fields["kafka_dt.held_back"] = others
        if record.exc_info and record.exc_info[1] is not None:
            fields |= self._error(record.exc_info)
        return json.dumps(fields)

    def _error(self, info: Any) -> dict[str, str]:
        error = info[1]
        lines = self.formatException(info).split("\n")
        return {
            "error.type": type(error).__qualname__,
            "error.message": cut(str(error), LONGEST_WORDS) if self._guarded else str(error),
            "error.stack_trace": "\n".join(cut_traceback(lines) if self._guarded else lines),
        }


def _instant(seconds: float) -> str:
    """Write an instant in UTC with milliseconds, as ISO 8601 has it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
