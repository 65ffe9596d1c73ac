"""Notice that ZooKeeper's history went back: a backup was restored, and revoked tokens are stored again.

    client = ZooKeeperClient(settings, guard := HistoryGuard(WitnessMemory(file), name, ...))
    await guard.keep(client)      # every second
    await guard.close(client)     # at the end, while connected

Each worker has a znode of its own, its witness, which it writes whenever tokens have changed since, and once a minute.
It remembers the version that it has written, in memory and, where there is a folder for it, in a file. A restored
ZooKeeper lacks the last of these writes. So on every new connection, before anything else, a quorum agrees on a write
and the worker looks for its witness. (A leader that is cut off lacks writes as well.) If one is missing, it marks the
history as doubted (`HistoryZnode`), for workers that remember nothing. For all of them ZooKeeper is away then. A worker
that lacks none of its writes also forgets its proofs: it may have read revoked tokens before another worker noticed.

An operator accepts the history as it is (`accept`). A worker that was already running ends then, and its successor
reads everything anew: nothing that a worker remembers of the lost history may count. Each acceptance has a random id.
A witness is remembered together with the acceptances that ZooKeeper had then, and a worker that doubts knows those that
it has seen in doubt. So it tells an acceptance of this loss from an earlier one without comparing times: those of two
leaders differ. A second restore that takes away the mark of the first brings no acceptance, so the doubt remains.

ZooKeeper's own transaction numbers do not tell this: an ensemble that elects a leader after a restore begins a new
epoch of them. Limits: a worker without a file knows nothing of the time before its start. Changes are lost unnoticed if
no worker has written its witness since: a second for tokens, a minute for users and ACLs.

Source: org.apache.zookeeper.server.ZooKeeperServer (lastZxidSeen); "ZooKeeper Administrator's Guide", restore.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from kafka_dt.zookeeper.connection.operations import Create, SetData, Stat, Znode
from kafka_dt.zookeeper.errors import (
    AnotherCluster,
    InvalidZnode,
    MembersDiffer,
    MultiFailed,
    NodeExists,
    NoNode,
    VersionMismatch,
    ZooKeeperError,
)
from kafka_dt.zookeeper.proofs.witness import KEPT_MS, Witness
from kafka_dt.zookeeper.znodes.kafka import ClusterIdZnode, TokenChangeZnode
from kafka_dt.zookeeper.znodes.own import PARENT, History, HistoryZnode, WitnessZnode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.proofs.witness import WitnessMemory

_LOG = logging.getLogger(__name__)

POLL_S: Final = 1.0
"""How often a worker looks at a doubted history again."""
WRITE_S: Final = 60.0
"""How often a witness is written without any change."""
REMOVE_S: Final = 60 * 60.0
"""How often old witnesses are looked for."""
ID_BYTES: Final = 8
ACCEPT_TRIES: Final = 10
"""How often an acceptance is tried; workers that mark their doubt at the same time cost it a few."""
BATCH: Final = 100
"""How many witnesses are asked for at once."""


class _Verdict(Enum):
    CONTINUED = "nothing is missing"
    DOUBTED = "something is missing"
    ACCEPTED = "something is missing, and an operator has accepted that"


class HistoryGuard:
    """The guard of one worker's connections.

    Args:
        memory: what the worker has written.
        name: of the witness of a worker that remembers none; no other live worker may have it.
        must_restart: called when an operator has accepted a history that this worker does not know.
        forget_proofs: called, maybe again and again, when this worker may have read tokens from a doubted history.
        now_ms: the wall clock, in milliseconds since 1970.
        removes_old: whether this worker removes the old witnesses of others; one worker of a node does.
    """

    def __init__(
        self,
        memory: WitnessMemory,
        name: str,
        *,
        must_restart: Callable[[], None],
        forget_proofs: Callable[[], None],
        now_ms: Callable[[], int],
        removes_old: bool = False,
    ) -> None:
        self._memory = memory
        self._name = name
        self._removes_old = removes_old
        self._must_restart = must_restart
        self._forget_proofs = forget_proofs
        self._now_ms = now_ms
        self._has_admitted = False
        self._is_in_doubt = False
        self._seen: set[str] = set()
        """The acceptances that do not end the doubt: they were there when the history was found in doubt."""
        self._changes: tuple[int, int] | None = None
        self._written_s = self._removed_s = time.monotonic()
        self.trouble = ""

    @property
    def awaits_operator(self) -> bool:
        """Whether the history is in doubt, which only an operator can end."""
        return self._is_in_doubt

    async def admit(self, client: ZooKeeperClient) -> None:
        """Return when the history is the one that is known here, or one that this worker may begin with."""
        await _hear_a_quorum(client)
        while (verdict := await self._verdict(client)) is _Verdict.DOUBTED:
            self._doubt()
            await asyncio.sleep(POLL_S)
        if self._has_admitted and (verdict is _Verdict.ACCEPTED or self._is_in_doubt):
            _LOG.warning("An operator has accepted ZooKeeper's history as it is; this worker starts again with it")
            self._must_restart()
            await asyncio.Event().wait()  # until this worker ends
        if verdict is _Verdict.ACCEPTED:
            _LOG.warning("ZooKeeper was restored, and an operator has accepted its history as it is")
            self._memory.forget()
        elif self._is_in_doubt:
            _LOG.warning("ZooKeeper's history is no longer in doubt; this worker goes on with its start")
        self._has_admitted = True
        self._is_in_doubt = False
        self.trouble = ""

    async def keep(self, client: ZooKeeperClient) -> None:
        """Write the witness if that is due, and look whether another worker doubts the history; every second."""
        if not client.connected:
            return
        history, _ = await _stored(client)
        if history.doubted:
            client.readmit()
            return
        stat = await client.exists(TokenChangeZnode.PARENT)
        changes = None if stat is None else (stat.created_zxid, stat.child_version)
        is_due = time.monotonic() - self._written_s > WRITE_S
        witness = self._memory.witness
        if witness is None or witness.accepted != history.accepted or changes != self._changes or is_due:
            await self._write(client, history.accepted)
            self._changes = changes
            self._written_s = time.monotonic()
        if self._removes_old and time.monotonic() - self._removed_s > REMOVE_S:
            self._removed_s = time.monotonic()
            if (witness := self._memory.witness) is not None:
                await _remove_old_witnesses(client, witness.written_ms - KEPT_MS)

    async def close(self, client: ZooKeeperClient) -> None:
        """Remove the witness of a worker that keeps no file."""
        witness = self._memory.witness
        if witness is not None and self._memory.file is None and client.connected:
            with suppress(ZooKeeperError):
                await client.delete(WitnessZnode.path(witness.name))

    async def _verdict(self, client: ZooKeeperClient) -> _Verdict:
        client.ungated(lambda: client.sync(PARENT))
        history, version = await _stored(client)
        witness = self._memory.witness
        is_missing = witness is not None and not await self._holds(client, witness)
        # The mark that began a doubt may be lost by another restore.
        is_open = is_missing or (self._is_in_doubt and self._memory.witness is not None)
        if not history.doubted and not is_open:
            return _Verdict.CONTINUED
        if not history.doubted and history.accepts_more_than(self._seen.union(witness.accepted if witness else ())):
            return _Verdict.ACCEPTED
        if not is_missing:  # else this worker has read nothing since the restore
            self._forget_proofs()
        if not history.doubted:
            await self._mark(client, history, version)
        self._seen.update(history.accepted)
        return _Verdict.DOUBTED

    async def _holds(self, client: ZooKeeperClient, witness: Witness) -> bool:
        """Tell whether every write of this worker is there; if that is unknown, return true.

        Raises:
            AnotherCluster: the file that remembers it is of another cluster.
        """
        stat = await client.ungated(lambda: client.exists(WitnessZnode.path(witness.name)))
        if stat is not None and stat.created_zxid == witness.created_zxid and stat.version >= witness.version:
            return True
        cluster = await _cluster_id(client)
        if cluster != witness.cluster_id:
            if self._memory.file is not None and not self._has_admitted:
                raise AnotherCluster(self._memory.file, witness.cluster_id, cluster)
            _LOG.warning("ZooKeeper is another one than before: its history is not checked")
        # What was written by this very worker counts whatever the clocks say.
        elif self._has_admitted or self._now_ms() - witness.written_ms < KEPT_MS:
            return False
        else:
            _LOG.warning("%s is older than 30 days: ZooKeeper's history is not checked", self._memory.file)
        self._memory.forget()
        return True

    async def _mark(self, client: ZooKeeperClient, history: History, version: int | None) -> None:
        """Tell the other workers that the history is doubted.

        That needs a quorum: a member that was cut off, and only lags behind, cannot make a worker doubt. If an operator
        or another worker is quicker, the next look sees what they have said.
        """
        with suppress(NodeExists):
            await client.ungated(lambda: client.create(PARENT, None))
        await _replace(client, replace(history, doubted=True), version)

    def _doubt(self) -> None:
        if not self._is_in_doubt:
            self._is_in_doubt = True
            self.trouble = (
                "its history went back: changes that were written are missing, and revoked tokens may be there again. "
                "If ZooKeeper was restored, follow docs/how-to/back-up.md#restore, then run kafka-dt accept-restore"
            )
            _LOG.error("ZooKeeper is not used: %s", self.trouble)

    async def _write(self, client: ZooKeeperClient, accepted: tuple[str, ...]) -> None:
        witness = self._memory.witness
        if witness is None:
            cluster = ClusterIdZnode.decode((await client.get(ClusterIdZnode.PATH)).data)
            witness = Witness(self._name, cluster, 0, 0, 0)
            await client.ensure_path(WitnessZnode.path(witness.name))
        try:
            (stat,) = await client.multi([SetData(WitnessZnode.path(witness.name), b"")])
        except MultiFailed as error:
            if isinstance(error.cause, NoNode):  # it was removed while we were connected: the next is new
                self._memory.forget()
            raise
        assert isinstance(stat, Stat)  # noqa: S101 - the answer to SetData
        await self._memory.keep(witness.written(stat, accepted))


async def _hear_a_quorum(client: ZooKeeperClient) -> None:
    """Return when the server that we talk to knows all that a quorum knew when this began; it forgets none of it."""
    with suppress(MultiFailed):  # a quorum agrees on a refusal as well; before the first start there is no znode
        await client.ungated(lambda: client.barrier(PARENT))


async def accept(client: ZooKeeperClient) -> None:
    """Accept ZooKeeper's history as it is, for all nodes; MembersDiffer if our member lacks what the leader has."""
    await client.ensure_path(PARENT)
    for _ in range(ACCEPT_TRIES):
        client.sync(PARENT)
        znode = await _znode(client)
        history = History(accepted=(*_accepted(znode), secrets.token_hex(ID_BYTES)))
        if await _replace(client, history, None if znode is None else znode.stat.version):
            return
    raise MembersDiffer(HistoryZnode.PATH)


def _accepted(znode: Znode | None) -> tuple[str, ...]:
    """Return the earlier acceptances; none where the znode cannot be read, so that an operator can mend it."""
    try:
        return () if znode is None else HistoryZnode.decode(znode.data).accepted
    except InvalidZnode:
        return ()


async def _cluster_id(client: ZooKeeperClient) -> str | None:
    """Read the id of the cluster; None if it has none yet."""
    with suppress(NoNode):
        return ClusterIdZnode.decode((await client.ungated(lambda: client.get(ClusterIdZnode.PATH))).data)
    return None


async def _stored(client: ZooKeeperClient) -> tuple[History, int | None]:
    """Read the state of the history, and the version of its znode; None if there is none."""
    znode = await _znode(client)
    return (History(), None) if znode is None else (HistoryZnode.decode(znode.data), znode.stat.version)


async def _znode(client: ZooKeeperClient) -> Znode | None:
    try:
        return await client.ungated(lambda: client.get(HistoryZnode.PATH))
    except NoNode:
        return None


async def _replace(client: ZooKeeperClient, history: History, version: int | None) -> bool:
    """Write the state of the history; returns whether the znode still had `version`, None = it did not exist."""
    data = HistoryZnode.encode(history)
    operation = Create(HistoryZnode.PATH, data) if version is None else SetData(HistoryZnode.PATH, data, version)
    try:
        await client.ungated(lambda: client.multi([operation]))
    except MultiFailed as error:
        if not isinstance(error.cause, NodeExists | NoNode | VersionMismatch):
            raise
        return False
    return True


async def _remove_old_witnesses(client: ZooKeeperClient, oldest_ms: int) -> None:
    """Remove the witnesses that were last written before `oldest_ms`, by ZooKeeper's clock."""
    paths = [WitnessZnode.path(name) for name in await client.children(WitnessZnode.PARENT)]
    for begin in range(0, len(paths), BATCH):
        await _remove_old_of(client, paths[begin : begin + BATCH], oldest_ms)


async def _remove_old_of(client: ZooKeeperClient, paths: Sequence[str], oldest_ms: int) -> None:
    stats = await asyncio.gather(*(client.exists(path) for path in paths))
    outcomes = await asyncio.gather(
        *(
            client.delete(path, stat.version)
            for path, stat in zip(paths, stats, strict=True)
            if stat is not None and stat.modified_ms < oldest_ms
        ),
        return_exceptions=True,
    )
    for outcome in outcomes:
        # Another node removes them, too, or the worker has written again.
        if isinstance(outcome, BaseException) and not isinstance(outcome, NoNode | VersionMismatch):
            raise outcome
