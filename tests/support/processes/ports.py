"""TCP ports for servers that have to know them before they start, and keep them over a restart.

Limit: between the choice and the start another process may take one. They are chosen from below the range from which
the system hands out ports, so that only a process that asks for that very number can.
"""

from __future__ import annotations

import contextlib
import random
import socket

_LOWEST, _HIGHEST = 15_000, 31_000
_ATTEMPTS = 200


def free_ports(count: int, host: str = "127.0.0.1") -> int:
    """Find `count` neighbouring ports of `host` that are free; gives the first."""
    for _ in range(_ATTEMPTS):
        first = random.randrange(_LOWEST, _HIGHEST)  # noqa: S311 - no secret
        if all(_is_free(host, port) for port in range(first, first + count)):
            return first
    raise AssertionError(f"no {count} neighbouring ports of {host} are free")


def _is_free(host: str, port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        # As servers do: connections of the last user of the port may still be in TIME_WAIT.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
