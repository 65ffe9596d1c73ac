"""A node without ZooKeeper: every store is in memory, and the tokens are those of a store that decides itself.

    cluster = MemoryCluster()
    async with node_on(cluster) as node:
        node.address("SASL_PLAINTEXT")

Several nodes on one cluster share its tokens. A node runs on the event loop of the test, so a blocking client belongs
into `asyncio.to_thread`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kafka_dt.config import from_properties
from kafka_dt.node import Shared, Worker
from kafka_dt.processes.node_memory import node_memory
from kafka_dt.stores import NodeStores, StoreNeeds, WorkerPlace, WorkerState
from kafka_dt_protocol import APIS
from tests.support.brokers.broker import sasl_properties
from tests.support.identity.authorization import MemoryAclStore
from tests.support.identity.scram_changes import MemoryScramUserStore
from tests.support.processes.ports import free_ports
from tests.support.tokens.direct_store import DirectCluster, DirectTokenStore, wall_clock_ms

LISTENER = "SASL_PLAINTEXT"


@dataclass
class MemoryCluster:
    """What nodes share; a ClusterState of all of them."""

    tokens: DirectCluster = field(default_factory=DirectCluster)
    users: MemoryScramUserStore = field(default_factory=MemoryScramUserStore)
    acls: MemoryAclStore = field(default_factory=MemoryAclStore)
    announced: list[WorkerState] = field(default_factory=list)
    must_restart: asyncio.Event = field(default_factory=asyncio.Event)
    kept: int = 0

    async def start(self) -> None:
        """There is nothing to connect to."""

    async def cluster_id(self) -> str:
        return "InMemoryClusterIdABCDE"

    async def salt_secret(self) -> bytes:
        return bytes(32)

    async def announce(self, state: WorkerState) -> None:
        self.announced.append(state)

    async def brokers(self) -> Sequence[str]:
        return ()

    async def keep(self) -> None:
        self.kept += 1

    async def close(self) -> None:
        """There is nothing to leave."""


@dataclass
class MemoryNode:
    """A node that runs."""

    worker: Worker
    tokens: DirectTokenStore
    ports: dict[str, int]

    @property
    def address(self) -> str:
        """host:port of the listener with PLAIN and SCRAM."""
        return f"127.0.0.1:{self.ports[LISTENER]}"

    def has_session_of(self, token_id: str) -> bool:
        """Whether a connection is logged in by that token."""
        return bool(self.worker._tokens.sessions._by_token.get(token_id))


@asynccontextmanager
async def node_on(cluster: MemoryCluster, **properties: object) -> AsyncIterator[MemoryNode]:
    """Run a node; further properties with `_` for each `.`."""
    APIS.load_entities()
    settings = from_properties(
        {
            "listeners": f"{LISTENER}://127.0.0.1:0",
            **sasl_properties(),
            **{key.replace("_", "."): str(value) for key, value in properties.items()},
        }
    ).settings
    tokens = DirectTokenStore(cluster.tokens, settings.zookeeper_max_staleness_ms)
    ports = {LISTENER: free_ports(1)}
    place = WorkerPlace(0, 1, "a node in memory")
    with node_memory(**Shared.sizes(place.workers)) as memory:
        worker = Worker(
            settings,
            ports=ports,
            place=place,
            shared=Shared.opened(memory, place),
            make_stores=lambda needs: stores(cluster, tokens, needs),
            now_ms=wall_clock_ms,
        )
        try:
            await worker.start()
            yield MemoryNode(worker, tokens, ports)
        finally:
            await worker.stop()


def stores(cluster: MemoryCluster, tokens: DirectTokenStore, _: StoreNeeds) -> NodeStores:
    """Give the stores of a node: none of them knows keys, versions or ZooKeeper."""
    return NodeStores(
        cluster=cluster,
        tokens=tokens,
        token_changes=tokens,
        keyed_tokens=None,
        users=cluster.users,
        user_changes=cluster.users,
        acls=cluster.acls,
        close=tokens.close,
    )
