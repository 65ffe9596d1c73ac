"""Work on every token of a ZooKeeper, distributed over Spark's executors.

    jobs = BulkJobs(spark, job)
    async with job.access.connected() as client:
        names = await jobs.prepare(client)
        await jobs.run(client, heard=heard, stop=stop)

or, all of it in one call: `outcome = run_bulk(spark, JobKind.VERIFY, settings)`.

The driver lists the names once and hands them out, a few thousand at a time, to a fixed number of lanes; each lane has
one partition worked on after the other, as a Spark job of one task. So never more partitions are under way than a rate
is shared out to, however many executors come and go, progress is known after every partition, and a run can be stopped
between them. What is held is the names (see `token_names.py`) and one summary.

Each change is guarded by the version that was read, so a partition that is tried again, or a run that begins again
after it was killed, finds done what is done. A partition that fails on ZooKeeper is tried again with what is left of
it; one whose executor dies is tried again by Spark, as a whole, and what it had changed counts as unchanged then.

Change znodes that partitions leave are handed over to the driver, which purges them when everybody has had time to read
them; while nobody is told of changes (seal, rotate, verify) there are none.

Source: kafka_dt.bulk.engine; Spark, "Job Scheduling".
"""

from __future__ import annotations

import asyncio
import socket
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, inf
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kafka_dt.bulk.filters import TokenFilter
from kafka_dt.bulk.summary import Summary
from kafka_dt.bulk.writes import DELETIONS_A_SECOND, WRITES_A_SECOND, handed_over_changes
from kafka_dt.config import ConfigError
from kafka_dt.config.secret_keys import CURRENT
from kafka_dt.pipeline.bulk_partition import BulkJob, JobKind, PartitionResult, ring_ids, work_on
from kafka_dt.pipeline.cluster_access import ClusterAccess
from kafka_dt.pipeline.errors import PipelineError
from kafka_dt.pipeline.token_names import listed_names, packs
from kafka_dt.zookeeper.node_registry import live_brokers

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from kafka_dt.zookeeper.client import ZooKeeperClient
    from kafka_dt.zookeeper.purge import ChangePurger

    Heard = Callable[[PartitionResult], None]

TOKENS_A_PARTITION: Final = 5_000
"""Two seconds' work, beside which starting a task and a session is little."""
SECONDS_A_PARTITION: Final = 10.0
"""How long one takes at most where a rate is kept, so that progress is seen and a stop is soon."""
FEWEST_A_PARTITION: Final = 100
ATTEMPTS: Final = 3


class BulkJobFailed(PipelineError):
    """A partition could not be worked on; what was done before stays done, and the next run goes on there."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; run it again to go on")
        self.reason = reason


class DuplicatedTasks(PipelineError):
    """Spark is set to run tasks twice, which no rate allows for."""

    def __init__(self) -> None:
        super().__init__("spark.speculation runs slow tasks a second time: switch it off for work on tokens")


class BulkJobs:
    """One run over all tokens.

    Args:
        spark: the session.
        job: what is done; `at_once` says how many partitions are worked on at the same time.
        now_ms: the wall clock, in milliseconds since 1970.

    Raises:
        DuplicatedTasks: the session is not fit for it.
    """

    def __init__(self, spark: SparkSession, job: BulkJob, *, now_ms: Callable[[], int]) -> None:
        self._context: SparkContext = spark.sparkContext
        if self._context.getConf().get("spark.speculation", "false") == "true":
            raise DuplicatedTasks
        self._job = job
        self._now_ms = now_ms
        self._group = f"kafka-dt-{job.kind.value}-{uuid.uuid4()}"
        self._packs: deque[bytes] = deque()
        self._failure: BulkJobFailed | None = None

    async def prepare(self, client: ZooKeeperClient, *, tokens_a_partition: int | None = None) -> int:
        """List the tokens; returns how many there are.

        Args:
            client: a started client.
            tokens_a_partition: how many are worked on together; None = as suits the rate.

        Raises:
            ZooKeeperError: they cannot be listed.
        """
        names = await listed_names(client)
        rate = await self._rate(client)
        self._packs = deque(packs(names, tokens_a_partition or self._fitting(len(names), rate)))
        # Where there are fewer partitions than could be worked on, those share the rate.
        self._job = replace(self._job, at_once=max(1, min(self._job.at_once, len(self._packs))))
        return len(names)

    async def run(self, client: ZooKeeperClient, *, heard: Heard, stop: asyncio.Event) -> None:
        """Work on the tokens that were listed.

        Args:
            client: the one that listed them.
            heard: hears what became of each partition, in the loop.
            stop: set it to end after the partitions that are under way.

        Raises:
            BulkJobFailed: a partition failed again and again; what was done has been heard.
            ZooKeeperError: ZooKeeper cannot be asked.
        """
        at_once = self._job.at_once
        threads = ThreadPoolExecutor(at_once, thread_name_prefix="bulk-partition")
        try:
            async with AsyncExitStack() as context:
                purger = None
                if self._job.kind.announces and not self._job.dry_run and self._packs:
                    purger = await context.enter_async_context(handed_over_changes(client, self._now_ms))
                async with asyncio.TaskGroup() as lanes:
                    for _ in range(at_once):
                        lanes.create_task(self._lane(threads, purger, heard, stop))
        finally:
            self._context.cancelJobGroup(self._group)
            threads.shutdown(wait=False, cancel_futures=True)
        if self._failure is not None:
            raise self._failure

    async def _lane(
        self, threads: ThreadPoolExecutor, purger: ChangePurger | None, heard: Heard, stop: asyncio.Event
    ) -> None:
        # After a failure the other lanes end their partitions, so that what they do is heard.
        while self._packs and not stop.is_set() and self._failure is None:
            try:
                await self._partition(self._packs.popleft(), threads, purger, heard)
            except BulkJobFailed as failed:
                self._failure = failed

    async def _partition(
        self, packed: bytes, threads: ThreadPoolExecutor, purger: ChangePurger | None, heard: Heard
    ) -> None:
        error = ""
        for _ in range(ATTEMPTS):
            result = await asyncio.get_running_loop().run_in_executor(threads, self._work, packed)
            heard(result)
            if purger is not None:
                for path in result.changes:
                    purger.add(path)
            if not result.left:
                return
            packed, error = result.left, result.error
        raise BulkJobFailed(error)

    def _work(self, packed: bytes) -> PartitionResult:
        """Have one partition worked on; in a thread, which is one of Spark's, too."""
        title = f"kafka-dt {self._job.kind.value}: a partition of the tokens"
        self._context.setJobGroup(self._group, title, interruptOnCancel=True)
        try:
            (result,) = self._context.parallelize([packed], 1).map(partial(work_on, self._job)).collect()
        except (Py4JError, PySparkException) as error:
            raise BulkJobFailed(f"Spark could not work on a partition ({_cause(error)})") from error
        assert isinstance(result, PartitionResult)  # noqa: S101 - what work_on returns
        return result

    async def _rate(self, client: ZooKeeperClient) -> float:
        """Return how many changes a second are made at most."""
        if self._job.dry_run or self._job.kind is JobKind.VERIFY:
            return inf
        rate = self._job.changes_a_second or inf
        if self._job.kind.announces and await live_brokers(client):
            rate = min(rate, DELETIONS_A_SECOND if self._job.kind is JobKind.EXPIRE else WRITES_A_SECOND)
        return rate

    def _fitting(self, count: int, rate: float) -> int:
        """Return how many tokens make a partition."""
        in_time = rate / self._job.at_once * SECONDS_A_PARTITION
        shared = ceil(count / self._job.at_once)  # few tokens are shared out to all lanes
        return int(max(FEWEST_A_PARTITION, min(TOKENS_A_PARTITION, in_time, shared)))


def executors_ring(spark: SparkSession, access: ClusterAccess, tasks: int) -> tuple[str, ...]:
    """Return the ids of the secret keys that executors find, the current one first; no key leaves them.

    Args:
        spark: the session.
        access: says where the keys are.
        tasks: how many look, so that most executors do.

    Raises:
        ConfigError: an executor finds none, or they find different ones.
        BulkJobFailed: Spark cannot ask them.
    """
    try:
        found = spark.sparkContext.parallelize(range(tasks), tasks).map(partial(_look, access)).collect()
    except (Py4JError, PySparkException) as error:
        raise BulkJobFailed(f"Spark could not ask the executors for their keys ({_cause(error)})") from error
    for _, trouble in found:
        if trouble is not None:
            raise ConfigError(*trouble)
    rings = {ids for ids, _ in found}
    if len(rings) > 1:
        listed = "; ".join(sorted(", ".join(ids) for ids in rings))
        raise ConfigError(CURRENT, f"executors have different secret keys ({listed}): give all of them the same")
    return rings.pop()


def slots(spark: SparkSession) -> int:
    """Return how many tasks run at a time on the executors that are there now."""
    context = spark.sparkContext
    context.parallelize([0], 1).count()  # whose executor is there then, and on most clusters so are the others
    jvm = context._jsc.sc()  # noqa: SLF001 - nothing public tells it: defaultParallelism is a setting as well
    return max(1, int(jvm.maxNumConcurrentTasks(jvm.resourceProfileManager().defaultResourceProfile())))


@dataclass(slots=True)
class BulkOutcome:
    """What has come of a run."""

    total: int = 0
    """How many tokens there were."""
    summary: Summary = field(default_factory=Summary)
    by_owner: Counter[str] = field(default_factory=Counter)
    """How many tokens of each owner ended."""
    not_readable: int = 0
    """Tokens that were left because nobody can say whether they are meant."""
    seconds: float = 0.0

    def add(self, result: PartitionResult) -> None:
        """Count a partition."""
        self.summary.merge(result.summary)
        self.by_owner.update(result.by_owner)
        self.not_readable += result.not_readable


def run_bulk(
    spark: SparkSession,
    kind: JobKind,
    settings: Mapping[str, str],
    *,
    selected: TokenFilter | None = None,
    dry_run: bool = False,
    changes_a_second: float | None = None,
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
        changes_a_second: of all partitions together.
        at_once: how many partitions are worked on at the same time; None = as many as there are cores.
        tokens_a_partition: how many tokens are worked on together; None = as suits the rate.
        progress: hears how far it is, after each partition.

    Raises:
        BulkJobFailed: a partition failed again and again.
        ConfigError: the settings cannot be used.
        ZooKeeperError: ZooKeeper cannot be asked.
    """
    access = ClusterAccess.of_properties(settings)
    at_once = at_once or slots(spark)
    job = BulkJob(kind, access, selected or TokenFilter(), dry_run, at_once, changes_a_second)
    job = replace(job, key_ids=executors_ring(spark, access, at_once))
    jobs, outcome, begun_s = BulkJobs(spark, job, now_ms=_now_ms), BulkOutcome(), time.monotonic()

    def heard(result: PartitionResult) -> None:
        outcome.add(result)
        outcome.seconds = time.monotonic() - begun_s
        if progress is not None:
            progress(outcome)

    async def run() -> None:
        async with access.connected() as client:
            outcome.total = await jobs.prepare(client, tokens_a_partition=tokens_a_partition)
            await jobs.run(client, heard=heard, stop=asyncio.Event())

    asyncio.run(run())
    outcome.seconds = time.monotonic() - begun_s
    return outcome


def _look(access: ClusterAccess, _: int) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """Look for the keys, on an executor; its error travels in parts."""
    try:
        return ring_ids(access), None
    except ConfigError as error:
        return (), (error.key, f"{error.reason} (on {socket.gethostname()})")


def _cause(error: Exception) -> str:
    """Give Spark's reason in one line: the last one of its traceback says most."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    named = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (named or lines or [type(error).__name__])[-1 if named else 0][:300]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
