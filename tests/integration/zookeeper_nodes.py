"""Nodes of a cluster for the tests of this folder: a client and what stands on it."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.operations import Create
from kafka_dt.zookeeper.connection.settings import ZooKeeperSettings
from kafka_dt.zookeeper.stores.tokens import ZooKeeperTokenStore
from tests.support.processes.waiting import on_this_machine
from tests.support.zookeeper.token_codecs import codec_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from kafka_dt.tokens.store import StoredToken
    from kafka_dt.tokens.token import Token
    from kafka_dt.zookeeper.sealing.token_codec import TokenCodec
    from kafka_dt.zookeeper.stores.change_purger import PurgeLimits

OF_A_STRANGER = [make_digest_acl("stranger", "secret", all=True)]
"""No node can read a znode with this ACL."""
SESSION_TIMEOUT_MS = 4000
"""With the ticks of the test servers it is as short as the server allows, or near."""
MAX_STALENESS_MS = 600
"""Short, so that a test need not wait long for a proof: there is one every 200 ms."""
NO_PROOF_MS = 3_600_000
"""So long that a change is heard of by its watch, and not because a proof was due."""
CHANGES = "/delegation_token/token_changes"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def eventually(condition: Callable[[], bool], within_s: float = 30) -> float:
    """Poll until a condition holds; the seconds it took. A busy machine gets more time."""
    begun = time.monotonic()
    most_s = on_this_machine(within_s)
    while not condition():
        assert time.monotonic() - begun < most_s, f"not so within {most_s:.3g} s ({within_s:g} s on an idle machine)"
        await asyncio.sleep(0.01)
    return time.monotonic() - begun


async def caught_up(*nodes: Node) -> None:
    """Wait until each has proved that it knows everything that was acknowledged before this call."""
    begun = time.monotonic()
    for node in nodes:
        await eventually(lambda store=node.store: store.staleness_ms() < (time.monotonic() - begun) * 1000)  # type: ignore[misc]


@contextmanager
def stranger(connect: str) -> Iterator[KazooClient]:
    """A client of ZooKeeper that is neither a node nor a broker."""
    client = KazooClient(connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


async def announce(client: ZooKeeperClient, content: bytes) -> None:
    """Make a change znode, as a process that changes a token does."""
    await client.multi([Create(f"{CHANGES}/token_change_", content, sequence=True)])


def settings(connect: str, session_timeout_ms: int = SESSION_TIMEOUT_MS) -> ZooKeeperSettings:
    return ZooKeeperSettings(connect, session_timeout_ms=session_timeout_ms)


@asynccontextmanager
async def client_of(client_settings: ZooKeeperSettings) -> AsyncIterator[ZooKeeperClient]:
    client = ZooKeeperClient(client_settings)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


@dataclass
class Node:
    client: ZooKeeperClient
    store: ZooKeeperTokenStore
    states: dict[str, StoredToken | None] = field(default_factory=dict)
    reports: int = 0

    def hear(self, token_id: str, stored: StoredToken | None) -> None:
        self.states[token_id] = stored
        self.reports += 1

    def token(self, token_id: str) -> Token | None:
        stored = self.states.get(token_id)
        return None if stored is None else stored.token


@asynccontextmanager
async def node_of(
    client_settings: ZooKeeperSettings,
    limits: PurgeLimits | None = None,
    codec: TokenCodec | None = None,
    *,
    max_staleness_ms: int = MAX_STALENESS_MS,
) -> AsyncIterator[Node]:
    async with client_of(client_settings) as client:
        store = ZooKeeperTokenStore(
            client, codec or codec_of(), now_ms=now_ms, limits=limits, max_staleness_ms=max_staleness_ms
        )
        node = Node(client, store)
        node.store.on_change(node.hear)
        await node.store.load()
        try:
            yield node
        finally:
            await node.store.close()
