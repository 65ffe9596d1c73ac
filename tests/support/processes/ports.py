"""TCP ports for servers that have to know them before they start, and keep them over a restart.

Each process of tests has a slice of the ports of its own, and gives them out one after the other, so that no two tests
are given the same one. The slices are below the range from which the system hands out ports.

Limit: between the choice and the start a process that is no test may take a port, if it asks for that very number.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import socket
import tempfile
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

_LOWEST, _HIGHEST = 15_000, 31_000
_SLICE = 500
_ATTEMPTS = 2 * _SLICE


def free_ports(count: int, host: str = "127.0.0.1") -> int:
    """Find `count` neighbouring ports of `host` that are free; gives the first."""
    found: list[int] = []
    for port in (next(_own_ports()) for _ in range(_ATTEMPTS)):
        neighbour = bool(found) and port == found[-1] + 1
        found = [*(found if neighbour else ()), port] if _is_free(host, port) else []
        if len(found) == count:
            return found[0]
    raise AssertionError(f"no {count} neighbouring ports of {host} are free")


@functools.cache
def _own_ports() -> Iterator[int]:
    """Take a slice that no other process has, until this one ends; its ports again and again."""
    for first in range(_LOWEST, _HIGHEST, _SLICE):
        with contextlib.suppress(OSError):  # another process has it, or another user
            lock = os.open(Path(tempfile.gettempdir()) / f"kafka-dt-tests-{first}.lock", os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                raise
            return cycle(range(first, first + _SLICE))
    raise AssertionError(f"other processes have all ports from {_LOWEST} to {_HIGHEST}")


def _is_free(host: str, port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        # As servers do: connections of the last user of the port may still be in TIME_WAIT.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
