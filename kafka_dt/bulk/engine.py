"""Have a task decide about every znode of a list, and carry the decisions out, guarded by the version that was read.

A removal may say that it needs no guard.

    await process(client, names, Seal(keyring, token_bytes), report=summary.add, now_ms=now_ms)

A few lanes work on a batch each: its znodes are read, decided about in a thread, and written in one request. So the
requests under way and the memory are bounded; what grows with the number of tokens is the list of their names alone
(about 90 bytes each).

What happens meanwhile: a znode that was changed between reading and writing is read and decided about again; one
that is gone counts as gone; one that cannot be read or written counts as failed and stays as it is. When the connection
is lost the batch waits for the next one and begins again by reading, so a change whose answer was lost is found made.
`stop` ends the run after the batches under way; a run that was stopped or killed leaves every znode either as it was
or wholly changed, and can be begun again.

Source: KIP-395, "Future work".
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_dt.bulk.decisions import Decision, Fail, Leave, Remove, Result, Task, Write, ZnodeResult
from kafka_dt.bulk.writes import WHOLE, Writes, ZnodeChange, news_of_changes
from kafka_dt.lanes import run_lanes
from kafka_dt.zookeeper.connection.operations import ANY_VERSION, Delete, SetData
from kafka_dt.zookeeper.connection.reads import Reads
from kafka_dt.zookeeper.errors import (
    AccessDenied,
    NoNode,
    RequestTooLarge,
    VersionMismatch,
    ZooKeeperConnectionLost,
    ZooKeeperError,
)
from kafka_dt.zookeeper.znodes.kafka import TokenZnode

if TYPE_CHECKING:
    from kafka_dt.bulk.writes import Portion
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient
    from kafka_dt.zookeeper.connection.operations import Operation, Znode

Report = Callable[[Sequence[Result]], None]
"""Takes the results for the znodes of a batch; it is called in the event loop."""

ALWAYS_CHANGED: Final = "it was changed by others each time it was to be written"
UNREACHABLE: Final = "the connection to ZooKeeper was lost each time it was tried"
_RECONNECTED_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class BulkLimits:
    """The bounds of a run: how much at once, and how long."""

    batch: int = 64
    """Znodes that are read, decided and written together."""
    lanes: int = 6
    """Batches under way: enough that threads always find one that has been read."""
    threads: int | None = None
    """How many decide; None = one more than cores, so that none is idle while one waits for the interpreter."""
    attempts: int = 10
    """How often a znode is begun again after a conflict or a lost connection."""
    reconnect_s: float = 60.0
    """How long a lost connection is waited for."""


async def token_ids(client: ZooKeeperClient) -> list[str]:
    """Return the names of all token znodes; none where no token was ever made.

    Raises:
        ZooKeeperError: they cannot be read.
    """
    try:
        return await client.children(TokenZnode.PARENT)
    except NoNode:
        return []


async def process(
    client: ZooKeeperClient,
    names: Iterable[str],
    task: Task,
    *,
    report: Report,
    now_ms: Callable[[], int],
    dry_run: bool = False,
    stop: asyncio.Event | None = None,
    limits: BulkLimits | None = None,
    portion: Portion = WHOLE,
) -> None:
    """Work on the token znodes of these names; each counts in one result.

    Args:
        client: a started client.
        names: token ids.
        task: decides about each.
        report: hears the results, a batch at a time.
        now_ms: the wall clock, in milliseconds since 1970.
        dry_run: decide only; a change that would be made counts as changed.
        stop: set it to end after the batches that are under way.
        limits: how much at once.
        portion: what the run may use of ZooKeeper.

    Raises:
        ZooKeeperConnectionLost: ZooKeeper did not come back in time; what was done has been reported.
        ZooKeeperError: ZooKeeper refuses more than a single znode.
    """
    limits = limits or BulkLimits()
    threads = ThreadPoolExecutor(limits.threads or (os.cpu_count() or 1) + 1, thread_name_prefix="bulk")
    if not dry_run:
        limits = replace(limits, batch=portion.batch(limits.batch))
    run = _Run(client, Reads(client), task, threads, report, stop or asyncio.Event(), limits)
    rate = portion.own_changes_a_second
    try:
        if dry_run:
            await run.all(names, None)
        elif task.announces:
            async with news_of_changes(client, now_ms, portion) as news:
                await run.all(names, Writes(client, news, changes_a_second=rate))
        else:
            await run.all(names, Writes(client, changes_a_second=rate))
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


class _Read(NamedTuple):
    token_id: str
    znode: Znode


@dataclass(frozen=True, slots=True)
class _Run:
    client: ZooKeeperClient
    reads: Reads
    task: Task
    threads: Executor
    report: Report
    stop: asyncio.Event
    limits: BulkLimits

    async def all(self, names: Iterable[str], writes: Writes | None) -> None:
        """Work on all names, several batches at once; without `writes` nothing is changed."""
        lane = partial(self._lane, iter(names), writes)
        await run_lanes(lane, self.limits.lanes, raises=ZooKeeperError)

    async def _lane(self, left: Iterator[str], writes: Writes | None) -> None:
        while not self.stop.is_set() and (names := list(islice(left, self.limits.batch))):
            batch = _Batch(self, writes)
            try:
                await self._finish(batch, names)
            finally:
                self.report(list(batch.results.values()))

    async def _finish(self, batch: _Batch, names: Sequence[str]) -> None:
        for _ in range(self.limits.attempts):
            names = await batch.attempt(names)
            if not names:
                return
            if not await self._reconnected():
                return  # told to stop; what is left has no result, as if it had not been begun
        batch.give_up(names)

    async def _reconnected(self) -> bool:
        """Wait for the connection; False when told to stop while there is none."""
        deadline_s = time.monotonic() + self.limits.reconnect_s
        while not self.client.connected:
            if self.stop.is_set():
                return False
            if time.monotonic() > deadline_s:
                raise ZooKeeperConnectionLost(
                    f"ZooKeeper has not been reached again for {self.limits.reconnect_s:g} s", sent=False
                )
            await asyncio.sleep(_RECONNECTED_POLL_S)
        return True


class _Batch:
    """Some znodes, from reading to their results."""

    def __init__(self, run: _Run, writes: Writes | None) -> None:
        self._run = run
        self._writes = writes
        self._unsure: set[str] = set()
        """Which of them may have been changed by a request whose answer was lost."""
        self._lost: set[str] = set()
        self.results: dict[str, Result] = {}

    async def attempt(self, names: Sequence[str]) -> list[str]:
        """Read, decide and write; returns those that are to be begun again."""
        self._lost.clear()
        found = await self._read(names)
        contents = [(read.token_id, read.znode.data) for read in found]
        decisions = await asyncio.get_running_loop().run_in_executor(self._run.threads, self._run.task, contents)
        changes = [
            (read, decision, operation)
            for read, decision in zip(found, decisions, strict=True)
            if (operation := self._settled_or_operation(read, decision)) is not None
        ]
        await self._write(changes)
        return [name for name in names if name not in self.results]

    def give_up(self, names: Iterable[str]) -> None:
        """Settle the znodes that are still not done as failed."""
        for name in names:
            self._settle(name, ZnodeResult.FAILED, UNREACHABLE if name in self._lost else ALWAYS_CHANGED)

    async def _read(self, names: Sequence[str]) -> list[_Read]:
        answers: Sequence[Znode | ZooKeeperError]
        try:
            answers = await self._run.reads.read([TokenZnode.path(name) for name in names], lambda _, found: found)
        except ZooKeeperError as error:
            answers = [error] * len(names)
        found = []
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, ZooKeeperError):
                self._refused(name, answer)
            else:
                found.append(_Read(name, answer))
        return found

    def _settled_or_operation(self, read: _Read, decision: Decision) -> Operation | None:
        """Settle the znodes that are not to be written; return the decisions for the others."""
        match decision:
            case Leave(note=note):
                outcome = ZnodeResult.CHANGED if read.token_id in self._unsure else ZnodeResult.UNCHANGED
                self._settle(read.token_id, outcome, note=note, version=read.znode.stat.version)
            case Fail(reason=reason):
                self._settle(read.token_id, ZnodeResult.FAILED, reason, version=read.znode.stat.version)
            case Write(note=note) | Remove(note=note) if self._writes is None:
                self._settle(read.token_id, ZnodeResult.CHANGED, note=note, version=read.znode.stat.version)
            case Write(data=data):
                return SetData(TokenZnode.path(read.token_id), data, read.znode.stat.version)
            case Remove(guarded=guarded):
                return Delete(TokenZnode.path(read.token_id), read.znode.stat.version if guarded else ANY_VERSION)
        return None

    async def _write(self, changes: Sequence[tuple[_Read, Decision, Operation]]) -> None:
        if not changes or self._writes is None:
            return
        made = await self._writes.carry_out([ZnodeChange(read.token_id, operation) for read, _, operation in changes])
        for (read, decision, _), error in zip(changes, made, strict=True):
            if error is None:
                note = getattr(decision, "note", None)
                self._settle(read.token_id, ZnodeResult.CHANGED, note=note, version=read.znode.stat.version)
                continue
            if isinstance(error, ZooKeeperConnectionLost) and error.sent:
                self._unsure.add(read.token_id)
            self._refused(read.token_id, error)

    def _refused(self, name: str, error: ZooKeeperError) -> None:
        """Settle a znode whose read or write was refused, unless that is worth another attempt."""
        match error:
            case ZooKeeperConnectionLost():
                self._lost.add(name)
            case VersionMismatch():
                pass
            case NoNode():
                self._settle(name, ZnodeResult.CHANGED if name in self._unsure else ZnodeResult.GONE)
            case AccessDenied():
                self._settle(name, ZnodeResult.FAILED, "ZooKeeper does not let us")
            case RequestTooLarge():
                self._settle(name, ZnodeResult.FAILED, "it would be larger than ZooKeeper takes")
            case _:
                self._settle(name, ZnodeResult.FAILED, f"ZooKeeper refuses ({type(error.__cause__ or error).__name__})")

    def _settle(
        self, name: str, outcome: ZnodeResult, reason: str = "", *, note: object = None, version: int | None = None
    ) -> None:
        self.results[name] = Result(name, outcome, reason, note, version)
