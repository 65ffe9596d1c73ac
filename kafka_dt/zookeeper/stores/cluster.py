"""The state of a cluster in ZooKeeper: `kafka_dt.stores.ClusterState` for one worker.

It owns the worker's connection, and the guard that notices when ZooKeeper's history went back. The id of the cluster is
where brokers keep it. The secret of the salts is the cluster's own and no secret key, so salts stay as they are when
keys change; a client that can read it here can read the credentials of users as well.

Each live worker has an ephemeral znode below `/kafka_dt/nodes` that says which keys it has. It goes with its session:
at once when a worker stops, after the session's timeout when it dies. A worker whose session has expired makes its
znode again in the next one. Its name is new at each start: under it a znode is found again whose creation had an
unknown outcome, or that an earlier session of the worker has left behind.

Source: kafka.zk.KafkaZkClient (createOrGetClusterId, registerBroker), kafka.utils.CoreUtils.generateUuidAsBase64;
docs/architecture.md#unknown-names-get-equal-answers; org.apache.zookeeper.CreateMode.EPHEMERAL.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.operations import Create, Delete, SetData
from kafka_dt.zookeeper.connection.session import ConnectionState
from kafka_dt.zookeeper.connection.traced import TracedZooKeeperClient
from kafka_dt.zookeeper.errors import InvalidZnode, NodeExists, NoNode, ZooKeeperConnectionLost, ZooKeeperError
from kafka_dt.zookeeper.proofs.history import HistoryGuard
from kafka_dt.zookeeper.znodes.kafka import ClusterIdZnode
from kafka_dt.zookeeper.znodes.own import PARENT, SaltSecretZnode, WorkerZnode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_dt.metrics import Counts
    from kafka_dt.stores import WorkerState
    from kafka_dt.tracing import Spans
    from kafka_dt.zookeeper.connection.operations import Operation
    from kafka_dt.zookeeper.connection.settings import ZooKeeperSettings
    from kafka_dt.zookeeper.proofs.witness import WitnessMemory

_LOG = logging.getLogger(__name__)
NAME_BYTES: Final = 8
UUID_BYTES: Final = 16
RETRY_S: Final = 1.0
BROKERS: Final = "/brokers/ids"
"""Where live brokers register themselves."""


class ZooKeeperCluster:
    """Implements ClusterState; its module has the contract.

    Args:
        settings: of the connection.
        memory: the worker's memory of its own writes.
        witness: the name of the witness of a worker that remembers none; no other live worker may have it.
        forget_proofs: called when what was read on the connections until now may be of a history that went back.
        removes_old: whether this worker removes the old witnesses of others; one worker of a node does.
        now_ms: the wall clock, in milliseconds since 1970.
        counts: where connections and the times of requests are counted.
        spans: of requests; None where they are not traced.
    """

    def __init__(
        self,
        settings: ZooKeeperSettings,
        memory: WitnessMemory,
        *,
        witness: str,
        forget_proofs: Callable[[], None],
        removes_old: bool,
        now_ms: Callable[[], int],
        counts: Counts,
        spans: Spans | None = None,
    ) -> None:
        self.must_restart = asyncio.Event()
        self._history = HistoryGuard(
            memory,
            witness,
            must_restart=self.must_restart.set,
            forget_proofs=forget_proofs,
            now_ms=now_ms,
            removes_old=removes_old,
        )
        self._counts = counts
        answered = counts.store_request_seconds.observe
        self.client: Final = (
            ZooKeeperClient(settings, self._history, answered)
            if spans is None
            else TracedZooKeeperClient(settings, self._history, spans, answered)
        )
        self.client.add_listener(self._count_connection)
        self._registry = WorkerRegistry(self.client, secrets.token_hex(NAME_BYTES))

    def _count_connection(self, state: ConnectionState) -> None:
        if state is ConnectionState.CONNECTED:
            self._counts.store_connections.add()

    async def start(self) -> None:
        """Connect."""
        await self.client.start()

    async def cluster_id(self) -> str:
        """Return the id of the cluster."""
        return await read_or_create_cluster_id(self.client, secrets.token_bytes)

    async def salt_secret(self) -> bytes:
        """Return the secret of the salts."""
        return await read_or_create_salt_secret(self.client, secrets.token_bytes)

    async def announce(self, state: WorkerState) -> None:
        """Tell the other nodes of this worker, from now on and in every session."""
        await self._registry.announce(state)

    async def brokers(self) -> Sequence[str]:
        """Return the ids of the brokers in the same ZooKeeper."""
        return await live_brokers(self.client)

    async def keep(self) -> None:
        """Write the witness if that is due, and look whether another worker doubts the history."""
        try:
            await self._history.keep(self.client)
        except ZooKeeperConnectionLost:
            return  # the next look makes up for it
        except ZooKeeperError as error:
            reason = str(error)
        else:
            return
        _LOG.error("A restored ZooKeeper would not be noticed now, see /kafka_dt in ZooKeeper: %s", reason)

    async def close(self) -> None:
        """Leave ZooKeeper."""
        await self._registry.close()
        await self._history.close(self.client)
        await self.client.close()


async def read_or_create_cluster_id(client: ZooKeeperClient, random_bytes: Callable[[int], bytes]) -> str:
    """Return the id of the cluster; one that is made here is a random UUID as 22 characters of base64url."""
    path, parent = ClusterIdZnode.PATH, ClusterIdZnode.PARENT
    return ClusterIdZnode.decode(
        await _read_or_create(client, path, parent, lambda: ClusterIdZnode.encode(_new_id(random_bytes)))
    )


async def read_or_create_salt_secret(client: ZooKeeperClient, random_bytes: Callable[[int], bytes]) -> bytes:
    """Return the secret that SCRAM salts are made with; made here if it is missing."""
    size = SaltSecretZnode.SECRET_BYTES
    return SaltSecretZnode.decode(
        await _read_or_create(client, SaltSecretZnode.PATH, PARENT, lambda: SaltSecretZnode.encode(random_bytes(size)))
    )


async def _read_or_create(client: ZooKeeperClient, path: str, parent: str, new: Callable[[], bytes]) -> bytes:
    """Return the content of a znode that the first node makes."""
    try:
        return (await client.get(path)).data
    except NoNode:
        await client.ensure_path(parent)
    with suppress(NodeExists):  # another node was quicker: its content counts
        await client.create(path, new())
    return (await client.get(path)).data


def _new_id(random_bytes: Callable[[int], bytes]) -> str:
    identifier = uuid.UUID(bytes=random_bytes(UUID_BYTES), version=4)
    return base64.urlsafe_b64encode(identifier.bytes).decode("ascii").rstrip("=")


class WorkerRegistry:
    """Announces one worker, under a name that no other has."""

    def __init__(self, client: ZooKeeperClient, name: str) -> None:
        self._client = client
        self._path = WorkerZnode.path(name)
        self._data = b""
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        client.add_listener(self._connection_changed)

    async def announce(self, state: WorkerState) -> None:
        """Say what this worker is, from now on and in every session; only the first call waits for that."""
        self._data = WorkerZnode.encode(state)
        if self._task is None:
            await self._client.ensure_path(WorkerZnode.PARENT)
            await self._write()
            self._task = asyncio.create_task(self._keep())
        else:
            self._woken.set()

    async def close(self) -> None:
        """Stop announcing; the znode goes with the client's session."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _connection_changed(self, state: ConnectionState) -> None:
        if state is ConnectionState.CONNECTED:
            self._woken.set()

    async def _keep(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                await self._write()
            except ZooKeeperConnectionLost:
                continue  # the next connection wakes us
            except ZooKeeperError as error:
                _LOG.warning("this worker cannot say which keys it has, trying again: %s", error)
                await asyncio.sleep(RETRY_S)
                self._woken.set()

    async def _write(self) -> None:
        """Write the state into a znode of this session."""
        with suppress(NodeExists):
            await self._client.create(self._path, self._data, ephemeral=True)
            return
        stat = await self._client.exists(self._path)
        again = Create(self._path, self._data, ephemeral=True)
        operations: list[Operation] = [Delete(self._path), again]
        if stat is None:
            operations = [again]
        elif stat.ephemeral_owner == self._client.session_id:
            operations = [SetData(self._path, self._data)]
        await self._client.multi(operations)


async def live_workers(client: ZooKeeperClient) -> list[WorkerState]:
    """Return every live worker, ordered by machine and number.

    Raises:
        InvalidZnode: one of them is not readable: whether it has a key cannot be told then.
    """
    with suppress(NoNode):
        client.sync(WorkerZnode.PARENT)
        names = await client.children(WorkerZnode.PARENT)
        found = await asyncio.gather(*(_state(client, f"{WorkerZnode.PARENT}/{name}") for name in names))
        return sorted(filter(None, found), key=lambda state: (state.host, state.broker_id, state.worker, state.pid))
    return []


async def live_brokers(client: ZooKeeperClient) -> list[str]:
    """Return the ids of the brokers that are registered now, in order."""
    try:
        return sorted(await client.children(BROKERS))
    except NoNode:
        return []


async def _state(client: ZooKeeperClient, path: str) -> WorkerState | None:
    try:
        return WorkerZnode.decode((await client.get(path)).data)
    except NoNode:
        return None  # it has just gone
    except InvalidZnode as error:
        raise InvalidZnode(error.reason, path) from None
