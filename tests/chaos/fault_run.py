"""Clients of several nodes, whose requests are recorded, and faults of everything behind them.

    history = History()
    async with clients(nodes, history, random.Random(1)):
        async with faults[0]():
            await asyncio.sleep(5)
    assert not list(violations(history.operations, revocation_bound_ms=...))

The clients create, delete, list and log in for as long as the block runs. Each sends its next request a short pause
after the answer. A login may be with any token whose creation was acknowledged, deleted ones included.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import signal
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from kafka_dt.client import DelegationToken, LoginFailed, TokenClient, TokenClientError, TokenNotFound
from tests.chaos.history import History, Kind, Operation, Outcome
from tests.support.nodes.node import SHA_256, SHA_512, Node
from tests.support.processes.process import hanging
from tests.support.processes.wall_clock import WallClock
from tests.support.zookeeper.ensemble import Ensemble

LOGINS_A_NODE = 2
PAUSE_S = 0.05
RETRY_S = 0.2
REQUEST_TIMEOUT_MS = 5_000
MOST_LIVE = 60
"""Above this the clients delete more than they create: a listing compares every live token."""
MOST_TRIED = 200
"""How many of the newest tokens, deleted ones included, are tried for logins."""
CLOCK_JUMPS_S = (2_400, -60)
"""The first makes tokens that live for half an hour look expired."""

Fault = Callable[[], AbstractAsyncContextManager[str]]
"""Breaks something for the length of a block; gives what it has broken, in words."""

_T = TypeVar("_T")


class Clients:
    """What the clients of all nodes share.

    Args:
        history: receives every operation.
        chance: says what is asked next.
    """

    def __init__(self, history: History, chance: random.Random) -> None:
        self._history = history
        self._chance = chance
        self._live: dict[str, DelegationToken] = {}
        self._tried: deque[DelegationToken] = deque(maxlen=MOST_TRIED)
        self.clock_right_since_ms: dict[str, float] = {}
        """By the name of a node: since when its wall clock is right again; a refusal from before proves nothing."""

    async def change(self, node: Node) -> None:
        """Create and delete tokens on a node, for ever."""
        async for client in self._connected(node):
            if len(self._live) > self._chance.randrange(MOST_LIVE):
                await self._expire(node, client)
            else:
                await self._create(node, client)

    async def list(self, node: Node) -> None:
        """List all tokens on a node, for ever."""
        async for client in self._connected(node):
            began_ms = now_ms()
            seen, outcome = await _outcome(client.describe())
            ids = frozenset(token.token_id for token in seen or ())
            self._history.add(Operation(Kind.DESCRIBE, node.process.name, "", began_ms, now_ms(), outcome, ids))

    async def log_in(self, node: Node) -> None:
        """Log in on a node by one token after the other, for ever."""
        while True:
            await asyncio.sleep(PAUSE_S)
            if not self._tried:
                continue
            token = self._chance.choice(self._tried)
            mechanism = self._chance.choice((SHA_256, SHA_512))
            began_ms = now_ms()
            client = node.token_client(token, mechanism, request_timeout_ms=REQUEST_TIMEOUT_MS)
            _, outcome = await _outcome(_enter_and_leave(client))
            self._add(Kind.LOGIN, node, token.token_id, began_ms, outcome)

    async def _create(self, node: Node, client: TokenClient) -> None:
        began_ms = now_ms()
        token, outcome = await _outcome(client.create())
        self._add(Kind.CREATE, node, token.token_id if token else "", began_ms, outcome)
        if token is not None:
            self._live[token.token_id] = token
            self._tried.append(token)

    async def _expire(self, node: Node, client: TokenClient) -> None:
        token = self._live.pop(self._chance.choice(sorted(self._live)))
        began_ms = now_ms()
        _, outcome = await _outcome(client.expire(token.hmac))
        self._add(Kind.EXPIRE, node, token.token_id, began_ms, outcome)

    def _add(self, kind: Kind, node: Node, token_id: str, began_ms: float, outcome: Outcome) -> None:
        name = node.process.name
        if outcome is Outcome.REFUSED and began_ms < self.clock_right_since_ms.get(name, 0):
            outcome = Outcome.UNKNOWN
        self._history.add(Operation(kind, name, token_id, began_ms, now_ms(), outcome))

    async def _connected(self, node: Node) -> AsyncIterator[TokenClient]:
        """Give a client of a node again and again, a new one after each loss of the connection."""
        while True:
            with contextlib.suppress(TokenClientError):
                async with node.client(request_timeout_ms=REQUEST_TIMEOUT_MS) as client:
                    while True:
                        yield client
                        await asyncio.sleep(PAUSE_S)
            await asyncio.sleep(RETRY_S)


@asynccontextmanager
async def clients(nodes: Sequence[Node], history: History, chance: random.Random) -> AsyncIterator[Clients]:
    """Have clients ask every node during the block."""
    shared = Clients(history, chance)
    works: list[Coroutine[Any, Any, None]] = []
    for node in nodes:
        works += [shared.change(node), shared.list(node), *(shared.log_in(node) for _ in range(LOGINS_A_NODE))]
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield shared
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Stopped:
    """What faults have killed or frozen; another fault takes something else, whose processes are there."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._chosen: list[object] = []

    @contextlib.contextmanager
    def one_of(self, candidates: Sequence[_T]) -> Iterator[_T]:
        chosen = self._chance.choice([each for each in candidates if each not in self._chosen])
        self._chosen.append(chosen)
        yield chosen
        self._chosen.remove(chosen)


def faults_of(ensemble: Ensemble, nodes: Sequence[Node], chance: random.Random) -> list[Fault]:
    """Give the faults that an ensemble and nodes can have without losing data."""

    stopped = _Stopped(chance)

    def _member() -> Any:
        return chance.choice(ensemble.members)

    @asynccontextmanager
    async def killed() -> AsyncIterator[str]:
        with stopped.one_of(ensemble.members) as member:
            await asyncio.to_thread(member.kill)
            yield f"ZooKeeper {member.number} is killed"
            await asyncio.to_thread(member.start)

    @asynccontextmanager
    async def hangs() -> AsyncIterator[str]:
        with stopped.one_of(ensemble.members) as member, hanging(member.pid):
            yield f"ZooKeeper {member.number} hangs"

    @asynccontextmanager
    async def isolated() -> AsyncIterator[str]:
        member = _member()
        await asyncio.to_thread(ensemble.partition, member)
        yield f"ZooKeeper {member.number} is isolated"

    @asynccontextmanager
    async def away_from_clients() -> AsyncIterator[str]:
        member, silently = _member(), chance.random() < 0.5
        await asyncio.to_thread(lambda: ensemble.cut_clients(member, silently=silently))
        yield f"ZooKeeper {member.number} is away from its clients{', silently' if silently else ''}"

    @asynccontextmanager
    async def node_frozen() -> AsyncIterator[str]:
        with contextlib.ExitStack() as stack:
            node = stack.enter_context(stopped.one_of(nodes))
            for worker in node.workers():
                stack.enter_context(hanging(worker))
            yield f"all workers of {node.process.name} are frozen"

    @asynccontextmanager
    async def worker_killed() -> AsyncIterator[str]:
        with stopped.one_of(nodes) as node:
            for worker in node.workers()[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            yield f"a worker of {node.process.name} is killed"

    return [killed, hangs, isolated, away_from_clients, node_frozen, worker_killed]


def clock_jumps(clocks: Mapping[str, WallClock], shared: Clients, chance: random.Random) -> list[Fault]:
    """Give the faults of a node whose wall clock is wrong for a while, ahead first.

    Args:
        clocks: by the names of the nodes that have them; with none there is no such fault.
        shared: learns which clocks are wrong.
        chance: says which clock it is.
    """

    @asynccontextmanager
    async def jumped(jump_s: int) -> AsyncIterator[str]:
        name = chance.choice(sorted(clocks))
        shared.clock_right_since_ms[name] = math.inf
        clocks[name].move(jump_s)
        yield f"the clock of {name} is off by {jump_s} s"
        clocks[name].move(0)
        shared.clock_right_since_ms[name] = now_ms()

    return [partial(jumped, jump_s) for jump_s in CLOCK_JUMPS_S] if clocks else []


def in_turn(faults: Sequence[Fault], chance: random.Random) -> Iterator[Fault]:
    """Give the first fault, then all of them in a random order, and so on for ever."""
    yield faults[0]
    while True:
        yield from chance.sample(faults, len(faults))


def now_ms() -> float:
    """The clock of a history."""
    return time.monotonic() * 1000


async def _enter_and_leave(client: TokenClient) -> None:
    async with client:
        pass


async def _outcome(request: Coroutine[Any, Any, _T]) -> tuple[_T | None, Outcome]:
    try:
        return await request, Outcome.DONE
    except (LoginFailed, TokenNotFound):
        return None, Outcome.REFUSED
    except TokenClientError:
        return None, Outcome.UNKNOWN
