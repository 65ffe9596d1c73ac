"""Logging: one line an event, to standard error.

Names of users, clients and tokens come from strangers. Whatever they hold, an event stays one line: control characters
are escaped here, once for all. Tracebacks keep their lines.
"""

from __future__ import annotations

import logging
import sys


class OneLineFormatter(logging.Formatter):
    """Writes a message as one line, whatever is in it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Format the message, without the traceback that may follow."""
        record.message = "".join(
            character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
            for character in record.message
        )
        return super().formatMessage(record)


def set_up_logging(process: str, level: int = logging.INFO) -> None:
    """Log from a level on.

    Args:
        process: what this process is in the node, for every line.
        level: of logging.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLineFormatter(f"%(asctime)s %(levelname)s [{process}] %(message)s"))
    logging.basicConfig(handlers=[handler], level=level)
