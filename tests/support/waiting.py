"""Wait for a condition instead of for a time.

seconds = eventually(lambda: token_id not in described(), within_s=1.0)
"""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_S = 0.02


def eventually(condition: Callable[[], bool], within_s: float) -> float:
    """Ask again and again until `condition` holds; the seconds that took.

    Raises AssertionError when it does not hold in time. A condition that began in time may end late: what counts is
    when it was asked.
    """
    start = time.monotonic()
    while True:
        asked_after = time.monotonic() - start
        if condition():
            return asked_after
        assert asked_after < within_s, f"not so within {within_s:g} s"
        time.sleep(POLL_S)
