"""Removes the witnesses of workers that did not write theirs for long: they were killed, and no other took their place.

Source: `history.py`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from kafka_dt.zookeeper.errors import NoNode, VersionMismatch
from kafka_dt.zookeeper.znodes.own import WitnessZnode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

BATCH: Final = 100
"""How many znodes are asked for at once."""


async def remove_old_witnesses(client: ZooKeeperClient, oldest_ms: int) -> None:
    """Remove the witnesses that were last written before `oldest_ms`, by ZooKeeper's clock.

    Raises:
        ZooKeeperError: it does not work now.
    """
    paths = [WitnessZnode.path(name) for name in await client.children(WitnessZnode.PARENT)]
    for begin in range(0, len(paths), BATCH):
        await _remove_old_of(client, paths[begin : begin + BATCH], oldest_ms)


async def _remove_old_of(client: ZooKeeperClient, paths: Sequence[str], oldest_ms: int) -> None:
    stats = await asyncio.gather(*(client.exists(path) for path in paths))
    outcomes = await asyncio.gather(
        *(
            client.delete(path, stat.version)
            for path, stat in zip(paths, stats, strict=True)
            if stat is not None and stat.modified_ms < oldest_ms
        ),
        return_exceptions=True,
    )
    for outcome in outcomes:
        # Another node removes them, too, or the worker has written again.
        if isinstance(outcome, BaseException) and not isinstance(outcome, NoNode | VersionMismatch):
            raise outcome
