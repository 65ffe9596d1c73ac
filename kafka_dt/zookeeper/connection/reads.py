"""Ways to read from ZooKeeper that cost few requests, or one that cannot be read at all: its time.

`Reads` reads many znodes by few requests, or one by one where ZooKeeper is older than 3.6: the first read finds out.
`SharedSync` sends one sync for all reads that are asked for at about the same time:

    synced = await sync.sent()
    answer = client.get(path)      # behind the sync, without waiting for its answer
    await synced                   # it was not sent on a connection that broke in between
    znode = await answer

A sync counts for a read if the read was asked for before the sync was sent. So the sync goes out at the next turn of
the event loop, for whatever has been asked for until then. `zookeeper_time_ms` makes a write: the leader puts the time
on every one.

Source: org.apache.zookeeper.ZooDefs.OpCode (multiRead), ZooKeeper (sync); org.apache.zookeeper.data.StatPersisted
(`mtime`); Kafka 2.x came with ZooKeeper 3.4 and 3.5.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from kafka_dt.zookeeper.connection.operations import SetData, Stat
from kafka_dt.zookeeper.errors import MultiFailed, NoNode, ZooKeeperError, ZooKeeperRefusal
from kafka_dt.zookeeper.znodes.own import ClockZnode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.connection.operations import Znode

_LOG = logging.getLogger(__name__)
BATCH: Final = 64
"""How many znodes are read by one request."""
_T = TypeVar("_T")


class Reads:
    """Reads znodes, and remembers what the server can do."""

    def __init__(self, client: ZooKeeperClient) -> None:
        self._client = client
        self._one_by_one = False

    async def read(self, paths: Sequence[str], arrived: Callable[[str, Znode | ZooKeeperError], _T]) -> list[_T]:
        """Read znodes, not of one moment.

        Args:
            paths: relative to the chroot; as many are asked for at a time.
            arrived: hears of each as its answer arrives, in the loop: the znode, or why it cannot be read. What it
                raises is raised here when it has heard of all that the request was about.

        Returns:
            What `arrived` has made of each.

        Raises:
            ZooKeeperError: a request failed as a whole; of its znodes nothing is known.
        """
        batches = [paths[begin : begin + BATCH] for begin in range(0, len(paths), BATCH)]
        read = await asyncio.gather(*(self._read(batch, arrived) for batch in batches))
        return [each for batch in read for each in batch]

    async def _read(self, paths: Sequence[str], arrived: Callable[[str, Znode | ZooKeeperError], _T]) -> list[_T]:
        if not self._one_by_one:
            try:
                made: Any = await self._client.get_many(paths, arrived=partial(_all_arrived, paths, arrived))
            except ZooKeeperRefusal as error:
                if not self._one_by_one:
                    _LOG.info("ZooKeeper does not read many znodes at once (%s)", error)
                self._one_by_one = True
            else:
                return cast("list[_T]", made)
        # An older server hangs up after the refusal: then these are lost, and tried again on the next connection.
        return await asyncio.gather(*(self._read_one(path, arrived) for path in paths))

    async def _read_one(self, path: str, arrived: Callable[[str, Znode | ZooKeeperError], _T]) -> _T:
        made: Any = await self._client.get(path, arrived=lambda found, error: arrived(path, error or found))
        return cast("_T", made)


def _all_arrived(
    paths: Sequence[str],
    arrived: Callable[[str, Znode | ZooKeeperError], _T],
    found: Sequence[Znode | ZooKeeperError] | None,
    error: ZooKeeperError | None,
) -> list[_T]:
    """Report each znode of a request; a listener that raises for one still gets the others."""
    if error is not None or found is None:
        raise error or ZooKeeperRefusal("an answer without content")
    made: list[_T] = []
    raised: Exception | None = None
    for path, each in zip(paths, found, strict=True):
        try:
            made.append(arrived(path, each))
        except Exception as unwelcome:  # noqa: BLE001 - whatever it is, it belongs to the caller
            raised = raised or unwelcome
    if raised is not None:
        raise raised
    return made


class SharedSync:
    """Sends syncs of one path by `send`; all of ZooKeeper's paths are in one order."""

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
        # Shielded, both: a caller that is cancelled does not cancel the others.
        return asyncio.shield(await asyncio.shield(self._turn))

    def _send_now(self, turn: asyncio.Future[asyncio.Future[None]]) -> None:
        self._turn = None
        turn.set_result(self._send(self._path))


async def zookeeper_time_ms(client: ZooKeeperClient) -> int:
    """Return the leader's time of a write that is made now, in milliseconds since 1970 in UTC."""
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
