"""One sync for all reads that are asked for at about the same time.

    synced = await sync.sent()
    answer = client.get(path)      # behind the sync, without waiting for its answer
    await synced                   # it was not sent on a connection that broke in between
    znode = await answer

A sync counts for a read if the read was asked for before the sync was sent. So the sync goes out at the next turn of
the event loop, for whatever has been asked for until then; under a flood of reads a turn has many of them.

Source: org.apache.zookeeper.ZooKeeper (sync), kafka_dt.zookeeper.connection.client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class SharedSync:
    """Sends syncs of one path.

    Args:
        send: sends a sync and returns its answer.
        path: which path is synced; all of ZooKeeper's paths are in one order.
    """

    __slots__ = ("_path", "_send", "_turn")

    def __init__(self, send: Callable[[str], asyncio.Future[None]], path: str) -> None:
        self._send = send
        self._path = path
        self._turn: asyncio.Future[asyncio.Future[None]] | None = None

    async def sent(self) -> Awaitable[None]:
        """Return when a sync has been sent that was not when this was called; its answer is to be awaited, too."""
        if self._turn is None:
            loop = asyncio.get_running_loop()
            self._turn = loop.create_future()
            loop.call_soon(self._send_now, self._turn)
        # Shielded, both: who is cancelled does not take the others along.
        return asyncio.shield(await asyncio.shield(self._turn))

    def _send_now(self, turn: asyncio.Future[asyncio.Future[None]]) -> None:
        self._turn = None
        turn.set_result(self._send(self._path))
