"""Memory that the workers of a node share: files on no disk, which they inherit from the supervisor.

    with node_memory(board=4096, turn=0) as memory:
        Supervisor(brief={"memory": memory}, inherited=list(memory.values()))

    mmap.mmap(brief["memory"]["board"], 0)         # in a worker

The files are on no disk because a full disk would kill the process that writes to one.

Limit: Linux (memfd_create), like the workers that share a port.
"""

from __future__ import annotations

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
