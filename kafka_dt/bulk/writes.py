"""Carry out changes of many token znodes in one request, with or without change znodes, at a rate.

All changes of a batch go out in one `multi`. It happens wholly or not at all: if one znode has been changed meanwhile,
each change is made by itself, and only that one fails. A change and its change znode stay together in either case.

A run removes its change znodes as the token store does, but not before every node and broker had time to read them.
Nodes follow as fast as changes are made. A broker takes changes in one after the other, derives credentials for a token
that it has to read (4 ms), and reads all change znodes that are kept again and again; it misses a change znode that is
gone before the broker reads it. So beside brokers a run announces changes at the pace of a broker, not faster. Each of
several runs has its share of that rate, and of the change znodes that may be kept (`Portion`).

Source: kafka.common.ZkNodeChangeNotificationListener, kafka.server.DelegationTokenManagerZk.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kafka_dt.zookeeper.connection.operations import Create, Delete
from kafka_dt.zookeeper.errors import MultiFailed, NoNode, RequestTooLarge, ZooKeeperError, ZooKeeperRefusal
from kafka_dt.zookeeper.stores.change_purger import ChangePurger, PurgeLimits
from kafka_dt.zookeeper.stores.cluster import live_brokers
from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.connection.operations import Operation, Stat

BESIDE_BROKERS: Final = PurgeLimits(retention_ms=15 * 60_000, interval_ms=200, max_own=5_000)
WITHOUT_BROKERS: Final = PurgeLimits(interval_ms=200, max_own=10_000)
"""Nodes read changes by their numbers, whatever is kept; more of them give a slow one more time."""
DELETIONS_A_SECOND: Final = 500
WRITES_A_SECOND: Final = 50
"""Beside brokers. On a busy machine a broker took in 500 deletions a second at once, and 30 tokens to read: with these
rates and limits such a one misses nothing of up to 12,000 tokens."""


@dataclass(frozen=True, slots=True)
class Portion:
    """One run's share of a ZooKeeper: each of 4 runs with 1,000 changes a second makes at most 250."""

    runs: int = 1
    """How many runs work at the same time, this one among them; each may use as much as the others."""
    changes_a_second: float | None = None
    """Of all runs together; None = as many as they can."""
    hand_over: Callable[[Sequence[str]], None] | None = None
    """Gets the change znodes that are left at the end, to purge them later; None = nodes and brokers will."""

    @property
    def own_changes_a_second(self) -> float | None:
        """The changes a second of this run; None = as many as it can."""
        return None if self.changes_a_second is None else self.changes_a_second / self.runs

    def batch(self, wanted: int) -> int:
        """Return how many znodes to change together: no more than a second's worth."""
        own = self.own_changes_a_second
        return wanted if own is None else max(1, min(wanted, int(own)))


WHOLE: Final = Portion()
"""Of the only run there is."""


class WriteTurns:
    """Gives turns to changes, one after the other, each after the time that it costs.

    So runs that follow each other keep the rate as one would.
    """

    __slots__ = ("next_s",)

    def __init__(self) -> None:
        self.next_s = 0.0
        """When the last turn that was given away begins, in seconds of `time.monotonic`."""

    async def take(self, cost_s: float) -> None:
        """Wait for a turn; no other change has one in the `cost_s` seconds before it."""
        now_s = time.monotonic()
        self.next_s = max(now_s, self.next_s) + cost_s
        await asyncio.sleep(self.next_s - now_s)


@dataclass(frozen=True, slots=True)
class ZnodeChange:
    """A change of the znode of a token."""

    token_id: str
    operation: Operation
    """Guarded by a version, unless it deletes the znode whatever is in it."""


class Writes:
    """Makes changes, so many a second at most (None = as many as ZooKeeper takes).

    `news` tells nodes and brokers; None = none of them has to know, because the tokens stay the same.
    """

    def __init__(
        self, client: ZooKeeperClient, news: News | None = None, *, changes_a_second: float | None = None
    ) -> None:
        self._client = client
        self._news = news
        self._rate = changes_a_second
        self._turns = WriteTurns()

    async def carry_out(self, changes: Sequence[ZnodeChange]) -> list[ZooKeeperError | None]:
        """Make changes; returns for each its fault, None if it was made."""
        if self._rate is not None:
            await self._turns.take(len(changes) / self._rate)
        if self._news is not None:
            await self._news.turn(changes)
        error = await self._make(changes)
        if len(changes) > 1 and isinstance(error, MultiFailed | RequestTooLarge):
            errors = await asyncio.gather(*(self._make([change]) for change in changes))
            return [self._cause(each) for each in errors]
        return [self._cause(error)] * len(changes)

    async def _make(self, changes: Sequence[ZnodeChange]) -> ZooKeeperError | None:
        try:
            if self._news is None:
                await self._client.multi([change.operation for change in changes])
            else:
                await self._client.multi(self._news.told_with(changes), arrived=self._news.made)
        except ZooKeeperError as error:
            return error
        return None

    def _cause(self, error: ZooKeeperError | None) -> ZooKeeperError | None:
        """Return the fault of the one change of a request."""
        if not isinstance(error, MultiFailed):
            return error
        if error.index and isinstance(error.cause, NoNode):
            return ZooKeeperRefusal(f"there is no {TokenChangeZnode.PARENT}")
        return error.cause


class News:
    """Tells nodes and brokers of changes, by a change znode each; the purger takes charge of these.

    Of several runs that tell brokers at the same time, each leaves them time for the others.
    """

    def __init__(self, purger: ChangePurger, *, beside_brokers: bool, runs: int = 1) -> None:
        self._purger = purger
        self._beside_brokers = beside_brokers
        self._runs = runs
        self._turns = WriteTurns()

    async def turn(self, changes: Sequence[ZnodeChange]) -> None:
        """Wait until brokers have time for these changes."""
        if not self._beside_brokers:
            return
        deletions = sum(isinstance(change.operation, Delete) for change in changes)
        cost_s = deletions / DELETIONS_A_SECOND + (len(changes) - deletions) / WRITES_A_SECOND
        await self._turns.take(cost_s * self._runs)

    def told_with(self, changes: Sequence[ZnodeChange]) -> list[Operation]:
        """Return each change followed by the creation of its change znode."""
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
async def news_of_changes(
    client: ZooKeeperClient, now_ms: Callable[[], int], portion: Portion = WHOLE
) -> AsyncIterator[News]:
    """Give a `News`, which adds a change znode to each change, within this run's portion of ZooKeeper.

    Raises:
        ZooKeeperError: ZooKeeper cannot be asked.
    """
    await client.ensure_path(TokenChangeZnode.PARENT)
    beside_brokers = bool(await live_brokers(client))
    # Another process keeps what is handed over; it has the other half.
    shares = portion.runs if portion.hand_over is None else 2 * portion.runs
    purger = _purger(client, now_ms, shares, beside_brokers=beside_brokers)
    purger.start()
    try:
        yield News(purger, beside_brokers=beside_brokers, runs=portion.runs)
    finally:
        await purger.close()
        if portion.hand_over is not None:
            portion.hand_over(purger.left())


@asynccontextmanager
async def handed_over_changes(client: ZooKeeperClient, now_ms: Callable[[], int]) -> AsyncIterator[ChangePurger]:
    """Give a purger for the change znodes that runs hand over: add them as they come.

    Raises:
        ZooKeeperError: ZooKeeper cannot be asked.
    """
    purger = _purger(client, now_ms, 2, beside_brokers=bool(await live_brokers(client)))
    purger.start()
    try:
        yield purger
    finally:
        await purger.close()


def _purger(client: ZooKeeperClient, now_ms: Callable[[], int], shares: int, *, beside_brokers: bool) -> ChangePurger:
    limits = BESIDE_BROKERS if beside_brokers else WITHOUT_BROKERS
    return ChangePurger(client, TokenChangeZnode.PARENT, replace(limits, max_own=limits.max_own // shares), now_ms)
