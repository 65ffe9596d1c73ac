"""Work on every token over Spark's executors: the whole of it, its rate, and what goes wrong on the way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from kafka_dt.bulk import TokenFilter, ZnodeResult
from kafka_dt.config import ConfigError
from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess
from kafka_dt.pipeline.bulk.executors import executors_ring, slots
from kafka_dt.pipeline.bulk.job import BulkJob, JobKind, PartitionResult
from kafka_dt.pipeline.bulk.jobs import ATTEMPTS, BulkJobs, BulkOutcome, run_bulk
from kafka_dt.pipeline.errors import BulkJobFailed, DuplicatedTasks
from kafka_dt.zookeeper.sealing.sealed import is_sealed, open_sealed
from kafka_dt.zookeeper.znodes.kafka import TokenZnode
from tests.support.zookeeper.sealable import NEW_KEY, OLD_KEY
from tests.support.zookeeper.sealed_cluster import OLD, SealedCluster, recent, sealed_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = 240

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's, of collect()


@pytest.fixture
def cluster(zookeeper_connect: str, tmp_path: Path) -> Iterator[SealedCluster]:
    """Many tokens: a third of them plain, a third sealed with the current key, a third with the one before it."""
    with sealed_cluster(zookeeper_connect, tmp_path) as made:
        tokens = [recent(number, owner=f"owner-{number % 2}") for number in range(MANY)]
        made.znodes.write(tokens[::3])
        made.znodes.write(tokens[1::3], NEW_KEY)
        made.znodes.write(tokens[2::3], OLD_KEY)
        yield made


def counts(outcome: BulkOutcome) -> dict[ZnodeResult, int]:
    return dict(+outcome.summary.counts)


def changed_at_ms(kazoo: KazooClient, names: set[str]) -> list[int]:
    """When each znode was written last, by ZooKeeper's clock."""
    asked = [kazoo.get_async(TokenZnode.path(name)) for name in names]
    return sorted(answer.get()[1].mtime for answer in asked)


def test_rotate_and_seal_and_verify_and_unseal_do_all_of_it(spark: SparkSession, cluster: SealedCluster) -> None:
    before = cluster.znodes.data()
    plain = {
        name: open_sealed([NEW_KEY, OLD_KEY], data).plaintext if is_sealed(data) else data
        for name, data in before.items()
    }
    seen: list[int] = []

    def run(kind: JobKind, progress: Callable[[BulkOutcome], None] | None = None) -> BulkOutcome:
        return run_bulk(spark, kind, cluster.properties, tokens_a_partition=50, progress=progress)

    rotated = run(JobKind.ROTATE, lambda outcome: seen.append(outcome.summary.total))
    assert (counts(rotated), rotated.total) == ({ZnodeResult.CHANGED: 80, ZnodeResult.UNCHANGED: 160}, MANY)
    assert (seen[-1], len(seen)) == (MANY, 5)
    assert counts(run(JobKind.SEAL)) == {ZnodeResult.CHANGED: 80, ZnodeResult.UNCHANGED: 160}
    sealed = cluster.znodes.data()
    assert {name: open_sealed([NEW_KEY], data).plaintext for name, data in sealed.items()} == plain
    assert counts(run(JobKind.VERIFY)) == {ZnodeResult.UNCHANGED: MANY}
    assert cluster.znodes.data() == sealed
    assert counts(run(JobKind.UNSEAL)) == {ZnodeResult.CHANGED: MANY}
    assert cluster.znodes.data() == plain
    assert cluster.znodes.announced() == set(plain)


def test_expire_ends_what_is_meant(spark: SparkSession, cluster: SealedCluster) -> None:
    selected = TokenFilter(owners=frozenset({"User:owner-1"}))
    wanted = run_bulk(spark, JobKind.EXPIRE, cluster.properties, selected=selected, dry_run=True)
    assert (wanted.by_owner, len(cluster.znodes.ids())) == ({"User:owner-1": MANY // 2}, MANY)
    ended = run_bulk(spark, JobKind.EXPIRE, cluster.properties, selected=selected)
    assert (ended.by_owner, counts(ended)) == (wanted.by_owner, counts(wanted))
    assert len(cluster.znodes.ids()) == MANY // 2


def test_a_rate_is_kept_by_all_partitions_together(spark: SparkSession, cluster: SealedCluster) -> None:
    begun_ms = time.time_ns() // 1_000_000
    outcome = run_bulk(
        spark, JobKind.SEAL, cluster.properties, changes_a_second=60, at_once=2, tokens_a_partition=MANY // 4
    )
    assert counts(outcome) == {ZnodeResult.CHANGED: 160, ZnodeResult.UNCHANGED: 80}
    made = [each for each in changed_at_ms(cluster.znodes.kazoo, cluster.znodes.ids()) if each >= begun_ms]
    assert len(made) == 160
    assert made[-1] - begun_ms >= 160 / 60 * 1000 - 50
    # In any second no more than the rate and, of each of the two at work, what it changes together.
    assert max(sum(begin <= each < begin + 1_000 for each in made) for begin in made) <= 60 + 2 * 30


def test_a_stop_lets_partitions_end_and_the_next_run_does_the_rest(spark: SparkSession, cluster: SealedCluster) -> None:
    job = job_of(spark, cluster, JobKind.SEAL, at_once=1)
    heard: list[PartitionResult] = []

    async def run() -> int:
        stop = asyncio.Event()

        def hear(result: PartitionResult) -> None:
            heard.append(result)
            stop.set()

        async with job.access.connected() as client:
            jobs = BulkJobs(spark, job, now_ms=lambda: 0)
            total = await jobs.prepare(client, tokens_a_partition=60)
            await jobs.run(client, heard=hear, stop=stop)
            return total

    assert asyncio.run(run()) == MANY
    assert [result.summary.total for result in heard] == [60]
    done = heard[0].summary.counts[ZnodeResult.CHANGED]
    assert 0 < done <= 60
    rest = run_bulk(spark, JobKind.SEAL, cluster.properties)
    assert rest.summary.counts[ZnodeResult.CHANGED] == 160 - done


def test_a_partition_that_fails_again_and_again_ends_the_run_and_what_was_done_is_told(
    spark: SparkSession, cluster: SealedCluster
) -> None:
    job = job_of(spark, cluster, JobKind.SEAL, at_once=1)
    heard: list[PartitionResult] = []

    def hear(result: PartitionResult) -> None:
        heard.append(result)
        cluster.current.write_text(OLD)  # from now on executors find another key

    async def run() -> None:
        async with job.access.connected() as client:
            jobs = BulkJobs(spark, job, now_ms=lambda: 0)
            await jobs.prepare(client, tokens_a_partition=120)
            await jobs.run(client, heard=hear, stop=asyncio.Event())

    with pytest.raises(BulkJobFailed, match="change none meanwhile; run it again to go on"):
        asyncio.run(run())
    assert [result.summary.total for result in heard] == [120] + [0] * ATTEMPTS
    assert all(open_sealed([NEW_KEY, OLD_KEY], data) for data in cluster.znodes.data().values() if is_sealed(data))


def test_executors_are_asked_for_their_keys_first(spark: SparkSession, cluster: SealedCluster) -> None:
    access = ClusterAccess.of_properties(cluster.properties)
    assert executors_ring(spark, access, 2) == (NEW_KEY.id, OLD_KEY.id)
    cluster.current.unlink()
    with pytest.raises(ConfigError, match=r"delegation.token.secret.key: .*cannot be read.* \(on "):
        run_bulk(spark, JobKind.SEAL, cluster.properties)


def test_a_spark_that_does_work_twice_is_refused(spark: SparkSession, cluster: SealedCluster) -> None:
    settings = spark.sparkContext._conf
    settings.set("spark.speculation", "TRUE")
    try:
        with pytest.raises(DuplicatedTasks, match="switch it off"):
            BulkJobs(spark, BulkJob(JobKind.SEAL, ClusterAccess.of_properties(cluster.properties)), now_ms=lambda: 0)
    finally:
        settings.set("spark.speculation", "false")


def test_the_cores_of_the_executors_are_counted(spark: SparkSession) -> None:
    assert slots(spark) == 2


def test_where_there_are_no_tokens_there_is_nothing_to_do(
    spark: SparkSession, zookeeper_connect: str, tmp_path: Path
) -> None:
    with sealed_cluster(zookeeper_connect, tmp_path) as empty:
        outcome = run_bulk(spark, JobKind.EXPIRE, empty.properties)
    assert (outcome.total, outcome.summary.total) == (0, 0)


def job_of(spark: SparkSession, cluster: SealedCluster, kind: JobKind, **fields: object) -> BulkJob:
    access = ClusterAccess.of_properties(cluster.properties)
    job = BulkJob(kind, access, key_ids=executors_ring(spark, access, 1))
    return replace(job, **fields)  # type: ignore[arg-type]  # fields of a job
