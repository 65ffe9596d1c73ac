"""One node for each address and port: a lock that ends with its process and leaves nothing behind.

Workers of one user may share a port (SO_REUSEPORT), and a port that is bound but not listened on yet can be bound
again. So two nodes that start at the same time could both get it, and each would have half of the connections. The
supervisor therefore holds a name for each of its ports as well: an abstract Unix socket, which lives in the same
network namespace as the port. A port that workers open by themselves is held by each of them, in the name of the node.

Limits: only Linux has abstract sockets, elsewhere nothing is held. A process of another user can take the name, as it
can take the port.

Source: unix(7), "Abstract sockets"; proc(5), /proc/net/unix.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import Final

_NAMES: Final = Path("/proc/net/unix")
_ANY_IPV4: Final = "0.0.0.0"  # noqa: S104 - compared with, not bound to
_ANY: Final = "::"


def hold_port(bound: socket.socket, *, node: str = "") -> socket.socket | None:
    """Take the port of a bound socket for this process alone, or for it and others of its node.

    Args:
        bound: a TCP socket with its address.
        node: what the processes that share the port call themselves, in letters and digits; empty for one alone.

    Returns:
        What holds the port until it is closed; None where this system has nothing to hold it by.

    Raises:
        OSError: another process holds the port, on this address or on one that takes it in.
    """
    if sys.platform != "linux":
        return None
    host, port = bound.getsockname()[:2]
    family = f"kafka-dt/{port}/"
    own = f"{host}/{node}/{os.getpid()}" if node else host
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        lock.bind(f"\0{family}{own}")
    except OSError as error:
        lock.close()
        if error.errno == errno.EADDRINUSE:
            raise _taken() from None
        return None
    # The own name comes first: of two that take overlapping addresses at the same time, at least one sees the other.
    if any(_excludes(other, host, node) for other in _names(family) if other != own):
        lock.close()
        raise _taken()
    return lock


def _taken() -> OSError:
    return OSError(errno.EADDRINUSE, "another node of this machine has the port")


def _names(family: str) -> Iterator[str]:
    try:
        text = _NAMES.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        _, _, name = line.rpartition(" @")
        if name.startswith(family):
            yield name.removeprefix(family)


def _excludes(name: str, host: str, node: str) -> bool:
    """Say whether another process's name for a port keeps a node from having that port on its own host."""
    other_host, _, rest = name.partition("/")
    other_node = rest.partition("/")[0]
    return not (node and node == other_node) and _overlap(host, other_host)


def _overlap(one: str, other: str) -> bool:
    """Say whether two addresses overlap: an empty host in `listeners` takes in both families."""
    hosts = {one, other}
    return (
        one == other
        or _ANY in hosts
        or (_ANY_IPV4 in hosts and all(isinstance(ip_address(host), IPv4Address) for host in hosts))
    )
