"""Clients of several nodes, whose requests are recorded.

    history = History()
    async with asking(nodes, Clients(history, random.Random(1))):
        ... break something ...
    assert not list(violations(history.operations, bounds_of))

The clients create, renew, delete, list and log in for as long as the block runs. Each sends its next request a short
pause after the answer. A login may be with any token whose creation was acknowledged, deleted ones included.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from kafka_dt.client import DelegationToken, LoginFailed, TokenClient, TokenClientError, TokenNotFound
from tests.chaos.history import History, Kind, Operation, Outcome
from tests.support.nodes.node import SHA_256, SHA_512, Node
from tests.support.processes.waiting import on_this_machine

LOGINS_A_NODE = 2
PAUSE_S = 0.05
RETRY_S = 0.2
REQUEST_TIMEOUT_S = 2.0
"""On an idle machine; a proof may take half of it."""
MOST_LIVE = 60
"""Above this the clients delete more than they create: a listing compares every live token."""
MOST_TRIED = 200
"""How many of the newest tokens, deleted ones included, are tried for logins."""
RENEWALS = 0.3
"""The share of renewals in the changes."""
SHORTEST_RENEWAL_MS, LONGEST_RENEWAL_MS = 1_200_000, 1_700_000
"""Longer than any run."""
SENT_AGAIN_MS = 1_000
"""A renewal that was answered sooner was sent once."""

_T = TypeVar("_T")


class Changeable(Protocol):
    """Where tokens can be changed; its address stays the same."""

    @property
    def name(self) -> str:
        """In the history."""

    def client(self, **settings: Any) -> TokenClient:
        """A client of it."""


class Clients:
    """What the clients of all nodes share.

    Args:
        history: receives every operation.
        chance: says what is asked next.
        pause_s: between two changes of a client.
    """

    def __init__(self, history: History, chance: random.Random, pause_s: float = PAUSE_S) -> None:
        self._history = history
        self._chance = chance
        self._pause_s = pause_s
        self._live: dict[str, DelegationToken] = {}
        self._tried: deque[DelegationToken] = deque(maxlen=MOST_TRIED)
        self._expiries: dict[str, int] = {}
        """When a token expires after its last renewal; not if there was none."""
        self._uncertain: set[str] = set()
        """Tokens with a renewal that may take effect once more, after a later one.

        Its outcome is not known, or its client has sent it again because the connection had ended: as at a broker, the
        first one goes on waiting for its turn.
        """
        self.believed_since_ms: dict[str, float] = {}
        """By name: since when a refusal tells something, for example because the wall clock is right again."""

    @property
    def expiries(self) -> dict[str, int]:
        """When live tokens that no client changes now expire, if that is certain, in milliseconds since 1970."""
        certain = self._live.keys() - self._uncertain
        return {token_id: expiry_ms for token_id, expiry_ms in self._expiries.items() if token_id in certain}

    async def change(self, at: Changeable, **arguments: Any) -> None:
        """Create, renew and delete tokens, for ever; further arguments are for each create."""
        async for client in self._connected(at, self._pause_s):
            if self._live and self._chance.random() < RENEWALS:
                await self._renew(at, client)
            elif len(self._live) > self._chance.randrange(MOST_LIVE):
                await self._expire(at, client)
            else:
                await self._create(at, client, arguments)

    async def list(self, node: Node) -> None:
        """List all tokens on a node, for ever."""
        async for client in self._connected(node):
            began_ms = now_ms()
            seen, outcome = await _outcome(client.describe())
            ids = frozenset(token.token_id for token in seen or ())
            self._history.add(Operation(Kind.DESCRIBE, node.name, "", began_ms, now_ms(), outcome, ids))

    async def log_in(self, node: Node) -> None:
        """Log in on a node by one token after the other, for ever."""
        while True:
            await asyncio.sleep(PAUSE_S)
            if not self._tried:
                continue
            token = self._chance.choice(self._tried)
            mechanism = self._chance.choice((SHA_256, SHA_512))
            began_ms = now_ms()
            client = node.token_client(token, mechanism, request_timeout_ms=_request_timeout_ms())
            _, outcome = await _outcome(_enter_and_leave(client))
            self._add(Kind.LOGIN, node, token.token_id, began_ms, outcome)

    async def _create(self, at: Changeable, client: TokenClient, arguments: dict[str, Any]) -> None:
        began_ms = now_ms()
        token, outcome = await _outcome(client.create(**arguments))
        self._add(Kind.CREATE, at, token.token_id if token else "", began_ms, outcome)
        if token is not None:
            self._live[token.token_id] = token
            self._tried.append(token)

    async def _renew(self, at: Changeable, client: TokenClient) -> None:
        token = self._take()
        began_ms = now_ms()
        period_ms = self._chance.randrange(SHORTEST_RENEWAL_MS, LONGEST_RENEWAL_MS)
        self._expiries.pop(token.token_id, None)
        expiry_ms, outcome = await _outcome(client.renew(token.hmac, period_ms))
        self._add(Kind.RENEW, at, token.token_id, began_ms, outcome)
        if outcome is Outcome.UNKNOWN or now_ms() - began_ms >= SENT_AGAIN_MS:
            self._uncertain.add(token.token_id)
        if expiry_ms is not None:
            self._expiries[token.token_id] = expiry_ms
        self._live[token.token_id] = token

    async def _expire(self, at: Changeable, client: TokenClient) -> None:
        token = self._take()
        began_ms = now_ms()
        _, outcome = await _outcome(client.expire(token.hmac))
        self._add(Kind.EXPIRE, at, token.token_id, began_ms, outcome)

    def _take(self) -> DelegationToken:
        """Give a live token to one client alone."""
        return self._live.pop(self._chance.choice(sorted(self._live)))

    def _add(self, kind: Kind, at: Changeable, token_id: str, began_ms: float, outcome: Outcome) -> None:
        if outcome is Outcome.REFUSED and began_ms < self.believed_since_ms.get(at.name, 0):
            outcome = Outcome.UNKNOWN
        self._history.add(Operation(kind, at.name, token_id, began_ms, now_ms(), outcome))

    async def _connected(self, at: Changeable, pause_s: float = PAUSE_S) -> AsyncIterator[TokenClient]:
        """Give a client again and again, a new one after each loss of the connection."""
        while True:
            with contextlib.suppress(TokenClientError):
                async with at.client(request_timeout_ms=_request_timeout_ms()) as client:
                    while True:
                        yield client
                        await asyncio.sleep(pause_s)
            await asyncio.sleep(RETRY_S)


@asynccontextmanager
async def asking(nodes: Sequence[Node], shared: Clients) -> AsyncIterator[None]:
    """Have clients ask every node during the block."""
    works: list[Coroutine[Any, Any, None]] = []
    for node in nodes:
        works += [shared.change(node), shared.list(node), *(shared.log_in(node) for _ in range(LOGINS_A_NODE))]
    async with running(*works):
        yield


@asynccontextmanager
async def running(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do works that never end during the block; what they fail with is raised at its end, whatever the block raises."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        if failures := [each for each in ended if isinstance(each, Exception)]:
            raise ExceptionGroup("clients have failed", failures)


def now_ms() -> float:
    """The clock of a history."""
    return time.monotonic() * 1000


def _request_timeout_ms() -> int:
    return int(on_this_machine(REQUEST_TIMEOUT_S) * 1000)


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
