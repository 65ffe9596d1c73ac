"""One partition of work on all tokens: an executor does with its tokens what `kafka-dt keys` does with all.

    result = work_on(job, packed_names)

An executor whose secret keys differ from those of the other executors changes no token, because other processes might
not be able to read the tokens that it sealed. If ZooKeeper is unavailable, the result names the tokens
that are left, so that a retry counts no token twice.

Source: kafka_dt.bulk.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kafka_dt.bulk import (
    NOT_READABLE,
    BulkLimits,
    Expire,
    Portion,
    Reseal,
    Seal,
    Unseal,
    Verify,
    ZnodeResult,
    process,
)
from kafka_dt.config import ConfigError
from kafka_dt.config.secret_keys import CURRENT
from kafka_dt.pipeline.bulk.job import JobKind, PartitionResult, catch_up, pack, unpack
from kafka_dt.zookeeper.errors import ZooKeeperError

if TYPE_CHECKING:
    from kafka_dt.bulk import Result, Task
    from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess
    from kafka_dt.pipeline.bulk.job import BulkJob
    from kafka_dt.tokens import Keyring

LIMITS: Final = BulkLimits(threads=2)
"""A task has one core: a thread for it, and another so that it need not wait for the interpreter."""


class OtherKeys(ConfigError):
    """An executor has other secret keys than those that the job is for."""

    def __init__(self, found: Sequence[str], wanted: Sequence[str]) -> None:
        super().__init__(
            CURRENT,
            f"the secret keys on {socket.gethostname()} are {', '.join(found)}, and were {', '.join(wanted)} "
            "where the work began: give all executors the same, and change none meanwhile",
        )


def work_on(job: BulkJob, packed: bytes) -> PartitionResult:
    """Do a job with the tokens whose names `pack` has written, and return the result."""
    return asyncio.run(_Partition(job, unpack(packed)).run())


def ring_ids(access: ClusterAccess) -> tuple[str, ...]:
    """Return the ids of the keys that this process finds, the current one first.

    Raises:
        ConfigError: they cannot be read here, or there are none.
    """
    return tuple(key.id for key in _keyring(access).keys)


class _Partition:
    def __init__(self, job: BulkJob, names: Sequence[str]) -> None:
        self._job = job
        self._left = dict.fromkeys(names)
        self._result = PartitionResult()

    async def run(self) -> PartitionResult:
        try:
            await self._process()
        except (ConfigError, ZooKeeperError) as failed:
            self._result.error = str(failed)
        self._result.left = pack(list(self._left)) if self._left else b""
        return self._result

    async def _process(self) -> None:
        job, names = self._job, list(self._left)
        task = _task(job)
        portion = Portion(job.at_once, job.changes_a_second, self._take_over)
        async with job.access.connected() as client:
            await catch_up(client)
            await process(
                client,
                names,
                task,
                report=self._report,
                now_ms=_now_ms,
                dry_run=job.dry_run,
                limits=LIMITS,
                portion=portion,
            )

    def _report(self, results: Sequence[Result]) -> None:
        self._result.summary.add(results)
        for result in results:
            del self._left[result.token_id]
            if result.outcome is ZnodeResult.CHANGED and isinstance(result.note, str):
                self._result.by_owner[result.note] += 1
            self._result.not_readable += result.note is NOT_READABLE

    def _take_over(self, changes: Sequence[str]) -> None:
        self._result.changes = tuple(changes)


def _task(job: BulkJob) -> Task:
    keyring = _keyring(job.access)
    found = tuple(key.id for key in keyring.keys)
    if job.key_ids is not None and found != job.key_ids:
        raise OtherKeys(found, job.key_ids)
    match job.kind:
        case JobKind.SEAL:
            return Seal(keyring, secrets.token_bytes)
        case JobKind.UNSEAL:
            return Unseal(keyring)
        case JobKind.ROTATE:
            return Reseal(keyring, secrets.token_bytes)
        case JobKind.VERIFY:
            return Verify(keyring)
        case JobKind.EXPIRE:
            return Expire(keyring, job.selected)


def _keyring(access: ClusterAccess) -> Keyring:
    keyring = access.keyring()
    if keyring is None:
        raise ConfigError(CURRENT, "is needed, as file:/path or env:NAME")
    return keyring


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
