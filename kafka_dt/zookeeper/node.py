"""Build the stores of a node in ZooKeeper.

    check(settings, workers=2)                   # before anything is opened
    stores = node_stores(settings, WorkerPlace(0, 2, "4711"), derivations, needs, now_ms=now_ms)

`kafka_dt.app` calls it; nothing else of a node knows ZooKeeper.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kafka_dt.config import ConfigError, Settings
from kafka_dt.files import why_not_made, why_unusable
from kafka_dt.stores import NodeStores, StoreNeeds, WorkerPlace
from kafka_dt.tokens import GuardedChanges
from kafka_dt.tracing import Spans
from kafka_dt.zookeeper.connection.settings import zookeeper_settings
from kafka_dt.zookeeper.proofs.witness import WitnessMemory
from kafka_dt.zookeeper.sealing.derivations import Derivations
from kafka_dt.zookeeper.sealing.token_codec import TokenCodec
from kafka_dt.zookeeper.stores.acls import ZooKeeperAclStore
from kafka_dt.zookeeper.stores.change_purger import PurgeLimits
from kafka_dt.zookeeper.stores.cluster import ZooKeeperCluster
from kafka_dt.zookeeper.stores.scram_users import ZooKeeperScramUsers, ZooKeeperScramUserStore
from kafka_dt.zookeeper.stores.tokens import ZooKeeperTokenStore

STATE_DIR: Final = "kafka.dt.state.dir"
_RIGHTS: Final = os.W_OK | os.X_OK


def check(settings: Settings, workers: int) -> None:
    """Check the settings of ZooKeeper, and the folder in which workers remember their writes. Makes nothing.

    Raises:
        ConfigError: naming the key that cannot be used.
    """
    zookeeper_settings(settings)
    for number in range(workers):
        _remembered(settings, number)


def node_stores(
    settings: Settings,
    place: WorkerPlace,
    derivations: Derivations,
    needs: StoreNeeds,
    *,
    now_ms: Callable[[], int],
    spans: Spans | None = None,
) -> NodeStores:
    """Build the stores of a worker.

    Args:
        settings: of the node.
        place: which worker it is.
        derivations: where the workers of the node share what opens sealed tokens.
        needs: the parts of the worker that stores work with.
        now_ms: the wall clock, in milliseconds since 1970.
        spans: of requests; None where they are not traced.

    Raises:
        ConfigError: a setting cannot be used.
    """
    cluster = ZooKeeperCluster(
        zookeeper_settings(settings),
        _witness_memory(settings, place.number),
        witness=f"{place.node}-{place.number}",
        forget_proofs=lambda: tokens.forget_proofs(),  # noqa: PLW0108 - it is made later
        removes_old=place.number == 0,
        now_ms=now_ms,
        counts=needs.counts,
        spans=spans,
    )
    purge = PurgeLimits(retention_ms=settings.change_retention_ms)
    tokens = ZooKeeperTokenStore(
        cluster.client,
        _codec(settings, derivations, needs),
        now_ms=now_ms,
        limits=purge,
        max_staleness_ms=settings.zookeeper_max_staleness_ms,
        begin_at=place.number / place.workers,
        creations=needs.limits.creations,
    )
    users = ZooKeeperScramUsers(cluster.client, now_ms=now_ms, limits=purge)
    acls = ZooKeeperAclStore(cluster.client, now_ms=now_ms, limits=purge)

    async def close() -> None:
        for store in (tokens, acls, users):
            await store.close()

    return NodeStores(
        cluster=cluster,
        tokens=tokens,
        token_changes=_changes(tokens, needs, now_ms),
        keyed_tokens=tokens,
        users=users,
        user_changes=ZooKeeperScramUserStore(cluster.client, users),
        acls=acls,
        close=close,
    )


def _codec(settings: Settings, derivations: Derivations, needs: StoreNeeds) -> TokenCodec:
    return TokenCodec(
        needs.keyring,
        seal=settings.metadata_encryption,
        executor=needs.executor,
        random_bytes=secrets.token_bytes,
        derivations=derivations,
        ahead=settings.sealing_ahead,
        idle=needs.idle,
    )


def _changes(tokens: ZooKeeperTokenStore, needs: StoreNeeds, now_ms: Callable[[], int]) -> GuardedChanges | None:
    if needs.keyring is None:
        return None
    return GuardedChanges(
        tokens, needs.cache, needs.keyring, needs.limits, now_ms=now_ms, random_bytes=secrets.token_bytes
    )


def _witness_memory(settings: Settings, number: int) -> WitnessMemory:
    """Make a worker's memory of its writes to ZooKeeper, and the folder for it.

    Raises:
        ConfigError: the folder for it cannot be used.
    """
    if settings.state_dir:
        _require(why_not_made(Path(settings.state_dir), _RIGHTS, mode=0o700))
    return _remembered(settings, number)


def _remembered(settings: Settings, number: int) -> WitnessMemory:
    if not settings.state_dir:
        return WitnessMemory()
    folder = Path(settings.state_dir)
    _require(why_unusable(folder, _RIGHTS))
    try:
        return WitnessMemory(folder / f"witness-{number}.json")
    except (OSError, ValueError) as error:
        raise ConfigError(STATE_DIR, str(error)) from None


def _require(reason: str | None) -> None:
    if reason is not None:
        raise ConfigError(STATE_DIR, reason)
