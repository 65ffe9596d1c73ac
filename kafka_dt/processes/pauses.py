"""How long to wait before a process that has ended is started again: longer each time while it keeps dying.

pauses = Pauses()
await asyncio.sleep(pauses.after(lived_s))
"""

from __future__ import annotations

from typing import Final

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
"""Between a process's death and its successor; one that lived longer than this starts the count anew."""


class Pauses:
    """The pauses between the lives of one process and its successors."""

    def __init__(self) -> None:
        self._last_s = 0.0

    def after(self, lived_s: float) -> float:
        """Return how many seconds to wait after a process that has lived for so many."""
        doubled_s = self._last_s * 2 if lived_s < LONGEST_PAUSE_SECONDS else 0.0
        self._last_s = min(max(doubled_s, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        return self._last_s
