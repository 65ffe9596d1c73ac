"""A full disk, as the workers of a node see it, or this process."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.nodes.node import Node


@contextmanager
def full_disk(node: Node) -> Iterator[None]:
    """Let no worker of a node write any byte more to a file; each fails as if the disk were full."""
    workers = node.workers()
    before = [resource.prlimit(worker, resource.RLIMIT_FSIZE) for worker in workers]
    for worker, (_, hard) in zip(workers, before, strict=True):
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        for worker, limits in zip(workers, before, strict=True):
            resource.prlimit(worker, resource.RLIMIT_FSIZE, limits)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let this process write no longer files, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
