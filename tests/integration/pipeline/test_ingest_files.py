"""The ingest from files, on a real Spark: what it reads, what it leaves out, and what a crash does not change."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest

from kafka_dt.audit import AuditEvent
from kafka_dt.pipeline.errors import NoSource, NoTable, TableInUse, TableNotShared
from kafka_dt.pipeline.ingest import Counts, FileSource, Ingest, Rules
from kafka_dt.pipeline.ingest import batches as ingest_staging
from kafka_dt.pipeline.table import Table
from kafka_dt.pipeline.table.journal import STAGING, Journal
from kafka_dt.pipeline.table.parquet import Compaction, write_parquet
from kafka_dt.pipeline.table.schema import EVENT_SCHEMA
from tests.support.spark.audit_lines import DAY_MS, NOON_MS, events, stored, write_file
from tests.support.spark.ingests import Crash, Ingests, crashing_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def ingests(spark: SparkSession, tmp_path: Path) -> Ingests:
    return Ingests(spark, tmp_path)


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
    days = {path.parent.name: path for path in (ingests.path / "events").rglob("*.parquet")}
    assert set(days) == {"date=2026-01-01", "date=2026-01-02"}


def test_instants_are_in_files_as_all_tools_know_them(ingests: Ingests) -> None:
    ingests.add(events(2))
    ingests.run()
    (file,) = (ingests.path / "events").rglob("*.parquet")
    found = pyarrow.parquet.ParquetFile(file)
    assert str(found.schema_arrow.field("time").type) == "timestamp[us, tz=UTC]"
    place = found.schema_arrow.get_field_index("time")
    statistics = found.metadata.row_group(0).column(place).statistics
    assert statistics.min.timestamp() * 1000 == NOON_MS


def test_all_of_a_table_is_for_its_owner_alone(ingests: Ingests) -> None:
    ingests.add(events(1), b"not json")
    ingests.run()
    made = [ingests.path, *ingests.path.rglob("*")]
    assert {"_lock", "_checkpoints", "events", "quarantine"} <= {path.name for path in made}
    assert [str(path) for path in made if path.stat().st_mode & 0o077] == []


def test_open_files_are_left_alone_and_those_of_folders_are_read(ingests: Ingests) -> None:
    (ingests.source / "audit-9.jsonl.open").write_text("{")
    ingests.add(first := events(1))
    write_file(ingests.source / "rack-2", "audit", [])
    ingests.run()
    assert ingests.stored() == ids(first)
    assert reasons(ingests) == []


def test_what_is_no_event_is_kept_with_its_reason_and_its_file(ingests: Ingests) -> None:
    ingests.add(events(1), b"not json", b"", b'{"version":2}')
    assert ingests.run() == Counts(batches=1, lines=4, events=1, quarantined=3)
    rows = {row["raw"]: row for row in stored(ingests.path, "quarantine")}
    assert {raw: row["reason"] for raw, row in rows.items()} == {
        "not json": "not_json",
        "": "not_json",
        '{"version":2}': "unknown_version",
    }
    assert rows["not json"]["source"].endswith("/nodes/audit-1.jsonl")
    assert ingests.table.quarantine(ingests.spark).count() == 3


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
    ingests.add(made[3:])
    assert ingests.run() == Counts(batches=3, lines=7, events=4, duplicates=3)
    assert ingests.stored() == ids(made)


def test_the_files_can_be_read_anew_into_the_same_table(ingests: Ingests) -> None:
    ingests.add(made := events(3))
    ingests.run()
    # An operator deletes the checkpoints to begin again: batches count from 0, and differ from those done before.
    Table(str(ingests.path)).storage(ingests.spark).delete("_checkpoints")
    ingests.add(more := events(1, first=3))
    assert ingests.run() == Counts(batches=2, lines=4, events=1, duplicates=3)
    assert ingests.stored() == ids([*made, *more])


def test_many_small_files_of_a_day_become_one(ingests: Ingests) -> None:
    ingests.rules = Rules(compact_at=2)
    made = events(3)
    for each in reversed(made):
        ingests.add(each, b"broken")
    counts = ingests.run()
    assert counts is not None
    # After the second batch two files of the day, after the third that one and the next; and so in quarantine.
    assert counts.compacted_files == 8
    assert ingests.stored() == ingests.seen() == ids(made)
    assert len(list((ingests.path / "events" / "date=2026-01-01").glob("*.parquet"))) == 1
    assert [row["id"] for row in stored(ingests.path)] == [each.id for each in made]
    assert len(list((ingests.path / "quarantine").glob("*.parquet"))) == 1
    assert reasons(ingests) == ["not_json"] * 3


def test_merged_files_are_kept_for_those_who_read_them(ingests: Ingests) -> None:
    ingests.rules = Rules(compact_at=2, keep_replaced_ms=60_000)
    ingests.add(made := events(1))
    ingests.run()
    reader = ingests.table.events(ingests.spark)
    ingests.add(more := events(1, first=1))
    ingests.run()
    assert {row.id for row in reader.collect()} == ids(made)
    assert len(stored(ingests.path)) == 4
    assert ingests.seen() == ids([*made, *more])
    ingests.now_ms += 60_000
    ingests.add(last := events(1, first=2))
    ingests.run()
    assert ingests.seen() == ids([*made, *more, *last])


def test_a_crash_at_any_step_of_a_batch_loses_nothing_and_doubles_nothing(ingests: Ingests) -> None:
    ingests.rules = Rules(compact_at=0)
    ingests.now_ms += 2 * DAY_MS
    batches: list[list[AuditEvent]] = []

    def add_batch() -> None:
        batches.append(events(2, first=10 * len(batches), step_ms=DAY_MS // 2))
        ingests.add(batches[-1], b"broken")

    add_batch()
    ingests.run()
    add_batch()
    steps = ingests.changes()
    assert steps > 8
    shown = ingests.seen()
    # Each run gets one step further into a batch than the last; it begins with what that one has left.
    for step in range(1, steps + 1):
        add_batch()
        with crashing_at(step), suppress(Crash):
            Journal(ingests.table.storage(ingests.spark)).roll_forward(ingests.now_ms)
        assert ingests.run(crash_at=step, mended=True) is None
        before, shown = shown, ingests.seen()
        assert before <= shown
        assert [made for made in batches if ids(made) & shown] == [made for made in batches if ids(made) <= shown]
    ingests.run()
    assert ingests.stored() == ingests.seen() == {each.id for made in batches for each in made}
    assert reasons(ingests) == ["not_json"] * len(batches)
    assert_tidy(ingests)


def test_what_a_change_is_made_of_is_on_the_disk_before_it_is_prepared(
    ingests: Ingests, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingests.rules = Rules(compact_at=2)
    synced: list[list[str]] = [[]]
    sync = os.fsync

    def noted(descriptor: int) -> None:
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        synced[-1].append(path.removeprefix(f"{ingests.path}/"))
        if path.endswith(".prepared.partial"):
            synced.append([])
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    for number in range(2):
        ingests.add(events(1, first=number))
    ingests.run()
    first, second, compacted, _ = synced
    for number, before in enumerate((first, second)):
        assert any(name.endswith(".parquet") and f"{number:012d}/events/date=" in name for name in before)
        for part in ("offsets", "sources/0"):
            assert any(name.endswith(f"/{part}/{number}") for name in before)
    assert any(name.endswith(".parquet") and "/compaction." in name for name in compacted)
    assert "_journal" in second


def test_a_crash_at_any_step_of_a_compaction_loses_nothing_and_doubles_nothing(
    ingests: Ingests, tmp_path: Path
) -> None:
    ingests.rules = Rules(compact_at=0)
    for number in range(3):
        ingests.add(events(1, first=number))
    ingests.run()
    before = tmp_path / "before"
    shutil.copytree(ingests.path, before)
    wanted = ingests.stored()
    for step in count(1):
        shutil.rmtree(ingests.path)
        shutil.copytree(before, ingests.path)
        with crashing_at(step) as changes, suppress(Crash):
            compact(ingests)
        assert ingests.seen() == wanted
        Journal(ingests.table.storage(ingests.spark)).roll_forward(NOON_MS)
        assert ingests.stored() == ingests.seen() == wanted
        assert_tidy(ingests)
        if changes() < step:
            break
    assert step > 8
    assert len(list(ingests.path.rglob("events/*/*.parquet"))) == 1


def compact(ingests: Ingests) -> None:
    storage = ingests.table.storage(ingests.spark)
    compaction = Compaction(ingests.spark, storage, Journal(storage), at=3, kept_ms=0, now_ms=lambda: NOON_MS)
    compaction.compact("events/date=2026-01-01", EVENT_SCHEMA, "time")


def assert_tidy(ingests: Ingests) -> None:
    """Nothing is left of what was under way."""
    assert not list((ingests.path / STAGING).glob("*"))
    assert Journal(ingests.table.storage(ingests.spark)).view().hidden == frozenset()


def test_a_reader_beside_a_running_ingest_sees_whole_batches(ingests: Ingests) -> None:
    ingests.rules = Rules(compact_at=2, keep_replaced_ms=60_000)
    batches = [events(3, first=10 * number) for number in range(4)]
    ingests.add(batches[0])
    ingests.run()
    for made in batches[1:]:
        ingests.add(made)
    with ThreadPoolExecutor(1) as executor:
        running = executor.submit(ingests.ingest().run)
        shown: list[set[str]] = []
        while not running.done() or not shown:
            shown.append(ingests.seen())
        assert running.result().events == 9
    for seen in shown:
        assert seen == {each for made in map(ids, batches) if made & seen for each in made}
    assert [*map(len, shown)] == sorted(map(len, shown))


def test_only_one_ingest_writes_to_a_table(ingests: Ingests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_dt.pipeline.table.storage.LOCK_WAIT_S", 0.0)
    ingests.add(events(1))
    lock = ingests.table.storage(ingests.spark).lock()
    with pytest.raises(TableInUse, match=r"another ingest writes to .*table; stop it first"):
        ingests.run()
    lock.release()
    assert ingests.run() is not None


@pytest.mark.parametrize("part", ["events", "quarantine"])
def test_what_executors_write_to_disks_of_their_own_is_not_lost(
    ingests: Ingests, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingests.add(events(2, first=0), b"broken")
    with monkeypatch.context() as patch:

        def write_elsewhere(rows: DataFrame, uri: str, *partitioned_by: str) -> None:
            write_parquet(rows, uri, *partitioned_by)
            if uri.endswith(part):
                for file in Path(uri.removeprefix("file:")).rglob("*.parquet"):
                    file.unlink()

        patch.setattr(ingest_staging, "write_parquet", write_elsewhere)
        with pytest.raises(TableNotShared, match="all machines of the cluster share"):
            ingests.run()
    assert ingests.run() == Counts(batches=1, lines=3, events=2, quarantined=1)
    assert len(ingests.seen()) == 2


def test_a_folder_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    source = FileSource(str(tmp_path / "gone"))
    with pytest.raises(NoSource, match="gone cannot be ingested from: there is no such directory"):
        Ingest(spark, Table(str(tmp_path / "table")), source, now_ms=lambda: NOON_MS).run()


def test_a_table_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoTable, match="is no table of audit events"):
        Table(str(tmp_path)).events(spark)


def test_the_event_of_another_node_with_the_same_time_is_another_one(ingests: Ingests) -> None:
    (made,) = events(1)
    ingests.add(made)
    ingests.add(replace(made, id="0ff1ce-0"))
    ingests.run()
    assert ingests.stored() == {made.id, "0ff1ce-0"}
