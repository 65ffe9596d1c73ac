"""Wait for a condition instead of for a time.

seconds = eventually(lambda: token_id not in described(), within_s=1.0)

A promise such as "within a second" is one of a machine that keeps up. `on_this_machine` gives it the time that the same
work takes while other programs want the same cores, and while the whole machine stands still for a moment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

from tests.support.protocol.raw import ConnectionClosed

POLL_S = 0.02
SHARE: Final = 0.05
"""How much longer than necessary a wait may be, as a share of it: to ask is work for both sides, and a test that waits
for the start of a JVM would ask a thousand times."""
LONGEST_PAUSE_S: Final = 0.25
STANDSTILL_S = 3.0
"""For how long a machine may stand still in all while a test waits, as virtual machines and containers do."""


def on_this_machine(seconds: float) -> float:
    """Return how long work may take here that takes `seconds` on an idle machine.

    It takes longer by the load of a core, and by the time for which the machine stands still.
    """
    return seconds * max(1.0, 1.5 * os.getloadavg()[0] / (os.cpu_count() or 1)) + STANDSTILL_S


def again_if_lost(
    talk: Callable[[], object],
    attempts: int = 3,
    lost: tuple[type[Exception], ...] = (AssertionError, ConnectionClosed),
) -> None:
    """Have a conversation that a machine that stands still can miss the end of a session in; again if it did.

    Clients log in again a fraction of a second before their session ends. Raises what the last attempt raises.
    """
    for _ in range(attempts - 1):
        try:
            talk()
        except lost:
            continue
        return
    talk()


def eventually(condition: Callable[[], bool], within_s: float) -> float:
    """Ask again and again until `condition` holds; the seconds that took.

    Raises AssertionError when it does not hold in time. A condition that began in time may end late: what counts is
    when it was asked. A busy machine gets more time (`on_this_machine`). It asks less often the longer it waits.
    """
    start = time.monotonic()
    most_s = on_this_machine(within_s)
    while True:
        asked_after = time.monotonic() - start
        if condition():
            return asked_after
        assert asked_after < most_s, f"not so within {most_s:.3g} s ({within_s:g} s on an idle machine)"
        time.sleep(min(max(POLL_S, SHARE * asked_after), LONGEST_PAUSE_S))
