"""Work on every token of a ZooKeeper, distributed over Spark's executors.

    jobs = BulkJobs(spark, job)
    async with job.access.connected() as client:
        total = await jobs.prepare(client)
        await jobs.run(client, heard=heard, stop=stop)

`run_bulk` is all of it in one call. The driver lists the names once and hands them out, a few
thousand at a time, to a fixed number of lanes (`share_out`). Each lane has one partition worked on after the other, as
a Spark job of one task. So never more partitions are under way than a rate is shared out to, progress is known after
every partition, and a run can be stopped between them. A slow rate is shared by few lanes, so that each partition takes
much longer than the start of its task and its session.

Each change names the version that was read, so a retried partition, or a run that starts again after it was killed,
repeats no change. If a partition fails on ZooKeeper, the driver tries it again with the tokens that are left. If an
executor dies, Spark tries its whole partition again; tokens that the first try changed then count as unchanged or gone.

Partitions hand their change znodes over to the driver, which purges them when all nodes and brokers have had time to
read them. Seal, rotate and verify announce no changes, so they leave none.

Source: kafka_dt.bulk.engine; Spark, "Job Scheduling".
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, inf
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_dt.bulk import DELETIONS_A_SECOND, WRITES_A_SECOND, Summary, TokenFilter, handed_over_changes
from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess
from kafka_dt.pipeline.bulk.executors import cancel_jobs, executors_ring, slots, translated
from kafka_dt.pipeline.bulk.job import CHANGES_A_SECOND, BulkJob, JobKind, PartitionResult, listed_names, packs
from kafka_dt.pipeline.bulk.partition import work_on
from kafka_dt.pipeline.errors import BulkJobFailed, DuplicatedTasks
from kafka_dt.zookeeper.stores.cluster import live_brokers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

    Heard = Callable[[PartitionResult], None]

ATTEMPTS: Final = 3
TOKENS_A_PARTITION: Final = 5_000
"""Some seconds' work, beside which starting a task and a session is little."""
SECONDS_A_PARTITION: Final = 10.0
"""How long one takes at most where a rate is kept."""
FEWEST_A_PARTITION: Final = 100
"""Unless there are fewer tokens than that for each lane."""


class BulkJobs:
    """One run over all tokens; `now_ms` is the wall clock, in milliseconds since 1970.

    Raises:
        DuplicatedTasks: the session is not fit for it.
    """

    def __init__(self, spark: SparkSession, job: BulkJob, *, now_ms: Callable[[], int]) -> None:
        self._context: SparkContext = spark.sparkContext
        if self._context.getConf().get("spark.speculation", "false").lower() == "true":
            raise DuplicatedTasks
        self._job = job
        self._now_ms = now_ms
        self._group = f"kafka-dt-{job.kind.value}-{uuid.uuid4()}"
        self._packs: deque[bytes] = deque()
        self._failure: BulkJobFailed | None = None

    async def prepare(self, client: ZooKeeperClient, *, tokens_a_partition: int | None = None) -> int:
        """List the tokens with a started client, and return how many there are.

        tokens_a_partition: how many are worked on together; None = as suits the rate
        """
        names = await listed_names(client)
        shares = share_out(
            len(names),
            at_once=self._job.at_once,
            changes_a_second=await self._rate(client),
            tokens_a_partition=tokens_a_partition,
        )
        self._packs = deque(packs(names, shares.tokens_a_partition))
        self._job = replace(self._job, at_once=shares.lanes)
        return len(names)

    async def run(self, client: ZooKeeperClient, *, heard: Heard, stop: asyncio.Event) -> None:
        """Work on the tokens that the client listed.

        Args:
            client: a started client.
            heard: is called with the result of each partition, in the event loop.
            stop: set it to end after the partitions that are under way.

        Raises:
            BulkJobFailed: a partition failed again and again; `heard` has the results until then.
            ZooKeeperError: ZooKeeper cannot be asked.
        """
        at_once = self._job.at_once
        threads = ThreadPoolExecutor(at_once, thread_name_prefix="bulk-partition")
        try:
            async with self._changes_taken_over(client) as take_over:

                def hear(result: PartitionResult) -> None:
                    heard(result)
                    take_over(result.changes)

                async with asyncio.TaskGroup() as lanes:
                    for _ in range(at_once):
                        lanes.create_task(self._lane(threads, hear, stop))
        finally:
            cancel_jobs(self._context, self._group)
            threads.shutdown(wait=False, cancel_futures=True)
        if self._failure is not None:
            raise self._failure

    @asynccontextmanager
    async def _changes_taken_over(self, client: ZooKeeperClient) -> AsyncIterator[Callable[[Sequence[str]], None]]:
        """Give the function that takes charge of the change znodes that partitions leave."""
        if not self._job.kind.announces or self._job.dry_run or not self._packs:
            yield lambda _paths: None
            return
        async with handed_over_changes(client, self._now_ms) as purger:

            def take_over(paths: Sequence[str]) -> None:
                for path in paths:
                    purger.add(path)

            yield take_over

    async def _lane(self, threads: ThreadPoolExecutor, hear: Heard, stop: asyncio.Event) -> None:
        # After a failure the other lanes end their partitions, so that what they do is heard.
        while self._packs and not stop.is_set() and self._failure is None:
            try:
                await self._partition(self._packs.popleft(), threads, hear, stop)
            except BulkJobFailed as failed:
                self._failure = failed

    async def _partition(self, packed: bytes, threads: ThreadPoolExecutor, hear: Heard, stop: asyncio.Event) -> None:
        error = ""
        for _ in range(ATTEMPTS):
            result = await asyncio.get_running_loop().run_in_executor(threads, self._work, packed)
            hear(result)
            if not result.left or stop.is_set():
                return
            packed, error = result.left, result.error
        raise BulkJobFailed(error)

    def _work(self, packed: bytes) -> PartitionResult:
        """Have one partition worked on, in a thread that is one of Spark's, too."""
        title = f"kafka-dt {self._job.kind.value}: a partition of the tokens"
        with translated("Spark could not work on a partition"):
            self._context.setJobGroup(self._group, title, interruptOnCancel=True)
            (result,) = self._context.parallelize([packed], 1).map(partial(work_on, self._job)).collect()
        assert isinstance(result, PartitionResult)  # noqa: S101 - what work_on returns
        return result

    async def _rate(self, client: ZooKeeperClient) -> float:
        if self._job.dry_run or self._job.kind is JobKind.VERIFY:
            return inf
        rate = self._job.changes_a_second or inf
        if self._job.kind.announces and await live_brokers(client):
            rate = min(rate, DELETIONS_A_SECOND if self._job.kind is JobKind.EXPIRE else WRITES_A_SECOND)
        return rate


class Shares(NamedTuple):
    """How work is shared out."""

    lanes: int
    """How many partitions are worked on at the same time; each may use as much of the rate."""
    tokens_a_partition: int
    """At most."""


def share_out(
    tokens: int, *, at_once: int, changes_a_second: float = inf, tokens_a_partition: int | None = None
) -> Shares:
    """Share out work to at most `at_once` lanes, which together make at most `changes_a_second`.

    tokens_a_partition: how many are worked on together; None = as suits the rate
    """
    in_time = changes_a_second * SECONDS_A_PARTITION
    lanes = int(max(1, min(at_once, in_time / FEWEST_A_PARTITION)))
    if tokens_a_partition is None:
        shared = max(FEWEST_A_PARTITION, ceil(tokens / lanes))  # few tokens are shared out to all lanes
        tokens_a_partition = int(min(TOKENS_A_PARTITION, shared, max(FEWEST_A_PARTITION, in_time / lanes)))
    partitions = ceil(tokens / tokens_a_partition)
    return Shares(max(1, min(lanes, partitions)), tokens_a_partition)


@dataclass(slots=True)
class BulkOutcome:
    """The outcome of a run."""

    total: int = 0
    """How many tokens there were."""
    summary: Summary = field(default_factory=Summary)
    by_owner: Counter[str] = field(default_factory=Counter)
    """How many tokens of each owner ended."""
    not_readable: int = 0
    """Tokens that were left because they cannot be read, so the filter cannot judge them."""


def run_bulk(
    spark: SparkSession,
    kind: JobKind,
    settings: Mapping[str, str],
    *,
    selected: TokenFilter | None = None,
    dry_run: bool = False,
    changes_a_second: float | None = CHANGES_A_SECOND,
    at_once: int | None = None,
    tokens_a_partition: int | None = None,
    progress: Callable[[BulkOutcome], None] | None = None,
) -> BulkOutcome:
    """Do a job with every token, to its end.

    Args:
        spark: the session.
        kind: what is done.
        settings: of a node: where ZooKeeper is, and the secret keys as `file:` or `env:`.
        selected: which tokens end; None = all.
        dry_run: only find out what would be done.
        changes_a_second: of all partitions together; None = as many as ZooKeeper takes.
        at_once: how many partitions are worked on at the same time; None = as many as there are cores.
        tokens_a_partition: how many tokens are worked on together; None = as suits the rate.
        progress: is called after each partition.

    Raises:
        BulkJobFailed: a partition failed again and again.
        ConfigError: the settings cannot be used.
        ZooKeeperError: ZooKeeper cannot be asked.
    """
    access = ClusterAccess.of_properties(settings)
    at_once = at_once or slots(spark)
    ring = executors_ring(spark, access, at_once)
    job = BulkJob(kind, access, selected or TokenFilter(), dry_run, at_once, changes_a_second, ring)
    jobs, outcome = BulkJobs(spark, job, now_ms=lambda: time.time_ns() // 1_000_000), BulkOutcome()

    def heard(result: PartitionResult) -> None:
        outcome.summary.merge(result.summary)
        outcome.by_owner.update(result.by_owner)
        outcome.not_readable += result.not_readable
        if progress is not None:
            progress(outcome)

    async def run() -> None:
        async with access.connected() as client:
            outcome.total = await jobs.prepare(client, tokens_a_partition=tokens_a_partition)
            await jobs.run(client, heard=heard, stop=asyncio.Event())

    asyncio.run(run())
    return outcome
