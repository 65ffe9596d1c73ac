"""Carries out guarded changes of many token znodes in one request, with or without news of them.

All changes of a batch go out in one `multi`. It happens wholly or not at all: if one znode has been changed meanwhile,
each change is made by itself, and only that one fails. A change and its change znode stay together in either case.

Change znodes are removed as the token store removes its own, but not before everybody can have seen them. Nodes follow
as fast as changes are made. A broker reads each change and each token one after the other, and every change znode that
is kept again and again; one that is gone when it comes it never hears of. So beside brokers changes are announced no
faster than a broker takes them in.

Source: kafka.common.ZkNodeChangeNotificationListener, kafka_dt.zookeeper.token_store.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_dt.zookeeper.errors import MultiFailed, RequestTooLarge, ZooKeeperError
from kafka_dt.zookeeper.node_registry import live_brokers
from kafka_dt.zookeeper.operations import Create
from kafka_dt.zookeeper.purge import ChangePurger, PurgeLimits
from kafka_dt.zookeeper.znodes import TokenChangeZnode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from kafka_dt.zookeeper.client import ZooKeeperClient
    from kafka_dt.zookeeper.operations import Operation, Stat

BESIDE_BROKERS_A_SECOND: Final = 500
BESIDE_BROKERS: Final = PurgeLimits(interval_ms=200)
WITHOUT_BROKERS: Final = PurgeLimits(interval_ms=200, max_own=10_000)
"""Nodes read changes by their numbers, whatever is kept; more of them give a slow one more time."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to the znode of a token."""

    token_id: str
    operation: Operation
    """Guarded by a version."""


class Writes:
    """Changes without news of them: for what does not change a token."""

    def __init__(self, client: ZooKeeperClient) -> None:
        self._client = client

    async def carry_out(self, changes: Sequence[Change]) -> list[ZooKeeperError | None]:
        """Make changes; returns for each what was wrong with it, None if it was made."""
        try:
            await self._make(changes)
        except (MultiFailed, RequestTooLarge) as error:
            if len(changes) == 1:
                return [_cause(error)]
            return [error for (error,) in await asyncio.gather(*(self.carry_out([change]) for change in changes))]
        except ZooKeeperError as error:
            return [error] * len(changes)
        return [None] * len(changes)

    async def _make(self, changes: Sequence[Change]) -> None:
        await self._client.multi([change.operation for change in changes])


class AnnouncedWrites(Writes):
    """Changes with a change znode each.

    Args:
        client: the connection.
        purger: takes charge of the change znodes.
        pace: waits until so many may be announced.
    """

    def __init__(self, client: ZooKeeperClient, purger: ChangePurger, pace: Pace) -> None:
        super().__init__(client)
        self._purger = purger
        self._pace = pace

    async def _make(self, changes: Sequence[Change]) -> None:
        await self._pace.take(len(changes))
        operations: list[Operation] = []
        for change in changes:
            news = Create(TokenChangeZnode.PREFIX, TokenChangeZnode.encode(change.token_id), sequence=True)
            operations += (change.operation, news)
        await self._client.multi(operations, arrived=self._made)

    def _made(self, results: list[str | Stat | None] | None, error: ZooKeeperError | None) -> None:
        if error is not None:
            raise error
        for path in (results or [])[1::2]:
            if isinstance(path, str):
                self._purger.add(path)


class Pace:
    """Lets only so many through in a second.

    Args:
        a_second: how many; None = any number.
    """

    def __init__(self, a_second: int | None) -> None:
        self._a_second = a_second
        self._next_s = 0.0

    async def take(self, count: int) -> None:
        """Wait for the turn of `count` of them."""
        if self._a_second is None:
            return
        now_s = time.monotonic()
        turn_s = max(now_s, self._next_s)
        self._next_s = turn_s + count / self._a_second
        await asyncio.sleep(turn_s - now_s)


@asynccontextmanager
async def announced_writes(client: ZooKeeperClient, now_ms: Callable[[], int]) -> AsyncIterator[AnnouncedWrites]:
    """Give what makes changes with news of them; what is left of the news at the end is purged by nodes and brokers.

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
        yield AnnouncedWrites(client, purger, Pace(BESIDE_BROKERS_A_SECOND if beside_brokers else None))
    finally:
        await purger.close()


def _cause(error: MultiFailed | RequestTooLarge) -> ZooKeeperError:
    return error.cause if isinstance(error, MultiFailed) else error
