"""Workers that look at ZooKeeper's history, and a ZooKeeper that has lost what they have written."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.settings import ZooKeeperSettings
from kafka_dt.zookeeper.proofs.history import HistoryGuard
from kafka_dt.zookeeper.proofs.witness import WitnessMemory
from kafka_dt.zookeeper.stores.cluster import read_or_create_cluster_id
from kafka_dt.zookeeper.znodes.own import WitnessZnode
from tests.integration.zookeeper_nodes import SESSION_TIMEOUT_MS, client_of, eventually, now_ms, settings

WITHIN_S = 60.0
TEN_MINUTES_MS = 600_000


class Worker:
    """A worker's guard and its client."""

    def __init__(self, connect: str, file: Path | None = None, name: str = "", *, removes_old: bool = False) -> None:
        self.must_restart = asyncio.Event()
        self.forgot_proofs = asyncio.Event()
        self.memory = WitnessMemory(file)
        name = name or secrets.token_hex(8)
        self.guard = HistoryGuard(
            self.memory,
            name,
            must_restart=self.must_restart.set,
            forget_proofs=self.forgot_proofs.set,
            now_ms=now_ms,
            removes_old=removes_old,
        )
        limits = ZooKeeperSettings(connect, session_timeout_ms=SESSION_TIMEOUT_MS, connection_timeout_ms=2000)
        self.client = ZooKeeperClient(limits, self.guard)

    @asynccontextmanager
    async def starting(self) -> AsyncIterator[asyncio.Task[None]]:
        """Have the client start; it is closed at the end."""
        task = asyncio.create_task(self.client.start())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.client.close()

    async def lose_a_write(self, other: ZooKeeperClient) -> None:
        """Have ZooKeeper lack what this worker has written, and let it look."""
        assert self.memory.witness is not None
        path = WitnessZnode.path(self.memory.witness.name)
        await other.delete(path)
        await other.create(path, b"")
        self.client.readmit()


@asynccontextmanager
async def worker_of(
    connect: str, file: Path | None = None, name: str = "", *, removes_old: bool = False
) -> AsyncIterator[Worker]:
    worker = Worker(connect, file, name, removes_old=removes_old)
    await worker.client.start()
    try:
        await read_or_create_cluster_id(worker.client, lambda size: bytes(range(size)))
        await worker.guard.keep(worker.client)
        yield worker
    finally:
        await worker.client.close()


@asynccontextmanager
async def two_in_doubt(connect: str) -> AsyncIterator[tuple[ZooKeeperClient, Worker, Worker]]:
    """Give an operator's client, a worker that has lost a write, and one that has lost none and has heard of it."""
    async with client_of(settings(connect)) as operator, worker_of(connect) as one, worker_of(connect) as other:
        await one.lose_a_write(operator)
        await eventually(lambda: "its history went back" in one.guard.trouble)
        await other.guard.keep(other.client)
        await eventually(lambda: "its history went back" in other.guard.trouble)
        yield operator, one, other
