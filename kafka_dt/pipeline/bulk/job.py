"""What driver and executors exchange for the tokens of one partition: the job, the names, the result.

A job names the place of the secret keys, not the keys. A result holds a summary, and the names of the tokens that are
still to be done. The driver lists the names once, because ZooKeeper answers for one parent with all its children: 26 MB
for a million tokens. Packed, a name of 22 characters takes about 18 bytes.

Source: kafka_dt.bulk.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from kafka_dt.bulk import Summary, TokenFilter, token_ids
from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess
from kafka_dt.zookeeper.errors import NoNode
from kafka_dt.zookeeper.znodes.kafka import TokenZnode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

CHANGES_A_SECOND: Final = 5_000
"""Of all partitions together unless another rate is given: a ZooKeeper that serves a cluster goes on doing so."""
_SEPARATOR: Final = "\n"
"""ZooKeeper takes no control characters in a path."""
_FAST: Final = 1


class JobKind(StrEnum):
    """The work on every token."""

    SEAL = "seal"
    """Seal it with the current key."""
    UNSEAL = "unseal"
    """Write it plain."""
    ROTATE = "rotate"
    """If it is sealed with an older key, seal it with the current one."""
    VERIFY = "verify"
    """Check it."""
    EXPIRE = "expire"
    """Delete it, if the filter selects it."""

    @property
    def announces(self) -> bool:
        """Whether the job announces its changes to nodes and brokers."""
        return self in {JobKind.UNSEAL, JobKind.EXPIRE}

    @property
    def seals(self) -> bool:
        """Whether the job writes tokens that only the current key opens."""
        return self in {JobKind.SEAL, JobKind.ROTATE}


@dataclass(frozen=True, slots=True)
class BulkJob:
    """The work on the tokens of a cluster; the driver sends it to the executors."""

    kind: JobKind
    access: ClusterAccess
    selected: TokenFilter = field(default_factory=TokenFilter)
    """Which tokens end."""
    dry_run: bool = False
    """Whether the job only counts what it would change."""
    at_once: int = 1
    """How many partitions are worked on at the same time."""
    changes_a_second: float | None = None
    """Of all partitions together; None = as many as ZooKeeper takes."""
    key_ids: tuple[str, ...] | None = None
    """The key ids that every executor must have; None = any."""


@dataclass(slots=True)
class PartitionResult:
    """The result of a job for the tokens of one partition."""

    summary: Summary = field(default_factory=Summary)
    by_owner: Counter[str] = field(default_factory=Counter)
    """How many tokens of each owner ended."""
    not_readable: int = 0
    """Tokens that were left because they cannot be read, so the filter cannot judge them."""
    changes: tuple[str, ...] = ()
    """Change znodes that the driver has to purge."""
    left: bytes = b""
    """The names of the tokens that were not done, packed; empty if all were."""
    error: str = ""
    """Why these tokens were not done; empty if all were."""


def pack(names: Sequence[str]) -> bytes:
    """Write names, at least one, in few bytes."""
    return zlib.compress(_SEPARATOR.join(names).encode(), _FAST)


def unpack(packed: bytes) -> list[str]:
    """Return the names again."""
    return zlib.decompress(packed).decode().split(_SEPARATOR)


def packs(names: Sequence[str], size: int) -> Iterator[bytes]:
    """Pack names, at most `size` of them together."""
    for begin in range(0, len(names), size):
        yield pack(names[begin : begin + size])


async def listed_names(client: ZooKeeperClient) -> list[str]:
    """Return the names of all token znodes.

    Raises:
        ZooKeeperError: they cannot be read.
    """
    await catch_up(client)
    return await token_ids(client)


async def catch_up(client: ZooKeeperClient) -> None:
    """Have the server of this connection catch up, so that it knows the tokens that another process has listed.

    Raises:
        ZooKeeperError: it cannot be asked.
    """
    try:
        await client.sync(TokenZnode.PARENT)
    except NoNode:
        return  # there are no tokens
