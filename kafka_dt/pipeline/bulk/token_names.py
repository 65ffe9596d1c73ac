"""The names of token znodes on their way from the driver, which lists them once, to the executors that work on them.

A name of 22 characters takes about 18 bytes packed: a driver that plans work on a million tokens holds some 18 MB of
names, and about 100 MB for the seconds in which they are listed. Executors hold those of their partitions.

Names are listed once and not by each executor, because ZooKeeper answers for one parent with all its children: 26 MB
for a million, however few of them are needed.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from kafka_dt.bulk import token_ids
from kafka_dt.zookeeper.errors import NoNode
from kafka_dt.zookeeper.znodes.kafka import TokenZnode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

_SEPARATOR: Final = "\n"
"""ZooKeeper takes no control characters in a path."""
_FAST: Final = 1


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
