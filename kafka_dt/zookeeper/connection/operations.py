"""The requests to ZooKeeper and its answers, as values without kazoo.

Paths are absolute and relative to the chroot.

Source: org.apache.zookeeper.Op, org.apache.zookeeper.data.Stat.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

ANY_VERSION: Final = -1
OPERATION_BYTES: Final = 128
"""What an operation needs besides its path and data: headers and ACLs."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make a znode; its ACL follows from its path."""

    path: str
    data: bytes = field(repr=False)
    sequence: bool = False
    """Whether the server appends a number of ten digits to the path."""
    ephemeral: bool = False
    """Whether it goes when our session ends."""


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace the data of a znode."""

    path: str
    data: bytes = field(repr=False)
    version: int = ANY_VERSION
    """Only if its data has this version."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a znode without children."""

    path: str
    version: int = ANY_VERSION
    """Only if its data has this version."""


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing; the whole multi is refused if the znode does not exist or has another version."""

    path: str
    version: int = ANY_VERSION
    """The version that its data must have."""


Operation = Create | SetData | Delete | Check


def size_of(operation: Operation) -> int:
    """Return about how many bytes an operation takes on the wire."""
    data = operation.data if isinstance(operation, Create | SetData) else b""
    return len(data) + len(operation.path.encode()) + OPERATION_BYTES


@dataclass(frozen=True, slots=True)
class Stat:
    """The part of a znode's state that kafka-dt looks at."""

    created_zxid: int
    """The transaction that created it; another one tells of a znode that was removed and made again."""
    modified_zxid: int
    """The transaction that last set its data."""
    created_ms: int
    """When it was created, by the server's clock."""
    modified_ms: int
    """When its data was last set, by the server's clock."""
    version: int
    """How often its data was set since."""
    child_version: int
    """`cversion`: the children created and removed so far, as a signed 32-bit integer that wraps around."""
    child_count: int
    """How many children it has."""
    ephemeral_owner: int
    """The session with which it goes; 0 if it stays."""


@dataclass(frozen=True, slots=True)
class Znode:
    """The data of a znode and its state, from one moment."""

    data: bytes = field(repr=False)
    stat: Stat
