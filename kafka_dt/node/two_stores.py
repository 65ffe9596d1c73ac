"""Join a ZooKeeper and the cluster behind a gateway, for a node whose tokens move from one to the other.

    stores = joined(in_zookeeper, upstream, needs, new_upstream=True)

All that is no token stays in ZooKeeper: users, ACLs, the keys of the nodes, the id of the cluster and the secret of the
salts. A node needs both when it starts. Later each may be away, and the tokens of the other go on.

Source: docs/decisions/0027-two-stores-side-by-side.md.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka_dt.tokens import PartOfCache, Store, TwoStores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_dt.config import Settings
    from kafka_dt.stores import ClusterState, MakeStores, NodeStores, StoreNeeds, WorkerState


def joined(in_zookeeper: MakeStores, upstream: MakeStores, needs: StoreNeeds, *, new_upstream: bool) -> NodeStores:
    """Build the stores of a worker.

    Args:
        in_zookeeper: builds those in ZooKeeper; tokens must not be disabled there.
        upstream: builds those in the cluster.
        needs: the parts of the worker that stores work with.
        new_upstream: whether new tokens are made in the cluster, or in ZooKeeper.
    """
    ours, of_zookeeper = _made(in_zookeeper, needs)
    clusters, of_cluster = _made(upstream, needs)
    new, old = (of_cluster, of_zookeeper) if new_upstream else (of_zookeeper, of_cluster)
    tokens = TwoStores(new=new, old=old)

    async def close() -> None:
        await clusters.close()
        await ours.close()

    def prepare(settings: Settings) -> Callable[[], None]:
        steps = ours.prepare(settings), clusters.prepare(settings)

        def take_over() -> None:
            for step in steps:
                step()

        return take_over

    cluster = TwoClusters(ours.cluster, clusters.cluster)
    return replace(
        ours,
        cluster=cluster,
        tokens=tokens,
        token_changes=tokens,
        close=close,
        prepare=prepare,
        news_silence_s=clusters.news_silence_s,
    )


def _made(make: MakeStores, needs: StoreNeeds) -> tuple[NodeStores, Store]:
    known = PartOfCache(needs.cache)
    stores = make(replace(needs, cache=known))
    assert stores.token_changes is not None  # noqa: S101 - the settings of both have tokens enabled
    return stores, Store(stores.tokens, stores.token_changes, known)


class TwoClusters:
    """Implements ClusterState: the one in ZooKeeper, beside a cluster upstream that needs care as well."""

    def __init__(self, in_zookeeper: ClusterState, upstream: ClusterState) -> None:
        self._in_zookeeper = in_zookeeper
        self._upstream = upstream

    @property
    def must_restart(self) -> asyncio.Event:
        """That of ZooKeeper; the history of a cluster does not go back."""
        return self._in_zookeeper.must_restart

    async def start(self) -> None:
        """Connect to both."""
        await self._in_zookeeper.start()
        await self._upstream.start()

    async def cluster_id(self) -> str:
        """Return the id that is in ZooKeeper."""
        return await self._in_zookeeper.cluster_id()

    async def salt_secret(self) -> bytes:
        """Return the secret that is in ZooKeeper: the salts of the users there stay as they are."""
        return await self._in_zookeeper.salt_secret()

    async def announce(self, state: WorkerState) -> None:
        """Tell the other nodes in ZooKeeper, where `kafka-dt keys` looks for them."""
        await self._in_zookeeper.announce(state)

    async def brokers(self) -> Sequence[str]:
        """Return the ids of the brokers in ZooKeeper."""
        return await self._in_zookeeper.brokers()

    async def keep(self) -> None:
        """Do what each needs."""
        await asyncio.gather(self._in_zookeeper.keep(), self._upstream.keep())

    async def close(self) -> None:
        """Leave both."""
        await self._upstream.close()
        await self._in_zookeeper.close()
