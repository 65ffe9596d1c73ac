"""The ingest from files, on a real Spark: what it reads, what it leaves out, and what a crash does not change."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import StructType

from kafka_dt.audit import AuditEvent
from kafka_dt.audit.encoding import encode
from kafka_dt.pipeline import ingest as ingest_package
from kafka_dt.pipeline.errors import NoSource, NoTable, TableNotShared
from kafka_dt.pipeline.ingest import Counts, FileSource, Ingest, Rules, TopicSource, sources
from kafka_dt.pipeline.table import Table
from kafka_dt.pipeline.table.delta import Conflict, DeltaFiles
from kafka_dt.pipeline.table.schema import EVENT_SCHEMA
from kafka_dt.pipeline.table.storage import Storage
from kafka_dt.pipeline.table.table import EVENTS_LAYOUT
from tests.support.spark.audit_lines import DAY_MS, NOON_MS, events, live_files, stored, write_file
from tests.support.spark.ingests import Ingests

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def ingests(spark: SparkSession, tmp_path: Path) -> Ingests:
    return Ingests(spark, tmp_path)


def other_ingests(ingests: Ingests, folder: Path, **options: Any) -> Ingests:
    """Make another ingest, of files of its own, into the same table."""
    folder.mkdir()
    other = Ingests(ingests.spark, folder, **options)
    other.table, other.path = ingests.table, ingests.path
    return other


@pytest.fixture(scope="module")
def ingested(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ingests:
    """A table of one batch: two events, three lines that are none, and nothing of a file that is open."""
    made = Ingests(spark, tmp_path_factory.mktemp("ingested"), batch_bytes=1_000_000)
    (made.source / "audit-9.jsonl.open").write_text("{")
    write_file(made.source / "rack-2", "audit", map(encode, events(1, first=1)))
    made.add(events(1), b"not json", b"", b'{"version":2}')
    assert made.run() == Counts(batches=1, lines=5, events=2, quarantined=3)
    return made


def ids(made: list[AuditEvent]) -> set[str]:
    return {each.id for each in made}


def reasons(ingests: Ingests) -> list[str]:
    return sorted(row["reason"] for row in stored(ingests.path, "quarantine"))


def test_new_files_are_read_once_and_by_their_day(ingests: Ingests) -> None:
    first, second = events(3), events(2, first=3, time_ms=NOON_MS + DAY_MS // 2 - 1)
    ingests.now_ms += DAY_MS
    ingests.add(first)
    ingests.add(second)
    assert ingests.run() == Counts(batches=2, lines=5, events=5)
    assert ingests.run() == Counts()
    ingests.add(third := events(1, first=5))
    assert ingests.run() == Counts(batches=1, lines=1, events=1)
    assert ingests.stored() == ids([*first, *second, *third])
    assert {str(row["date"]) for row in stored(ingests.path)} == {"2026-01-01", "2026-01-02"}
    assert {row["cluster_id"] for row in stored(ingests.path)} == {"here"}


def test_instants_are_in_files_as_all_tools_know_them(ingested: Ingests) -> None:
    file = min(live_files(ingested.path))
    found = pyarrow.parquet.ParquetFile(file)
    assert str(found.schema_arrow.field("time").type) == "timestamp[us, tz=UTC]"
    place = found.schema_arrow.get_field_index("time")
    statistics = found.metadata.row_group(0).column(place).statistics
    assert statistics.min.timestamp() * 1000 == NOON_MS


def test_all_of_a_table_is_for_its_owner_alone(ingested: Ingests) -> None:
    made = [ingested.path, *ingested.path.rglob("*")]
    assert {"_checkpoints", "events", "_delta_log", "quarantine"} <= {path.name for path in made}
    assert [str(path) for path in made if path.stat().st_mode & 0o077] == []


def test_open_files_are_left_alone_and_those_of_folders_are_read(ingested: Ingests) -> None:
    assert ingested.stored() == ids(events(2))
    assert {row["source"].rpartition("/")[2] for row in stored(ingested.path, "quarantine")} == {"audit-1.jsonl"}


def test_what_is_no_event_is_kept_with_its_reason_and_its_file(ingested: Ingests) -> None:
    rows = {row["raw"]: row for row in stored(ingested.path, "quarantine")}
    assert {raw: row["reason"] for raw, row in rows.items()} == {
        "not json": "not_json",
        "": "not_json",
        '{"version":2}': "unknown_version",
    }
    assert rows["not json"]["source"].endswith("/nodes/audit-1.jsonl")
    assert ingested.table.quarantine(ingested.spark).count() == 3


def test_late_is_what_is_far_behind_the_newest_event_of_earlier_batches(ingests: Ingests) -> None:
    ingests.rules = Rules(late_after_ms=DAY_MS)
    old, new = events(1, time_ms=NOON_MS - 2 * DAY_MS), events(1, first=1)
    ingests.add(old, new)
    ingests.run()
    assert ingests.stored() == ids([*old, *new])
    ingests.add(
        events(1, first=2, time_ms=NOON_MS - DAY_MS - 1), on_time := events(1, first=3, time_ms=NOON_MS - DAY_MS)
    )
    ingests.run()
    assert ingests.stored() == ids([*old, *new, *on_time])
    assert reasons(ingests) == ["late"]


def test_without_a_limit_nothing_is_late(ingests: Ingests) -> None:
    ingests.rules = Rules(late_after_ms=None)
    for age in (0, 300):
        ingests.add(events(1, first=age, time_ms=NOON_MS - age * DAY_MS))
    ingests.run()
    assert len(ingests.stored()) == 2


def test_an_event_from_the_future_moves_nothing(ingests: Ingests) -> None:
    ingests.rules = Rules(late_after_ms=DAY_MS, future_after_ms=DAY_MS)
    ingests.add(events(1, time_ms=NOON_MS + 100 * DAY_MS))
    ingests.add(made := events(1, first=1))
    ingests.run()
    assert ingests.stored() == ids(made)
    assert reasons(ingests) == ["from_the_future"]


def test_an_event_that_comes_again_is_there_once(ingests: Ingests) -> None:
    made = events(4)
    ingests.add(made[:2], made[:2])
    ingests.add(made[1:3])
    # Another node's event of the same instant is another one.
    ingests.add(made[3:], others := [replace(made[0], id="0ff1ce-0")])
    assert ingests.run() == Counts(batches=3, lines=8, events=5, duplicates=3)
    assert ingests.stored() == ids([*made, *others])


def test_the_files_can_be_read_anew_into_the_same_table(ingests: Ingests) -> None:
    ingests.add(made := events(3))
    ingests.run()
    # An operator deletes the checkpoints to begin again: batches count from 0, and differ from those done before.
    Table(str(ingests.path)).storage(ingests.spark).delete("_checkpoints")
    ingests.add(more := events(1, first=3))
    assert ingests.run() == Counts(batches=2, lines=4, events=1, duplicates=3)
    assert ingests.stored() == ids([*made, *more])


def test_many_small_files_become_one_and_go_when_they_were_kept_long_enough(ingests: Ingests) -> None:
    ingests.rules = Rules(compact_at=1, keep_replaced_ms=0)
    made = events(3)
    for each in reversed(made):
        ingests.add(each, b"broken")
    counts = ingests.run()
    assert counts is not None
    # The third batch finds two files, of the events and of the quarantine.
    assert counts.compacted_files == 4
    assert ingests.stored() == ingests.seen() == ids(made)
    assert reasons(ingests) == ["not_json"] * 3
    for part in ("events", "quarantine"):
        assert set((ingests.path / part).glob("*.parquet")) == live_files(ingests.path, part)
        assert len(live_files(ingests.path, part)) == 2


def test_a_crash_at_any_step_of_a_batch_loses_nothing_and_doubles_nothing(ingests: Ingests) -> None:
    ingests.add(first := events(2), b"broken")
    # Before the limits are noted; before they are kept; before the events; before these are kept.
    for change, (bad, good) in ((1, (0, 0)), (2, (0, 0)), (3, (1, 0)), (4, (1, 2))):
        assert ingests.run(crash_at=change) is None
        assert (len(reasons(ingests)), len(ingests.stored())) == (bad, good)
    ingests.add(second := events(1, first=2), b"broken")
    assert ingests.run() == Counts(batches=1, lines=2, events=1, quarantined=1)
    assert ingests.stored() == ingests.seen() == ids([*first, *second])
    assert reasons(ingests) == ["not_json"] * 2


def test_a_batch_that_is_repeated_judges_its_lines_as_before(ingests: Ingests, tmp_path: Path) -> None:
    ingests.rules = Rules(late_after_ms=DAY_MS, future_after_ms=DAY_MS)
    ahead, good = events(1, time_ms=NOON_MS + 2 * DAY_MS), events(1, first=1)
    ingests.add(ahead, good)
    # Limits, what keeps all notes on the disk, the quarantine: it ends before the events.
    assert ingests.run(crash_at=4) is None
    assert (reasons(ingests), ingests.stored()) == (["from_the_future"], set())
    # Meanwhile another ingest brings newer events, and time goes by.
    other = other_ingests(ingests, tmp_path / "other", now_ms=NOON_MS + 3 * DAY_MS)
    other.add(newer := events(1, first=2, time_ms=NOON_MS + 3 * DAY_MS))
    other.run()
    ingests.now_ms += 3 * DAY_MS
    assert ingests.run() == Counts(batches=1, lines=2, events=1, quarantined=1)
    assert reasons(ingests) == ["from_the_future"]
    assert ingests.stored() == ids([*good, *newer])


def test_what_a_batch_has_written_is_on_the_disk_before_spark_notes_that_it_is_done(
    ingests: Ingests, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    sync = os.fsync

    def noted(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        assert not list(ingests.path.glob("_checkpoints/*/commits/0"))
        if path.parent.name in {"limits", "offsets"}:
            assert not list(ingests.path.glob("*/_delta_log/*1.json"))
        synced.add(str(path.relative_to(ingests.path)) if path.is_relative_to(ingests.path) else "")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    ingests.add(events(1), b"broken")
    ingests.run()
    for part, version in (("events", 1), ("quarantine", 0)):
        assert f"{part}/_delta_log/{version:020}.json" in synced
        assert {str(file.relative_to(ingests.path)) for file in live_files(ingests.path, part)} <= synced
    for note in ("limits", "offsets", "sources/0"):
        assert any(name.endswith(f"/{note}/0") for name in synced)


def test_a_reader_beside_a_running_ingest_sees_whole_batches(ingests: Ingests) -> None:
    ingests.rules = Rules(compact_at=2)
    batches = [events(3, first=10 * number) for number in range(3)]
    ingests.add(batches[0])
    ingests.run()
    for made in batches[1:]:
        ingests.add(made)
    with ThreadPoolExecutor(1) as executor:
        running = executor.submit(ingests.ingest().run)
        shown: list[set[str]] = []
        while not running.done() or not shown:
            shown.append(ingests.seen())
        assert running.result().events == 6
    for seen in shown:
        assert seen == {each for made in map(ids, batches) if made & seen for each in made}
    assert [*map(len, shown)] == sorted(map(len, shown))


def test_two_ingests_into_a_table_at_once_have_every_event_once(ingests: Ingests, tmp_path: Path) -> None:
    other = other_ingests(ingests, tmp_path / "other")
    made = events(5)
    for number in range(3):
        ingests.add(made[number : number + 2], b"broken")
        other.add(made[number + 1 : number + 3], b"broken")
    with ThreadPoolExecutor(2) as executor:
        counts = [running.result() for running in [executor.submit(each.ingest().run) for each in (ingests, other)]]
    assert sum(each.lines for each in counts) == 18
    assert ingests.stored() == ids(made)
    assert reasons(ingests) == ["not_json"] * 6


def test_what_rests_on_the_table_is_not_appended_when_another_writer_was_first(
    ingests: Ingests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second writer reads the table, and waits while the third one appends: Spark waits at the pipes it opens."""
    monkeypatch.setattr(Storage, "turn", lambda _storage: nullcontext())  # as on HDFS
    ingests.add(events(1))
    ingests.run()
    files = ingests.table.event_files(ingests.spark)
    known = files.latest().select("id")
    pipes = tmp_path / "has-read", tmp_path / "goes-on"
    for pipe in pipes:
        os.mkfifo(pipe)
    waits = " AND ".join(f"java_method('scala.io.Source', 'fromFile', '{pipe}', 'UTF-8') IS NOT NULL" for pipe in pipes)
    second, third = (
        ingests.spark.createDataFrame([(made.id,)], "id string").join(known, "id", "left_anti")
        for made in events(2, first=1)
    )
    with ThreadPoolExecutor(1) as executor:
        running = executor.submit(files.append, second.where(F.expr(waits)), "second", 0)
        pipes[0].write_text("")
        files.append(third, "third", 0)
        pipes[1].write_text("")
        with pytest.raises(Conflict):
            running.result()
    assert ingests.stored() == {events(1)[0].id, events(1, first=2)[0].id}


def test_writers_to_a_disk_of_one_machine_take_turns(ingests: Ingests) -> None:
    files = ingests.table.event_files(ingests.spark)
    with ThreadPoolExecutor(1) as executor:
        with Storage(ingests.spark, str(ingests.path / "events")).turn():
            making = executor.submit(files.create)
            with pytest.raises(TimeoutError):
                making.result(timeout=1)
        making.result()
    assert files.exists()


def test_events_of_two_clusters_with_the_same_id_are_two(ingests: Ingests, tmp_path: Path) -> None:
    other = other_ingests(ingests, tmp_path / "other", cluster="there")
    (made,) = events(1)
    old = events(1, first=1, time_ms=NOON_MS - 30 * DAY_MS)
    ingests.add(made)
    other.add(old)
    other.add(made)
    for each in (ingests, other):
        each.run()
    found = sorted((row["cluster_id"], row["id"]) for row in stored(ingests.path))
    # What is old in one cluster is not late in another.
    assert found == [("here", made.id), ("there", made.id), ("there", old[0].id)]
    assert reasons(ingests) == []


def test_topics_of_the_same_name_in_two_clusters_have_offsets_of_their_own(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {"east:9092": "c1", "west:9092": "c2"}
    monkeypatch.setattr(sources, "_ask_cluster_id", lambda _spark, properties: ids[properties["bootstrap.servers"]])
    names = {TopicSource("kafka-dt-audit", servers).checkpoint(spark) for servers in ids}
    assert len(names) == 2


def test_a_table_of_an_earlier_release_gets_the_columns_of_this_one(ingests: Ingests) -> None:
    fewer = StructType([each for each in EVENT_SCHEMA if each.name != "limit"])
    storage = ingests.table.storage(ingests.spark)
    files = DeltaFiles(ingests.spark, storage.uri("events"), replace(EVENTS_LAYOUT, schema=fewer))
    files.append(files.latest(), "earlier", 0)
    assert [row.limit for row in ingests.table.events(ingests.spark).collect()] == []
    ingests.add(replace(*events(1), limit="kafka.dt.tokens.per.owner"))
    ingests.run()
    assert [row["limit"] for row in stored(ingests.path)] == ["kafka.dt.tokens.per.owner"]
    # The earlier release goes on writing.
    files.append(files.latest().select(*fewer.names), "earlier", 1)
    assert [row.limit for row in ingests.table.events(ingests.spark).orderBy(F.desc("limit")).collect()][1] is None


def test_what_executors_write_to_disks_of_their_own_is_not_lost(
    ingests: Ingests, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingests.add(events(2))
    with monkeypatch.context() as patch:
        patch.setattr(ingest_package, "runs_here", lambda _spark: False)
        patch.setattr(Storage, "names", lambda _storage, _name: ["_probe/_SUCCESS"])
        with pytest.raises(TableNotShared, match="all machines of the cluster share"):
            ingests.run()
        assert not (ingests.path / "events").exists()
    assert ingests.run() == Counts(batches=1, lines=2, events=2)


def test_a_folder_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    source = FileSource(str(tmp_path / "gone"))
    with pytest.raises(NoSource, match="gone cannot be ingested from: there is no such directory"):
        Ingest(spark, Table(str(tmp_path / "table")), source, now_ms=lambda: NOON_MS).run()


def test_a_table_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoTable, match="is no table of audit events"):
        Table(str(tmp_path)).events(spark)
