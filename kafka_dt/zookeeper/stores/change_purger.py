"""Remove sequential change znodes that no node needs any more, such as those below `/delegation_token/token_changes`.

A node removes its own change znodes after a minute, or earlier when there are very many: a broker reads all of them
again at each change. It removes those of other processes after 15 minutes, as a broker does, because their maker may
have crashed.

Source: kafka.common.ZkNodeChangeNotificationListener (purgeObsoleteNotifications).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.zookeeper.connection.operations import Delete
from kafka_dt.zookeeper.connection.reads import zookeeper_time_ms
from kafka_dt.zookeeper.errors import DeniedByAcl, MultiFailed, NoNode, ZooKeeperError, ZooKeeperRefusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

_LOG = logging.getLogger(__name__)

PURGED_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class PurgeLimits:
    """When change znodes are removed, in milliseconds; the intervals are those of the checks."""

    retention_ms: int = 60_000
    """Age at which our own are."""
    max_own: int = 2_000
    """How many of our own are kept at most; the oldest go first. A broker reads every one of them at each change, one
    after the other: with 10,000 it would fall behind by seconds."""
    leftover_age_ms: int = 15 * 60_000
    """Age at which those of other processes are, by the clocks of ZooKeeper and of this machine."""
    interval_ms: int = 1_000
    leftover_interval_ms: int = 5 * 60_000


class ChangePurger:
    """Removes the change znodes below one parent; arguments as for `ChangeFollower`."""

    def __init__(self, client: ZooKeeperClient, parent: str, limits: PurgeLimits, now_ms: Callable[[], int]) -> None:
        self._client = client
        self._parent = parent
        self._limits = limits
        self._now_ms = now_ms
        self._own: deque[tuple[float, str]] = deque()
        self._task: asyncio.Task[None] | None = None

    def add(self, path: str) -> None:
        """Take charge of a change znode of this process, named as ZooKeeper did; only the last part counts."""
        self._own.append((time.monotonic(), f"{self._parent}/{path.rpartition('/')[2]}"))

    def start(self) -> None:
        """Begin to purge, in a task of its own."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop; other processes purge the remaining change znodes later."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def left(self) -> list[str]:
        """Return the paths of our own that are not purged, for another process that takes charge of them."""
        return [path for _, path in self._own]

    async def purge_own(self) -> None:
        """Remove those of our own that are old or too many; after a lost connection nothing is forgotten."""
        while paths := self._due():
            await self._delete(paths)
            for _ in paths:
                self._own.popleft()

    async def purge_leftovers(self) -> None:
        """Remove whatever is older than a broker would leave, by ZooKeeper's clock and by ours."""
        names = sorted(await self._client.children(self._parent))
        if not names:
            return
        oldest_ms = min(self._now_ms(), await zookeeper_time_ms(self._client)) - self._limits.leftover_age_ms
        for begin in range(0, len(names), PURGED_AT_ONCE):
            paths = [f"{self._parent}/{name}" for name in names[begin : begin + PURGED_AT_ONCE]]
            made_ms = await asyncio.gather(*map(self._made_ms, paths))
            found = [(path, each) for path, each in zip(paths, made_ms, strict=True) if each is not None]
            old = [path for path, each in found if each < oldest_ms]
            await self._delete(old)
            if len(old) < len(found):  # numbers grow with time, so all further ones are younger
                return

    async def _made_ms(self, path: str) -> int | None:
        """Return when a znode was made; None if it is gone, or its ACL refuses this process."""
        try:
            stat = await self._client.exists(path)
        except DeniedByAcl:
            return None
        return None if stat is None else stat.created_ms

    def _due(self) -> list[str]:
        oldest_s = time.monotonic() - self._limits.retention_ms / 1000
        excess = len(self._own) - self._limits.max_own
        due: list[str] = []
        for position, (made_s, path) in enumerate(self._own):
            if len(due) == PURGED_AT_ONCE or not (made_s < oldest_s or position < excess):
                break
            due.append(path)
        return due

    async def _delete(self, paths: Sequence[str]) -> None:
        if not paths:
            return
        try:
            await self._client.multi([Delete(path) for path in paths])
        except MultiFailed:  # another process purges, too, or one of them cannot be removed: then one by one
            results = await asyncio.gather(*(self._client.delete(path) for path in paths), return_exceptions=True)
            for path, result in zip(paths, results, strict=True):
                if isinstance(result, DeniedByAcl | ZooKeeperRefusal):  # of a stranger, or with a child of its own
                    _LOG.debug("%s is left: %s", path, result)
                elif isinstance(result, BaseException) and not isinstance(result, NoNode):
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
