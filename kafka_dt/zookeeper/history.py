"""Notices that ZooKeeper's history went back: that it was restored, and revoked tokens are there again.

    guard = HistoryGuard(WitnessMemory(file), outdated=restart.set, now_ms=now_ms)
    client = ZooKeeperClient(settings, guard)
    await guard.keep(client)      # every second
    await guard.close(client)     # at the end, while connected

Each worker has a znode of its own, its witness, which it writes whenever tokens have changed since, and once a minute.
It remembers the version that it has written, in memory and, where there is a folder for it, in a file. A restored
ZooKeeper lacks the last of these writes. So the worker looks for its witness on every new connection before it reads
anything else. If a write is missing, it marks the history as doubted (`HistoryZnode`), for workers that remember
nothing. For all of them ZooKeeper is away then: changes are refused, and logins by token after
`kafka.dt.zookeeper.max.staleness.ms`.

An operator accepts the history as it is (`accept`). A worker that was already running ends then, and its successor
reads everything anew: nothing that a worker remembers of the lost history may count.

ZooKeeper's own transaction numbers do not tell this: an ensemble that elects a leader after a restore begins a new
epoch of them, which is above all numbers that were seen before.

Limits: a worker without a file knows nothing of the time before its start. Changes are lost unnoticed if no worker has
written its witness since: a second for tokens, a minute for users and ACLs. Times are those of ZooKeeper's leader.

Source: org.apache.zookeeper.server.ZooKeeperServer (lastZxidSeen); "ZooKeeper Administrator's Guide", restore.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Final

from kafka_dt.zookeeper.errors import MultiFailed, NodeExists, NoNode, ZooKeeperError
from kafka_dt.zookeeper.operations import SetData, Stat
from kafka_dt.zookeeper.own_znodes import PARENT, HistoryZnode, WitnessZnode
from kafka_dt.zookeeper.witness import Witness
from kafka_dt.zookeeper.znodes import ClusterIdZnode, TokenChangeZnode

if TYPE_CHECKING:
    from kafka_dt.zookeeper.client import ZooKeeperClient
    from kafka_dt.zookeeper.witness import WitnessMemory

log = logging.getLogger(__name__)

POLL_S: Final = 1.0
"""How often a doubted history is looked at again."""
WRITE_S: Final = 60.0
"""How often a witness is written without any change."""
NAME_BYTES: Final = 8
KEPT_MS: Final = 30 * 24 * 60 * 60_000
"""How long a witness is kept that nobody writes."""
REMOVE_S: Final = 60 * 60.0
"""How often such witnesses are looked for."""


class _Verdict(Enum):
    CONTINUED = "nothing is missing"
    DOUBTED = "something is missing"
    ACCEPTED = "something is missing, and an operator has accepted that"


class HistoryGuard:
    """The guard of one worker's connections.

    Args:
        memory: what the worker has written.
        outdated: called when an operator has accepted a history that this worker does not know: it must start again.
        now_ms: the wall clock, in milliseconds since 1970.
    """

    def __init__(self, memory: WitnessMemory, *, outdated: Callable[[], None], now_ms: Callable[[], int]) -> None:
        self._memory = memory
        self._outdated = outdated
        self._now_ms = now_ms
        self._has_admitted = False
        self._is_in_doubt = False
        self._changes: tuple[int, int] | None = None
        self._written_s = self._removed_s = time.monotonic()
        self.trouble = ""

    async def admit(self, client: ZooKeeperClient) -> None:
        """Return when the history is the one that is known here, or one that this worker may begin with."""
        while (verdict := await self._verdict(client)) is _Verdict.DOUBTED:
            self._doubt()
            await asyncio.sleep(POLL_S)
        if self._has_admitted and (verdict is _Verdict.ACCEPTED or self._is_in_doubt):
            log.warning("An operator has accepted ZooKeeper's history as it is; this worker starts again with it")
            self._outdated()
            await asyncio.Event().wait()  # until this worker ends
        if verdict is _Verdict.ACCEPTED:
            log.warning("ZooKeeper was restored, and an operator has accepted its history as it is")
            self._memory.forget()
        self._has_admitted = True
        self._is_in_doubt = False
        self.trouble = ""

    async def keep(self, client: ZooKeeperClient) -> None:
        """Write the witness if that is due, and look whether another worker doubts the history; every second."""
        if not client.connected:
            return
        with suppress(NoNode):
            if HistoryZnode.decode((await client.get(HistoryZnode.PATH)).data):
                client.readmit()
                return
        stat = await client.exists(TokenChangeZnode.PARENT)
        changes = None if stat is None else (stat.created_zxid, stat.child_version)
        is_due = time.monotonic() - self._written_s > WRITE_S
        if self._memory.witness is None or changes != self._changes or is_due:
            await self._write(client)
            self._changes = changes
            self._written_s = time.monotonic()
        if time.monotonic() - self._removed_s > REMOVE_S:
            self._removed_s = time.monotonic()
            await self._remove_old(client)

    async def close(self, client: ZooKeeperClient) -> None:
        """Remove the witness of a worker that will remember nothing."""
        witness = self._memory.witness
        if witness is not None and not self._memory.lasts and client.connected:
            with suppress(ZooKeeperError):
                await client.delete(WitnessZnode.path(witness.name))

    async def _verdict(self, client: ZooKeeperClient) -> _Verdict:
        client.ungated(lambda: client.sync(PARENT))
        doubted, changed_ms = await self._history(client)
        witness = self._memory.witness
        if witness is None or await self._holds(client, witness):
            return _Verdict.DOUBTED if doubted else _Verdict.CONTINUED
        if not doubted and changed_ms > witness.written_ms:
            return _Verdict.ACCEPTED
        if not doubted:
            await self._mark(client)
        return _Verdict.DOUBTED

    async def _history(self, client: ZooKeeperClient) -> tuple[bool, int]:
        """Return whether the history is doubted, and when that, or the contrary, was written."""
        try:
            znode = await client.ungated(lambda: client.get(HistoryZnode.PATH))
        except NoNode:
            return False, 0
        return HistoryZnode.decode(znode.data), znode.stat.modified_ms

    async def _holds(self, client: ZooKeeperClient, witness: Witness) -> bool:
        """Whether all that this worker has written is there; where that cannot be told, it counts as such."""
        stat = await client.ungated(lambda: client.exists(WitnessZnode.path(witness.name)))
        if stat is not None and stat.created_zxid == witness.created_zxid and stat.version >= witness.version:
            return True
        with suppress(NoNode):
            cluster = ClusterIdZnode.decode((await client.ungated(lambda: client.get(ClusterIdZnode.PATH))).data)
            if cluster == witness.cluster_id and self._now_ms() - witness.written_ms < KEPT_MS:
                return False
        log.warning("This ZooKeeper is another one than the last time, or that is long ago: its history is not checked")
        self._memory.forget()
        return True

    async def _mark(self, client: ZooKeeperClient) -> None:
        """Tell the other workers that the history is doubted.

        That needs a quorum: a member that was cut off, and only lags behind, cannot make anybody doubt.
        """
        data = HistoryZnode.encode(doubted=True)
        for path, content in ((PARENT, None), (HistoryZnode.PATH, data)):
            with suppress(NodeExists):
                await client.ungated(lambda path=path, content=content: client.create(path, content))  # type: ignore[misc]
        await client.ungated(lambda: client.multi([SetData(HistoryZnode.PATH, data)]))

    def _doubt(self) -> None:
        if not self._is_in_doubt:
            self._is_in_doubt = True
            self.trouble = (
                "its history went back: changes that were written are missing, and revoked tokens may be there again. "
                "If ZooKeeper was restored, follow docs/how-to/zookeeper.md, then run kafka-dt accept-restore"
            )
            log.error("ZooKeeper is not used: %s", self.trouble)

    async def _write(self, client: ZooKeeperClient) -> None:
        witness = self._memory.witness
        if witness is None:
            cluster = ClusterIdZnode.decode((await client.get(ClusterIdZnode.PATH)).data)
            witness = Witness(secrets.token_hex(NAME_BYTES), cluster, 0, 0, 0)
            await client.ensure_path(WitnessZnode.path(witness.name))
        try:
            (stat,) = await client.multi([SetData(WitnessZnode.path(witness.name), b"")])
        except MultiFailed as error:
            if isinstance(error.cause, NoNode):  # somebody has removed it while we were connected: the next is new
                self._memory.forget()
            raise
        assert isinstance(stat, Stat)  # noqa: S101 - the answer to SetData
        await self._memory.keep(witness.written(stat))

    async def _remove_old(self, client: ZooKeeperClient) -> None:
        witness = self._memory.witness
        oldest_ms = (witness.written_ms if witness else 0) - KEPT_MS
        for name in await client.children(WitnessZnode.PARENT):
            stat = await client.exists(WitnessZnode.path(name))
            if stat is not None and stat.modified_ms < oldest_ms:
                with suppress(NoNode):
                    await client.delete(WitnessZnode.path(name))


async def accept(client: ZooKeeperClient) -> None:
    """Accept ZooKeeper's history as it is, for all nodes.

    Raises:
        ZooKeeperError: it cannot be written.
    """
    await client.ensure_path(HistoryZnode.PATH)
    await client.multi([SetData(HistoryZnode.PATH, HistoryZnode.encode(doubted=False))])
