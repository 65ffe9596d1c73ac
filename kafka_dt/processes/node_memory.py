"""What the workers of a node share: memory, and a turn that one of them has at a time.

    with node_memory(board=4096, turn=0) as memory:
        Supervisor(brief={"memory": list(memory)}, shared=list(memory.values()))

    mmap.mmap(memory["board"], 0)         # in a worker
    NodeTurn(memory["turn"]).take()

The memory is files on no disk, whose descriptors every worker gets: a full disk would kill the process that writes to
one.

Limit: Linux (memfd_create), like the workers that share a port.

Source: memfd_create(2); fcntl(2), "Traditional (process-associated) record locks".
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager


@contextmanager
def node_memory(**sizes: int) -> Iterator[Mapping[str, int]]:
    """Make files, and close them at the end.

    Args:
        sizes: by the name of each file, in bytes; all zeros at first.

    Returns:
        The descriptor of each file, by its name.
    """
    with ExitStack() as files:
        descriptors = {name: os.memfd_create(f"kafka-dt {name}") for name in sizes}
        for name, descriptor in descriptors.items():
            files.callback(os.close, descriptor)
            os.ftruncate(descriptor, sizes[name])
        yield descriptors


class NodeTurn:
    """A turn, as one worker sees it; the worker takes it once before it gives it back.

    Nothing waits for it. It is the lock of a process on a file, so it ends with a worker that is killed.

    Args:
        descriptor: of a file that all workers have open, and that stays open.
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
