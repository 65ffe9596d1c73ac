"""Token znodes in memory behind the face of a ZooKeeperClient, for tests that want conflicts and losses on demand.

client = ZnodesInMemory({"id": b"..."})
client.before_write = lambda: ...      # runs once, before the next multi is looked at
client.lose_next(answered=False)       # the next multi is carried out, but its answer is lost
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka_dt.zookeeper.connection.operations import ANY_VERSION, Create, Delete, Operation, SetData, Stat, Znode
from kafka_dt.zookeeper.errors import (
    MultiFailed,
    NoNode,
    VersionMismatch,
    ZooKeeperConnectionLost,
    ZooKeeperError,
    ZooKeeperRefusal,
)

TOKENS = "/delegation_token/tokens/"


class ZnodesInMemory:
    def __init__(self, contents: Mapping[str, bytes], *, old_server: bool = False) -> None:
        self.znodes: dict[str, tuple[bytes, int]] = {
            TOKENS + token_id: (data, 0) for token_id, data in contents.items()
        }
        self.connected = True
        self.announced: list[str] = []
        self.multis: list[int] = []
        """How many operations each multi had that was tried."""
        self.reads = 0
        self.before_write: Callable[[], None] | None = None
        self.hung_up = False
        self._old_server = old_server
        """It refuses to read many znodes at once, and hangs up."""
        self._losses: list[bool] = []

    def data(self, token_id: str) -> bytes:
        return self.znodes[TOKENS + token_id][0]

    def change(self, token_id: str, data: bytes) -> None:
        """Write as another process would."""
        self.znodes[TOKENS + token_id] = (data, self.znodes[TOKENS + token_id][1] + 1)

    def remove(self, token_id: str) -> None:
        del self.znodes[TOKENS + token_id]

    def lose_next(self, *, carried_out: bool) -> None:
        """Have the connection break over the next multi."""
        self._losses.append(carried_out)

    async def get_many(
        self, paths: Sequence[str], *, arrived: Callable[[list[Znode | ZooKeeperError], None], Any]
    ) -> Any:
        await self._check()
        if self._old_server:
            self.hung_up = True
            raise ZooKeeperRefusal("UnimplementedError")
        self.reads += 1
        return arrived([self._read(path) for path in paths], None)

    async def get(self, path: str, *, arrived: Callable[[Znode | None, ZooKeeperError | None], Any]) -> Any:
        await self._check()
        if self.hung_up:
            asyncio.get_running_loop().call_soon(setattr, self, "hung_up", False)
            raise ZooKeeperConnectionLost("the server hung up", sent=True)
        self.reads += 1
        znode = self._read(path)
        return arrived(None, znode) if isinstance(znode, ZooKeeperError) else arrived(znode, None)

    async def children(self, path: str) -> list[str]:
        await self._check()
        names = [name.removeprefix(TOKENS) for name in self.znodes if path in TOKENS]
        if not names:
            raise NoNode(path)
        return names

    async def ensure_path(self, path: str) -> None:
        """There is nothing to make."""

    async def multi(
        self, operations: Sequence[Operation], *, arrived: Callable[..., object] | None = None
    ) -> list[str | Stat | None]:
        await self._check()
        if self.before_write is not None:
            before, self.before_write = self.before_write, None
            before()
        self.multis.append(len(operations))
        carried_out = self._losses.pop() if self._losses else None
        results: list[str | Stat | None] = []
        if carried_out is not False:
            results = self._carry_out(operations)
        if carried_out is not None:
            raise ZooKeeperConnectionLost("the connection was lost", sent=True)
        if arrived is not None:
            arrived(results, None)
        return results

    async def _check(self) -> None:
        await asyncio.sleep(0)
        if not self.connected:
            raise ZooKeeperConnectionLost("there is no connection", sent=False)

    def _read(self, path: str) -> Znode | ZooKeeperError:
        if path not in self.znodes:
            return NoNode(path)
        data, version = self.znodes[path]
        return Znode(data, Stat(1, 1, 0, 0, version, 0, 0, 0))

    def _carry_out(self, operations: Sequence[Operation]) -> list[str | Stat | None]:
        for index, operation in enumerate(operations):
            if isinstance(operation, SetData | Delete):
                if operation.path not in self.znodes:
                    raise MultiFailed(index, NoNode(operation.path))
                if operation.version not in {ANY_VERSION, self.znodes[operation.path][1]}:
                    raise MultiFailed(index, VersionMismatch(operation.path))
        results: list[str | Stat | None] = []
        for operation in operations:
            match operation:
                case SetData(path=path, data=data, version=version):
                    self.znodes[path] = (data, version + 1)
                    results.append(Stat(1, 1, 0, 0, version + 1, 0, 0, 0))
                case Delete(path=path):
                    del self.znodes[path]
                    results.append(None)
                case Create(path=path, data=data):
                    self.announced.append(data.decode())
                    results.append(f"{path}{len(self.announced):010d}")
        return results
