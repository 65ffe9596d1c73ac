"""Work on every token in one call, and return the outcome.

    outcome = run_bulk(spark, JobKind.VERIFY, {"zookeeper.connect": ..., "delegation.token.secret.key": "file:/..."})
    outcome.summary.counts

Source: kafka_dt.pipeline.bulk.jobs.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kafka_dt.bulk import Summary, TokenFilter
from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess
from kafka_dt.pipeline.bulk.executors import executors_ring, slots
from kafka_dt.pipeline.bulk.job import CHANGES_A_SECOND, BulkJob
from kafka_dt.pipeline.bulk.jobs import BulkJobs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from kafka_dt.pipeline.bulk.job import JobKind, PartitionResult


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
        progress: is called with the progress after each partition.

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


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
