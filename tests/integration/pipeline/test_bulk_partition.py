"""What an executor does with a partition, called here as Spark would, on a real ZooKeeper."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_dt.bulk import TokenFilter, ZnodeResult
from kafka_dt.pipeline.bulk.cluster_access import ClusterAccess
from kafka_dt.pipeline.bulk.job import BulkJob, JobKind, PartitionResult, pack, unpack
from kafka_dt.pipeline.bulk.partition import ring_ids, work_on
from kafka_dt.zookeeper.sealing.sealed import open_sealed
from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode, TokenZnode
from tests.support.zookeeper.sealable import FOREIGN_KEY, NEW_KEY, OLD_KEY
from tests.support.zookeeper.sealed_cluster import OLD, SealedCluster, recent, sealed_cluster


@pytest.fixture
def cluster(zookeeper_connect: str, tmp_path: Path) -> Iterator[SealedCluster]:
    """Six tokens: plain, and sealed with the current key and the one before it."""
    with sealed_cluster(zookeeper_connect, tmp_path) as made:
        made.znodes.write([recent(number) for number in (0, 1)])
        made.znodes.write([recent(number) for number in (2, 3)], NEW_KEY)
        made.znodes.write([recent(number, owner="bob") for number in (4, 5)], OLD_KEY)
        yield made


def job_of(cluster: SealedCluster, kind: JobKind, **fields: object) -> BulkJob:
    return replace(BulkJob(kind, ClusterAccess.of_properties(cluster.properties)), **fields)  # type: ignore[arg-type]


def work(cluster: SealedCluster, kind: JobKind, **fields: object) -> PartitionResult:
    """Have all tokens worked on; job and result travel as Spark would have them."""
    job = pickle.loads(pickle.dumps(job_of(cluster, kind, **fields)))  # noqa: S301 - our own
    travelled = pickle.loads(pickle.dumps(work_on(job, pack(sorted(cluster.znodes.ids())))))  # noqa: S301
    assert isinstance(travelled, PartitionResult)
    return travelled


def counts(result: PartitionResult) -> tuple[int, int, int]:
    found = result.summary.counts
    return found[ZnodeResult.CHANGED], found[ZnodeResult.UNCHANGED], found[ZnodeResult.FAILED]


def test_rotate_seals_again_what_an_older_key_sealed_and_nothing_else(cluster: SealedCluster) -> None:
    before = cluster.znodes.data()
    result = work(cluster, JobKind.ROTATE)
    assert (counts(result), result.error, result.left, result.changes) == ((2, 4, 0), "", b"", ())
    after = cluster.znodes.data()
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"token-00004", "token-00005"}
    for name in changed:
        assert open_sealed([NEW_KEY], after[name]).plaintext == open_sealed([OLD_KEY], before[name]).plaintext
    assert counts(work(cluster, JobKind.ROTATE)) == (0, 6, 0)
    assert cluster.znodes.announced() == set()


def test_seal_unseal_and_verify_are_those_of_the_command_line(cluster: SealedCluster) -> None:
    assert counts(work(cluster, JobKind.SEAL, dry_run=True)) == (4, 2, 0)
    assert counts(work(cluster, JobKind.SEAL)) == (4, 2, 0)
    assert counts(work(cluster, JobKind.VERIFY)) == (0, 6, 0)
    result = work(cluster, JobKind.UNSEAL)
    assert counts(result) == (6, 0, 0)
    assert cluster.znodes.announced() == cluster.znodes.ids()
    assert cluster.znodes.sealed() == 0


def test_what_ends_is_counted_by_owner_and_its_news_are_handed_over(cluster: SealedCluster) -> None:
    cluster.znodes.put("garbage", b"{")
    result = work(cluster, JobKind.EXPIRE, selected=TokenFilter(owners=frozenset({"User:bob"})))
    assert (counts(result), result.by_owner, result.not_readable) == ((2, 5, 0), {"User:bob": 2}, 1)
    assert cluster.znodes.announced() == {"token-00004", "token-00005"}
    names = cluster.znodes.kazoo.get_children(TokenChangeZnode.PARENT)
    assert sorted(result.changes) == sorted(f"{TokenChangeZnode.PARENT}/{name}" for name in names)


def test_other_keys_than_those_of_the_job_leave_the_tokens_alone(cluster: SealedCluster) -> None:
    ring = ring_ids(ClusterAccess.of_properties(cluster.properties))
    assert ring == (NEW_KEY.id, OLD_KEY.id)
    assert counts(work(cluster, JobKind.VERIFY, key_ids=ring)) == (0, 6, 0)
    before = cluster.znodes.data()
    cluster.current.write_text(OLD)
    result = work(cluster, JobKind.SEAL, key_ids=ring)
    assert f"are {OLD_KEY.id}, and were {NEW_KEY.id}, {OLD_KEY.id} where the work began" in result.error
    assert sorted(unpack(result.left)) == sorted(before)
    assert cluster.znodes.data() == before


def test_a_key_that_is_not_there_is_told_and_nothing_is_done(cluster: SealedCluster) -> None:
    cluster.current.unlink()
    result = work(cluster, JobKind.SEAL)
    assert "cannot be read" in result.error
    assert (result.summary.total, len(unpack(result.left))) == (0, 6)


def test_a_zookeeper_that_is_away_is_told_and_nothing_is_lost(cluster: SealedCluster) -> None:
    away = {
        **cluster.properties,
        "zookeeper.connect": "127.0.0.1:1",
        "zookeeper.connection.timeout.ms": "300",
    }
    job = replace(job_of(cluster, JobKind.SEAL), access=ClusterAccess.of_properties(away))
    result = work_on(job, pack(["token-00000"]))
    assert result.error.startswith("cannot connect to ZooKeeper")
    assert unpack(result.left) == ["token-00000"]


def test_what_fails_is_told_as_by_the_command_line(cluster: SealedCluster) -> None:
    cluster.znodes.write([recent(6)], FOREIGN_KEY)
    cluster.znodes.put("moved", TokenZnode.encode(recent(0)))
    result = work(cluster, JobKind.SEAL)
    assert counts(result) == (4, 2, 2)
    assert {reason: failed.token_ids for reason, failed in result.summary.failures.items()} == {
        "its MAC fits none of the secret keys": ["token-00006"],
        "it names another token": ["moved"],
    }
