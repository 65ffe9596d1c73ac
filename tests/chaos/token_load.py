"""Load on nodes that share a ZooKeeper, and a ledger of what has been acknowledged.

    async with TokenLoad(nodes).running() as load:
        ... break something ...
    await load.check(kazoo)

Each token is in the hands of one task at a time, so the ledger knows how it must be: what was acknowledged holds, and
only what was refused with a retriable error may be either way (the change may have been made or not).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kazoo.client import KazooClient

from kafka_dt.client import ConnectionFailed, DelegationToken, LoginFailed, RequestRefused, TokenClient
from tests.support.nodes.node import SHA_256, SHA_512, Node

HOUR_MS = 3_600_000
TASKS_A_NODE = 4
TOKENS = "/delegation_token/tokens"
TIMEOUT_S = 60.0


@dataclass
class Held:
    """A token as it must be."""

    token: DelegationToken
    expiry_ms: int
    certain: bool = True
    """Whether the expiry is known; not so after a renewal that was not acknowledged."""


@dataclass
class Refusal:
    """A change that was refused."""

    error: RequestRefused
    seconds: float
    """How long the answer took."""


@dataclass
class TokenLoad:
    """Creates, renewals, deletions and logins on several nodes at once."""

    nodes: Sequence[Node]
    seed: int = 1
    alive: dict[str, Held] = field(default_factory=dict)
    deleted: dict[str, DelegationToken] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    """Whose deletion was not acknowledged."""
    created: dict[int, int] = field(default_factory=dict)
    """How many creates each node has acknowledged."""
    refusals: list[Refusal] = field(default_factory=list)
    logins: int = 0
    refused_logins: list[str] = field(default_factory=list)
    calm: bool = True
    """Whether every login must succeed: ZooKeeper is there and the nodes know it."""
    _stopping: bool = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[TokenLoad]:
        """Keep the load up during the block."""
        async with asyncio.TaskGroup() as group:
            for number, node in enumerate(self.nodes):
                for task in range(TASKS_A_NODE):
                    group.create_task(self._work(number, node, random.Random(self.seed * 100 + number * 10 + task)))  # noqa: S311
            try:
                yield self
            finally:
                self._stopping = True

    async def until_created(self, more: int) -> None:
        """Wait until each node has acknowledged so many further tokens."""
        wanted = {number: self.created.get(number, 0) + more for number in range(len(self.nodes))}
        await _until(lambda: all(self.created.get(number, 0) >= count for number, count in wanted.items()))

    async def until_refused(self, more: int) -> None:
        """Wait for so many further refusals."""
        wanted = len(self.refusals) + more
        await _until(lambda: len(self.refusals) >= wanted)

    async def check(self, kazoo: KazooClient) -> None:
        """Compare the ledger with what every node and ZooKeeper itself say."""
        views = [set(kazoo.get_children(TOKENS))]
        for node in self.nodes:
            async with node.client() as client:
                described = {token.token_id: token for token in await client.describe()}
            views.append(set(described))
            for token_id, held in self.alive.items():
                assert token_id in described, f"{token_id} was acknowledged and is lost"
                if held.certain:
                    assert described[token_id].expiry_timestamp_ms == held.expiry_ms, "a renewal is lost"
        for view in views:
            assert view == views[0], "nodes and ZooKeeper differ"
            assert self.alive.keys() <= view
            assert not self.deleted.keys() & view, "a deleted token has come back"
            # A create that was not acknowledged may have been made; no client knows its secret.
        for node in self.nodes:
            for held in list(self.alive.values())[:10]:
                assert await logs_in(node, held.token)
            for token in list(self.deleted.values())[:10]:
                assert not await logs_in(node, token)

    async def _work(self, number: int, node: Node, choice: random.Random) -> None:
        elsewhere = self.nodes[(number + 1) % len(self.nodes)]
        async with node.client() as client:
            while not self._stopping:
                kind = choice.random()
                held = self._take(choice) if kind > 0.4 else None
                if held is None:
                    await self._create(number, client)
                elif kind < 0.6:
                    await self._renew(client, held, choice.randrange(1, 100) * HOUR_MS)
                elif kind < 0.75:
                    await self._delete(client, held)
                else:
                    await self._log_in(elsewhere, held, choice.choice([SHA_256, SHA_512]))

    def _take(self, choice: random.Random) -> Held | None:
        if not self.alive:
            return None
        return self.alive.pop(choice.choice(list(self.alive)))

    async def _create(self, number: int, client: TokenClient) -> None:
        begun = time.monotonic()
        try:
            token = await client.create()
        except RequestRefused as error:
            await self._refused(error, begun)
        else:
            self.alive[token.token_id] = Held(token, token.expiry_timestamp_ms)
            self.created[number] = self.created.get(number, 0) + 1

    async def _renew(self, client: TokenClient, held: Held, period_ms: int) -> None:
        begun = time.monotonic()
        try:
            held.expiry_ms = await client.renew(held.token.hmac, period_ms)
            held.certain = True
        except RequestRefused as error:
            held.certain = False
            await self._refused(error, begun)
        self.alive[held.token.token_id] = held

    async def _delete(self, client: TokenClient, held: Held) -> None:
        begun = time.monotonic()
        try:
            await client.expire(held.token.hmac)
        except RequestRefused as error:
            self.unknown.add(held.token.token_id)
            await self._refused(error, begun)
        else:
            self.deleted[held.token.token_id] = held.token

    async def _log_in(self, node: Node, held: Held, mechanism: str) -> None:
        calm = self.calm
        try:
            async with node.token_client(held.token, mechanism):
                self.logins += 1
        except LoginFailed as error:
            self.refused_logins.append(str(error))
        except ConnectionFailed:  # a node that cannot decide closes the connection
            if calm and self.calm:
                raise
        self.alive[held.token.token_id] = held

    async def _refused(self, error: RequestRefused, begun: float) -> None:
        self.refusals.append(Refusal(error, time.monotonic() - begun))
        await asyncio.sleep(0.02)  # as a client that tries again would


async def logs_in(node: Node, token: DelegationToken) -> bool:
    """Whether a token logs in on a node."""
    try:
        async with node.token_client(token):
            return True
    except (LoginFailed, ConnectionFailed):  # a node that cannot say closes the connection
        return False


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - the load counts, it sends no events
            await asyncio.sleep(0.02)
