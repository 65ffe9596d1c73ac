"""Reads the znodes of a batch of tokens: in one request, or one by one where ZooKeeper is older than 3.6.

Source: org.apache.zookeeper.ZooDefs.OpCode (multiRead); Kafka 2.x came with ZooKeeper 3.4 and 3.5.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kafka_dt.zookeeper.errors import RequestRefused, ZooKeeperError
from kafka_dt.zookeeper.znodes import TokenZnode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.zookeeper.client import ZooKeeperClient
    from kafka_dt.zookeeper.operations import Znode

_LOG = logging.getLogger(__name__)


class Reads:
    """Reads token znodes, and remembers what the server can do.

    Args:
        client: the connection.
    """

    def __init__(self, client: ZooKeeperClient) -> None:
        self._client = client
        self._one_by_one = False

    async def read(self, token_ids: Sequence[str]) -> list[Znode | ZooKeeperError]:
        """Return for each token its znode, or why it cannot be read."""
        paths = [TokenZnode.path(token_id) for token_id in token_ids]
        if not self._one_by_one:
            try:
                return await self._client.get_many(paths)
            except RequestRefused as error:
                if not self._one_by_one:
                    _LOG.info("ZooKeeper does not read many znodes at once (%s)", error)
                self._one_by_one = True
            except ZooKeeperError as error:
                return [error] * len(paths)
        # An older server hangs up after the refusal: then these are lost, and tried again on the next connection.
        return await asyncio.gather(*(self._read(path) for path in paths))

    async def _read(self, path: str) -> Znode | ZooKeeperError:
        try:
            return await self._client.get(path)
        except ZooKeeperError as error:
            return error
