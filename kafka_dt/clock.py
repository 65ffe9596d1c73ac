"""The clocks of a process, for code that is given no others, and what holds when the wall clock is set back."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def steady_ms() -> int:
    """Return milliseconds since an unknown instant, by a clock that is never set."""
    return time.monotonic_ns() // 1_000_000


def is_recent(then_ms: int, now_ms: int, within_ms: int) -> bool:
    """Say whether an instant was less than so many milliseconds ago; if it is to come, the clock was set back: no."""
    return 0 <= now_ms - then_ms < within_ms
