"""The time of ZooKeeper: its leader puts the time on every write, so a write tells it.

Source: org.apache.zookeeper.server.PrepRequestProcessor (the time of a transaction),
org.apache.zookeeper.data.StatPersisted (`mtime`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_dt.zookeeper.connection.operations import SetData, Stat
from kafka_dt.zookeeper.errors import MultiFailed, NoNode
from kafka_dt.zookeeper.znodes.own import ClockZnode

if TYPE_CHECKING:
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient


async def zookeeper_time_ms(client: ZooKeeperClient) -> int:
    """Return the leader's time of a write that is made now, in milliseconds since 1970 in UTC.

    Raises:
        ZooKeeperError: it cannot be written.
    """
    write = SetData(ClockZnode.PATH, b"")
    try:
        (stat,) = await client.multi([write])
    except MultiFailed as error:
        if not isinstance(error.cause, NoNode):
            raise
        await client.ensure_path(ClockZnode.PATH)
        (stat,) = await client.multi([write])
    assert isinstance(stat, Stat)  # noqa: S101 - the answer to SetData
    return stat.modified_ms
