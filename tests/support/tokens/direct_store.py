"""A store of tokens that decides itself, in memory: ids, HMACs and rules are its own, as those of a Kafka 4 cluster.

It has no versions, no numbers of changes and no keys of the node's: a node learns what is new by comparing everything.
Several stores on one `DirectCluster` are several nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kafka_dt.tokens import (
    ChangeListener,
    DelegationToken,
    NewToken,
    StoredToken,
    StoreUnavailable,
    Token,
    TokenLimits,
    TokenNotFound,
)
from kafka_dt.tokens.changes import Change

ID_BYTES = 16
HMAC_BYTES = 64
FOLLOW_SECONDS = 0.2


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class DirectCluster:
    """What decides about the tokens."""

    now_ms: Callable[[], int] = wall_clock_ms
    limits: TokenLimits = field(default_factory=TokenLimits)
    tokens: dict[str, DelegationToken] = field(default_factory=dict)


class DirectTokenStore:
    """One node's connection: a TokenSource and a TokenChanges."""

    hmac_sizes = (HMAC_BYTES,)
    removes_expired = False

    def __init__(self, cluster: DirectCluster, max_staleness_ms: int = 30_000) -> None:
        self.cluster = cluster
        self.max_staleness_ms = max_staleness_ms
        self.connected = True
        self.proofs = 0
        self._listener: ChangeListener = lambda *_: None
        self._known: dict[str, DelegationToken] = {}
        self._proved_s = 0.0
        self._following: asyncio.Task[None] | None = None

    def source_of(self, token_id: str | None) -> DirectTokenStore:
        del token_id
        return self

    def staleness_ms(self) -> int:
        return int((time.monotonic() - self._proved_s) * 1000)

    def on_change(self, listener: ChangeListener) -> None:
        self._listener = listener

    async def load(self) -> None:
        await self.catch_up()
        if self._following is None:
            self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._following

    async def read(self, token_id: str) -> StoredToken | None:
        await self._travel()
        return self._report(token_id)

    async def catch_up(self) -> None:
        begun_s = time.monotonic()
        await self._travel()
        for token_id in self._known.keys() | self.cluster.tokens.keys():
            self._report(token_id)
        self._proved_s = begun_s

    async def prove(self) -> None:
        self.proofs += 1
        await self.catch_up()

    async def time_ms(self) -> int:
        await self._travel()
        return self.cluster.now_ms()

    async def create(self, wanted: NewToken) -> DelegationToken:
        await self._travel()
        limits, random = self.cluster.limits, secrets.token_bytes(ID_BYTES)
        lifetimes = limits.max_lifetime_ms, limits.expiry_time_ms
        token = wanted.token(None, self.cluster.now_ms(), *lifetimes, random)
        created = DelegationToken(token, secrets.token_bytes(HMAC_BYTES))
        self.cluster.tokens[token.token_id] = created
        self._report(token.token_id)
        return created

    async def change(self, token_id: str, hmac: bytes, change: Change) -> int:
        await self._travel()
        held = self._held(token_id)
        if held.hmac != hmac:
            raise TokenNotFound(token_id)
        now_ms = self.cluster.now_ms()
        changed = change.decide(held.token, now_ms)
        if changed is None:
            del self.cluster.tokens[token_id]
        else:
            self.cluster.tokens[token_id] = DelegationToken(changed, hmac)
        self._report(token_id)
        return now_ms if changed is None else changed.expiry_timestamp_ms

    async def remove(self, token_id: str, past_ms: int) -> Token | None:
        await self._travel()
        held = self.cluster.tokens.get(token_id)
        is_due = held is not None and held.token.is_expired(past_ms)
        if is_due:
            del self.cluster.tokens[token_id]
        self._report(token_id)
        return held.token if held is not None and is_due else None

    def _held(self, token_id: str) -> DelegationToken:
        held = self.cluster.tokens.get(token_id)
        if held is None:
            self._report(token_id)
            raise TokenNotFound(token_id)
        return held

    def _report(self, token_id: str) -> StoredToken | None:
        held, known = self.cluster.tokens.get(token_id), self._known.get(token_id)
        stored = None if held is None else StoredToken(held.token, hmac=held.hmac)
        if held is None:
            self._known.pop(token_id, None)
        else:
            self._known[token_id] = held
        if held != known:
            self._listener(token_id, stored)
        return stored

    async def _travel(self) -> None:
        for _ in range(2):
            if not self.connected:
                raise StoreUnavailable("the test has cut it off")
            await asyncio.sleep(0)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(FOLLOW_SECONDS)
            with contextlib.suppress(StoreUnavailable):
                await self.catch_up()
