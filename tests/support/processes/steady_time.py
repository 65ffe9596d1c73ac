"""A loop whose time passes only while it waits, so that a test of timers holds on a machine that stands still.

    with steady_time(asyncio.get_running_loop()):
        await asyncio.sleep(3600)      # takes some milliseconds
        assert loop.time() == before + 3600

Whatever the loop does takes no time, however long the machine takes for it. If there is nothing to do, the next timer
goes off at its time exactly.

Limit: for one process and one thread. What another thread or process is still to do, the loop does not wait for.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

ARRIVING_S = 0.05
"""How long the loop waits in fact, at most, for what is on its way between two sockets of this process."""


@contextmanager
def steady_time(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let the time of a loop of asyncio's own pass so during a block."""
    selector: selectors.BaseSelector = loop._selector  # type: ignore[attr-defined]
    select, now_s = selector.select, loop.time()

    def waited(timeout_s: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        nonlocal now_s
        if timeout_s is None or timeout_s <= 0:
            return select(timeout_s)
        found = select(min(timeout_s, ARRIVING_S))
        if not found:
            now_s += timeout_s
        return found

    with patch.object(selector, "select", waited), patch.object(loop, "time", lambda: now_s):
        yield
