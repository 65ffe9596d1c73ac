"""Carries out guarded changes of many token znodes in one request, with or without news of them.

All changes of a batch go out in one `multi`. It happens wholly or not at all: if one znode has been changed meanwhile,
each change is made by itself, and only that one fails. A change and its change znode stay together in either case.

Change znodes are removed as the token store removes its own, but not before everybody can have seen them. Nodes follow
as fast as changes are made. A broker takes them in one after the other, derives credentials for a token that it has to
read (4 ms), and reads all change znodes that are kept again and again; one that is gone when it comes it never
hears of. So beside brokers changes are announced no faster than a broker takes them in.

Source: kafka.common.ZkNodeChangeNotificationListener, kafka.server.DelegationTokenManagerZk.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.zookeeper.errors import MultiFailed, NoNode, RequestRefused, RequestTooLarge, ZooKeeperError
from kafka_dt.zookeeper.node_registry import live_brokers
from kafka_dt.zookeeper.operations import Create, Delete
from kafka_dt.zookeeper.purge import ChangePurger, PurgeLimits
from kafka_dt.zookeeper.znodes import TokenChangeZnode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from kafka_dt.zookeeper.client import ZooKeeperClient
    from kafka_dt.zookeeper.operations import Operation, Stat

BESIDE_BROKERS: Final = PurgeLimits(retention_ms=15 * 60_000, interval_ms=200, max_own=5_000)
WITHOUT_BROKERS: Final = PurgeLimits(interval_ms=200, max_own=10_000)
"""Nodes read changes by their numbers, whatever is kept; more of them give a slow one more time."""
DELETIONS_A_SECOND: Final = 500
WRITES_A_SECOND: Final = 50
"""Beside brokers. On a busy machine a broker took in 500 deletions a second at once, and 30 tokens to read: with these
rates and limits such a one misses nothing of up to 12,000 tokens."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to the znode of a token."""

    token_id: str
    operation: Operation
    """Guarded by a version."""


class Writes:
    """Makes changes.

    Args:
        client: the connection.
        news: tells others of them; None = nobody has to know, because the tokens stay the same.
    """

    def __init__(self, client: ZooKeeperClient, news: News | None = None) -> None:
        self._client = client
        self._news = news

    async def carry_out(self, changes: Sequence[Change]) -> list[ZooKeeperError | None]:
        """Make changes; returns for each what was wrong with it, None if it was made."""
        if self._news is not None:
            await self._news.turn(changes)
        error = await self._make(changes)
        if len(changes) > 1 and isinstance(error, MultiFailed | RequestTooLarge):
            errors = await asyncio.gather(*(self._make([change]) for change in changes))
            return [self._cause(each) for each in errors]
        return [self._cause(error)] * len(changes)

    async def _make(self, changes: Sequence[Change]) -> ZooKeeperError | None:
        try:
            if self._news is None:
                await self._client.multi([change.operation for change in changes])
            else:
                await self._client.multi(self._news.told_with(changes), arrived=self._news.made)
        except ZooKeeperError as error:
            return error
        return None

    def _cause(self, error: ZooKeeperError | None) -> ZooKeeperError | None:
        """Return what was wrong with the one change of a request."""
        if not isinstance(error, MultiFailed):
            return error
        if error.index and isinstance(error.cause, NoNode):
            return RequestRefused(f"there is no {TokenChangeZnode.PARENT}")
        return error.cause


class News:
    """Tells nodes and brokers of changes, by a change znode each.

    Args:
        purger: takes charge of the change znodes.
        beside_brokers: whether brokers have to hear of them.
    """

    def __init__(self, purger: ChangePurger, *, beside_brokers: bool) -> None:
        self._purger = purger
        self._beside_brokers = beside_brokers
        self._next_s = 0.0

    async def turn(self, changes: Sequence[Change]) -> None:
        """Wait until brokers have had time for the changes before these."""
        if not self._beside_brokers:
            return
        deletions = sum(isinstance(change.operation, Delete) for change in changes)
        now_s = time.monotonic()
        turn_s = max(now_s, self._next_s)
        self._next_s = turn_s + deletions / DELETIONS_A_SECOND + (len(changes) - deletions) / WRITES_A_SECOND
        await asyncio.sleep(turn_s - now_s)

    def told_with(self, changes: Sequence[Change]) -> list[Operation]:
        """Return each change followed by the news of it."""
        operations: list[Operation] = []
        for change in changes:
            news = Create(TokenChangeZnode.PREFIX, TokenChangeZnode.encode(change.token_id), sequence=True)
            operations += (change.operation, news)
        return operations

    def made(self, results: list[str | Stat | None] | None, error: ZooKeeperError | None) -> None:
        """Take note of the change znodes that were made."""
        if error is not None:
            raise error
        for path in (results or [])[1::2]:
            if isinstance(path, str):
                self._purger.add(path)


@asynccontextmanager
async def news_of_changes(client: ZooKeeperClient, now_ms: Callable[[], int]) -> AsyncIterator[News]:
    """Give what tells of changes; change znodes that are left at the end are purged by nodes and brokers, later.

    Args:
        client: the connection.
        now_ms: the wall clock, in milliseconds since 1970.

    Raises:
        ZooKeeperError: ZooKeeper cannot be asked.
    """
    await client.ensure_path(TokenChangeZnode.PARENT)
    beside_brokers = bool(await live_brokers(client))
    limits = BESIDE_BROKERS if beside_brokers else WITHOUT_BROKERS
    purger = ChangePurger(client, TokenChangeZnode.PARENT, limits, now_ms)
    purger.start()
    try:
        yield News(purger, beside_brokers=beside_brokers)
    finally:
        await purger.close()
