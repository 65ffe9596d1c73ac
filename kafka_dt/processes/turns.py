"""A turn that one holder of a whole node has at a time: a lock on a file that its workers share.

Nothing waits for it: `take` says at once whether it was to be had. The lock is that of a process, so it ends with a
worker that is killed.

Source: fcntl(2), "Traditional (process-associated) record locks".
"""

from __future__ import annotations

import fcntl


class NodeTurn:
    """The turn, as one worker sees it; the worker takes it once before it gives it back.

    Args:
        descriptor: of a file that all workers have inherited and that stays open.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def take(self) -> bool:
        """Take the turn; False while another worker has it."""
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def give_back(self) -> None:
        """Let another worker take it."""
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1)
