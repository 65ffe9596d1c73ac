"""Lines of text, for people: time, level, process and message."""

from __future__ import annotations

import logging
from typing import Any, Final

from kafka_dt.log.cutting import LONGEST_MESSAGE, cut, cut_traceback, printable, with_cut_values
from kafka_dt.log.floods import WINDOW_S, held_back

_INDENT: Final = "    "


class OneLineFormatter(logging.Formatter):
    """Writes a message as one line, whatever is in it.

    Args:
        process: what this process is in the node.
        guarded: whether to cut what may be foreign.
    """

    def __init__(self, process: str, *, guarded: bool) -> None:
        super().__init__(f"%(asctime)s %(levelname)s [{process}] %(message)s")
        self._guarded = guarded

    def format(self, record: logging.LogRecord) -> str:
        """Format a record, which stays as it is."""
        return super().format(with_cut_values(record) if self._guarded else record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Format the message, without the traceback that may follow."""
        record.message = one_line(record.message, record, guarded=self._guarded)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """Format a traceback, a line of it in a line."""
        # A line break is what `split` says it is: others, such as U+2028, are escaped.
        lines = super().formatException(ei).split("\n")
        return "\n".join(_INDENT + printable(line) for line in (cut_traceback(lines) if self._guarded else lines))


def one_line(message: str, record: logging.LogRecord, *, guarded: bool) -> str:
    """Make one line of a record's message, with the number of the lines that it stands for."""
    line = printable(cut(message, LONGEST_MESSAGE) if guarded else message)
    return line if (others := held_back(record)) == 0 else f"{line} ... and {others:,} more in {WINDOW_S:.0f} s"
