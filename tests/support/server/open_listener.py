"""An open listener on a real socket of this machine, with connections that write down what it does to them.

async with opened(max_idle_ms=50) as world:
    client = await world.client()
    world.connections[0].done
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from kafka_dt.config import Endpoint, Settings
from kafka_dt.server.connections.connection import ClientConnection
from kafka_dt.server.listeners.gates import Gate
from kafka_dt.server.listeners.listener import Lifetimes, OpenListener
from tests.support.processes.ports import free_ports
from tests.support.server.parts import admission

HOST = "127.0.0.1"
TIMEOUT_S = 60


class RecordedConnection(asyncio.Protocol):
    """What a listener asks of a connection, and what it did to it."""

    last_received = 0.0
    client_name = "127.0.0.1 None"
    busy = False
    closing = False

    def __init__(self, listener: OpenListener) -> None:
        self._listener = listener
        self.transport: asyncio.Transport | None = None
        self.done: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.last_received = asyncio.get_running_loop().time()
        self._listener.opened(cast("ClientConnection", self))

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._listener.closed(cast("ClientConnection", self))

    def login_overdue(self) -> None:
        self.done.append("overdue")
        self.close()

    def retire(self) -> None:
        self.done.append("retire")
        self.close()

    def finish(self) -> None:
        self.done.append("finish")
        if not self.busy:
            self.close()

    def close(self) -> None:
        self.done.append("close")
        self.closing = True
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        self.done.append("abort")
        if self.transport is not None:
            self.transport.abort()


class World:
    def __init__(
        self, lifetimes: Lifetimes, kind: type[RecordedConnection], max_connections: int, gates: Sequence[Gate]
    ) -> None:
        self.port = free_ports(1)
        self.listener = OpenListener(
            Endpoint("PLAINTEXT", HOST, self.port),
            backlog=10,
            lifetimes=lifetimes,
            admission=admission(Settings(max_connections=max_connections)),
            gates=gates,
        )
        self.connections: list[RecordedConnection] = []
        self._kind = kind

    def connection(self) -> Any:
        made = self._kind(self.listener)
        self.connections.append(made)
        return made

    async def client(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        count = len(self.listener)
        streams = await asyncio.open_connection(HOST, self.port)
        while len(self.listener) == count:  # noqa: ASYNC110 - a listener sends no events
            await asyncio.sleep(0.001)
        return streams


@asynccontextmanager
async def opened(
    max_idle_ms: int | None = None,
    kind: type[RecordedConnection] = RecordedConnection,
    max_connections: int = 1000,
    login_s: float = 30,
    *,
    gates: Sequence[Gate] = (),
    max_age_s: float | None = None,
) -> AsyncIterator[World]:
    max_idle_s = None if max_idle_ms is None else max_idle_ms / 1000
    lifetimes = Lifetimes(login_s=login_s, max_idle_s=max_idle_s, max_age_s=max_age_s)
    world = World(lifetimes, kind, max_connections, gates)
    await world.listener.open(world.connection)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield world
    finally:
        await world.listener.drain(0.1)


async def ended(streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    reader, writer = streams
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


class Marked(RecordedConnection):
    """Says which port it has come by."""

    def __init__(self, listener: OpenListener, mark: bytes) -> None:
        super().__init__(listener)
        self._mark = mark

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        cast("asyncio.Transport", transport).write(self._mark)


def open_marked(world: World, port: int, mark: bytes, node: str = "1") -> None:
    world.listener.open_port(port, lambda: Marked(world.listener, mark), node=node)
