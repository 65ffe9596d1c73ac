"""The wall clock of a process, for code that is given no other one, and what holds when it is set back."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def is_recent(then_ms: int, now_ms: int, within_ms: int) -> bool:
    """Say whether an instant was less than so many milliseconds ago; if it is to come, the clock was set back: no."""
    return 0 <= now_ms - then_ms < within_ms
