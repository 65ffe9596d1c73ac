"""The lines of a batch as staged files: the events that are new, and what goes to quarantine.

    staged = stage(lines, limits, storage, "_staging/files-1a2b.7", now_ms)
    fresh = without_known(staged, table.events(spark), storage)

Nearly every batch is read once and written once: an observation tells whether lines have to go to quarantine, and the
ids of the staged events, a few bytes each, whether the table has one of them already. Only if so the events are
written again, without those. They also tell whether all that executors wrote is there: on a cluster whose machines do
not share the files of the table, it is not.

LineLimits: an event that comes again is known by its id and its time; it is not looked for under another time.

Source: Spark, `Dataset.observe`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.errors import TableNotShared
from kafka_dt.pipeline.ingest.lines import LineLimits, check_lines, good_events, quarantined_lines
from kafka_dt.pipeline.table.parquet import parquet_files, write_parquet
from kafka_dt.pipeline.table.schema import DATE, EVENT_SCHEMA, instant
from kafka_dt.pipeline.table.table import EVENTS, QUARANTINE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.table.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The files of a batch that are not yet part of the table."""

    directory: str
    """Of the batch."""
    events_directory: str
    """Of its events, a directory a day in it."""
    events: int
    quarantined: int
    from_ms: int
    """The oldest instant of its events."""
    to_ms: int
    """The newest one, 0 without events."""

    @property
    def quarantine_directory(self) -> str:
        """Where what goes to quarantine is, if anything does."""
        return f"{self.directory}/{QUARANTINE}"


def stage(lines: DataFrame, limits: LineLimits, storage: Storage, directory: str, now_ms: int) -> Staged:
    """Write what the lines say.

    Args:
        lines: of the batch.
        limits: what is too late and too early.
        storage: the files of the table.
        directory: where the files shall be; there are none yet.
        now_ms: the time.
    """
    checked = check_lines(lines, limits)
    good = F.col("reason").isNull()
    time_ms = F.when(good, F.col("event.time"))
    observation = Observation()
    # No filter is pushed below an observation: every line would be read once for the filter, and again.
    observed = checked.observe(
        observation,
        F.count_if(good).alias("events"),
        F.count_if(~good).alias("quarantined"),
        F.min(time_ms).alias("from_ms"),
        F.max(time_ms).alias("to_ms"),
    )
    write_parquet(good_events(observed), storage.uri(f"{directory}/{EVENTS}"), DATE)
    seen: dict[str, Any] = observation.get
    staged = Staged(
        directory=directory,
        events_directory=f"{directory}/{EVENTS}",
        events=seen["events"],
        quarantined=seen["quarantined"],
        from_ms=seen["from_ms"] or 0,
        to_ms=seen["to_ms"] or 0,
    )
    if staged.quarantined:
        write_parquet(quarantined_lines(checked, now_ms), storage.uri(staged.quarantine_directory))
    return staged


def without_known(staged: Staged, known: DataFrame, storage: Storage) -> Staged:
    """Give what is staged without the events that are known, and each of the others once.

    Args:
        staged: what `stage` has written.
        known: the events of the table.
        storage: its files.

    Raises:
        TableNotShared: not all that was written is there.
    """
    if staged.quarantined and not parquet_files(storage, staged.quarantine_directory):
        raise TableNotShared(storage.root)
    if not staged.events:
        return staged
    spark = known.sparkSession
    new = spark.read.schema(EVENT_SCHEMA).parquet(storage.uri(staged.events_directory))
    there = known.where(_between(staged.from_ms, staged.to_ms)).select("id")
    # A hash is shorter; two ids that share one are told apart below.
    key = F.xxhash64("id").alias("key")
    keys = new.select(key, F.lit(1).alias("new")).union(there.select(key, F.lit(0)))
    times = keys.groupBy("key").agg(F.count("*").alias("times"), F.sum("new").alias("new"))
    found = times.agg(F.sum("new").alias("new"), F.count_if(F.expr("times > 1 AND new > 0")).alias("repeated")).first()
    if found is None or found["new"] != staged.events:
        raise TableNotShared(storage.root)
    if not found["repeated"]:
        return staged
    directory = f"{staged.directory}/fresh"
    fresh = new.dropDuplicates(["id"]).join(there, "id", "left_anti").select(*EVENT_SCHEMA.names)
    write_parquet(fresh, storage.uri(directory), DATE)
    events = spark.read.schema(EVENT_SCHEMA).parquet(storage.uri(directory)).count()
    return replace(staged, events_directory=directory, events=events)


def _between(from_ms: int, to_ms: int) -> Column:
    """Select instants, and the directories in which they can be."""
    first, last = (datetime.fromtimestamp(each / 1000, UTC).date() for each in (from_ms, to_ms))
    lowest, highest = (instant(F.lit(each).cast("bigint")) for each in (from_ms, to_ms))
    return F.col(DATE).between(F.lit(first), F.lit(last)) & F.col("time").between(lowest, highest)
