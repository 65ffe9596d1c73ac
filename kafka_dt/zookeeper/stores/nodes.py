"""Which workers live, and which keys each has: an ephemeral znode for each, below `/kafka_dt/nodes`.

    registry = NodeRegistry(client, name)
    await registry.announce(state)         # again whenever it changes
    await registry.close()

    for state in await live_nodes(client): ...

A znode goes with its session: at once when a worker stops, after the session's timeout when it dies. A worker whose
session has expired makes its znode again in the next one. Until then no other process sees the worker, though it may
still serve; it still looks at its key files.

The name is the worker's own and new at each start. Under it a znode is found again whose creation had an unknown
outcome, or that an earlier session of the worker has left behind.

Source: org.apache.zookeeper.CreateMode.EPHEMERAL; kafka.zk.KafkaZkClient.registerBroker.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kafka_dt.stores import WorkerState
from kafka_dt.zookeeper.connection.operations import Create, Delete, SetData
from kafka_dt.zookeeper.connection.session import ConnectionState
from kafka_dt.zookeeper.errors import InvalidZnode, NodeExists, NoNode, ZooKeeperConnectionLost, ZooKeeperError
from kafka_dt.zookeeper.znodes.own import NodeZnode

if TYPE_CHECKING:
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.connection.operations import Operation

_LOG = logging.getLogger(__name__)

RETRY_S: Final = 1.0
BROKERS: Final = "/brokers/ids"
"""Where live brokers register themselves."""


class NodeRegistry:
    """Announces one worker.

    Args:
        client: a started client.
        name: one that no other worker has, fit for a path.
    """

    def __init__(self, client: ZooKeeperClient, name: str) -> None:
        self._client = client
        self._path = NodeZnode.path(name)
        self._data = b""
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        client.add_listener(self._connection_changed)

    async def announce(self, state: WorkerState) -> None:
        """Say what this worker is, from now on and in every session; later calls return before that is written.

        Raises:
            ZooKeeperError: the first time, if it does not work.
        """
        self._data = NodeZnode.encode(state)
        if self._task is None:
            await self._client.ensure_path(NodeZnode.PARENT)
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


async def live_nodes(client: ZooKeeperClient) -> list[WorkerState]:
    """Return every live worker, ordered by machine and number.

    Raises:
        InvalidZnode: one of them is not readable: whether it has a key cannot be told then.
        ZooKeeperError: they cannot be read.
    """
    with suppress(NoNode):
        client.sync(NodeZnode.PARENT)
        names = await client.children(NodeZnode.PARENT)
        found = await asyncio.gather(*(_state(client, f"{NodeZnode.PARENT}/{name}") for name in names))
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
        return NodeZnode.decode((await client.get(path)).data)
    except NoNode:
        return None  # it has just gone
    except InvalidZnode as error:
        raise InvalidZnode(error.reason, path) from None
