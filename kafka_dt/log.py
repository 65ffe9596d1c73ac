"""Logging: one line an event, to standard error."""

from __future__ import annotations

import logging
import sys


def set_up_logging(process: str) -> None:
    """Log from INFO on.

    Args:
        process: what this process is in the node, for every line.
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format=f"%(asctime)s %(levelname)s [{process}] %(message)s",
    )
