"""Remove change znodes that no node needs any more, so that they do not pile up.

A node removes its own after a minute, or earlier when there are very many: a broker reads all of them again at each
change. It removes those of other processes after 15 minutes, as a broker does, because their maker may have crashed. A
node that was away for longer than a change is kept compares everything (see `changes.py`; a broker does so when it
starts).

Source: kafka.common.ZkNodeChangeNotificationListener.purgeObsoleteNotifications.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_dt.zookeeper.connection.operations import Delete
from kafka_dt.zookeeper.errors import MultiFailed, NoNode, ZooKeeperError
from kafka_dt.zookeeper.proofs.clock import zookeeper_time_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

_LOG = logging.getLogger(__name__)

BATCH = 100


@dataclass(frozen=True, slots=True)
class PurgeLimits:
    """When change znodes are removed."""

    retention_ms: int = 60_000
    """Age at which our own are."""
    max_own: int = 2_000
    """How many of our own are kept at most; the oldest go first. A broker reads every one of them at each change, one
    after the other: with 10,000 it would fall behind by seconds."""
    leftover_age_ms: int = 15 * 60_000
    """Age at which those of other processes are, by the clocks of ZooKeeper and of this machine."""
    interval_ms: int = 1_000
    """How often a node checks its own change znodes, in milliseconds."""
    leftover_interval_ms: int = 5 * 60_000
    """How often a node checks the change znodes of other processes, in milliseconds."""


class ChangePurger:
    """Removes the change znodes below one parent.

    Args:
        client: the connection.
        parent: the znode whose children are the changes.
        limits: when they are removed.
        now_ms: the wall clock, in milliseconds since 1970.
    """

    def __init__(self, client: ZooKeeperClient, parent: str, limits: PurgeLimits, now_ms: Callable[[], int]) -> None:
        self._client = client
        self._parent = parent
        self._limits = limits
        self._now_ms = now_ms
        self._own: deque[tuple[float, str]] = deque()
        self._task: asyncio.Task[None] | None = None

    def add(self, path: str) -> None:
        """Take charge of a change znode that this process has made.

        Args:
            path: as ZooKeeper named it; only its last part counts.
        """
        self._own.append((time.monotonic(), f"{self._parent}/{path.rpartition('/')[2]}"))

    def start(self) -> None:
        """Begin to purge, in a task of its own."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop; other processes purge the remaining change znodes later."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def left(self) -> list[str]:
        """Return the paths of our own that are not purged, for another process that takes charge of them."""
        return [path for _, path in self._own]

    async def purge_own(self) -> None:
        """Remove those of our own that are old or too many.

        Raises:
            ZooKeeperError: it does not work now; nothing is forgotten.
        """
        while paths := self._due():
            await self._delete(paths)
            for _ in paths:
                self._own.popleft()

    async def purge_leftovers(self) -> None:
        """Remove whatever is older than a broker would leave, by ZooKeeper's clock and by ours.

        Raises:
            ZooKeeperError: it does not work now.
        """
        names = sorted(await self._client.children(self._parent))
        if not names:
            return
        oldest_ms = min(self._now_ms(), await zookeeper_time_ms(self._client)) - self._limits.leftover_age_ms
        for begin in range(0, len(names), BATCH):
            paths = [f"{self._parent}/{name}" for name in names[begin : begin + BATCH]]
            stats = await asyncio.gather(*(self._client.exists(path) for path in paths))
            old = [
                path
                for path, stat in zip(paths, stats, strict=True)
                if stat is not None and stat.created_ms < oldest_ms
            ]
            await self._delete(old)
            if len(old) < len(paths):  # numbers grow with time, so all further ones are younger
                return

    def _due(self) -> list[str]:
        oldest_s = time.monotonic() - self._limits.retention_ms / 1000
        excess = len(self._own) - self._limits.max_own
        due: list[str] = []
        for position, (made_s, path) in enumerate(self._own):
            if len(due) == BATCH or not (made_s < oldest_s or position < excess):
                break
            due.append(path)
        return due

    async def _delete(self, paths: Sequence[str]) -> None:
        if not paths:
            return
        try:
            await self._client.multi([Delete(path) for path in paths])
        except MultiFailed:  # another process purges, too: then one by one
            results = await asyncio.gather(*(self._client.delete(path) for path in paths), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException) and not isinstance(result, NoNode):
                    raise result from None

    async def _run(self) -> None:
        leftovers_s = time.monotonic()
        while True:
            try:
                if time.monotonic() >= leftovers_s:
                    await self.purge_leftovers()
                    leftovers_s = time.monotonic() + self._limits.leftover_interval_ms / 1000
                await self.purge_own()
            except ZooKeeperError as error:
                _LOG.debug("cannot purge below %s now: %s", self._parent, error)
            await asyncio.sleep(self._limits.interval_ms / 1000)
