"""Logging: one line an event, to standard error; text for people or JSON for programs.

    set_up_logging("worker 0", level="INFO", form=LogFormat.TEXT, lines_per_minute=100)
    _LOG.info("Denied: %r from %s", name, host, extra=event("authorize", failed=True, host=host, user=name))

Clients choose the names of users, clients and tokens. Whatever they hold, an event stays one line: control characters
are escaped, and the lines of a traceback are indented.

A guarded process, which serves clients, writes no more than an operator can read: it cuts each value to
`LONGEST_VALUE` characters, and holds back floods of alike lines (see `Floods`). Audit events have no such limits.

Read `text.py` first. `ecs.py` has the lines for programs, `cutting.py` the limits of one line and `floods.py` those of
many; `about.py` says what a line is about.
"""

from __future__ import annotations

import logging
import sys
from enum import StrEnum
from typing import Final

from kafka_dt.log.about import event, of_peer
from kafka_dt.log.cutting import ComposedText
from kafka_dt.log.ecs import EcsFormatter
from kafka_dt.log.floods import Floods, GuardedHandler
from kafka_dt.log.text import OneLineFormatter

__all__ = ["ComposedText", "LogFormat", "event", "of_peer", "set_level", "set_up_logging"]

_OURS: Final = "kafka_dt"


class LogFormat(StrEnum):
    """What lines look like."""

    TEXT = "text"
    JSON = "json"


def set_up_logging(
    process: str,
    *,
    level: str = "INFO",
    form: LogFormat = LogFormat.TEXT,
    lines_per_minute: int | None = None,
) -> None:
    """Log from a level on.

    Args:
        process: what this process is in the node, for every line.
        level: DEBUG, INFO, WARN or ERROR.
        form: what lines look like.
        lines_per_minute: how often one statement logs, of a process that serves clients: its values are cut, and
            floods are held back; None for other processes.
    """
    guarded = lines_per_minute is not None
    handler: logging.Handler
    if lines_per_minute is not None:
        handler = GuardedHandler(sys.stderr, Floods(lines_per_minute))
    else:
        handler = logging.StreamHandler(sys.stderr)
    made = EcsFormatter if form is LogFormat.JSON else OneLineFormatter
    handler.setFormatter(made(process, guarded=guarded))
    root = logging.getLogger()
    if not root.handlers:  # else a program around this one has set up logging
        root.addHandler(handler)
        set_level(level)


def set_level(level: str) -> None:
    """Log from a level on: DEBUG, INFO, WARN or ERROR.

    DEBUG holds for our own lines only: what libraries say then may show secrets.
    """
    number = logging.getLevelNamesMapping()[level]
    logging.getLogger().setLevel(max(number, logging.INFO))
    logging.getLogger(_OURS).setLevel(number)
