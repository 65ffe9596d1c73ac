"""One batch of the ingest: lines become staged files, and these become part of the table in one change.

Exactly once, whenever the process ends: Spark runs a batch again, with the same lines, until it has noted in its
checkpoint that the batch is done. A batch that ended before its change was prepared has left staged files only; one
whose change was prepared is rolled forward at the next start, and is found in the journal when it is run again. Before
a change is prepared, its files and Spark's notes about the lines of the batch are on the disk, so the same holds if the
machine stops.

Nearly every batch is read once and written once: an observation tells whether lines have to go to quarantine, and the
ids of the staged events whether the table has one of them already. Only then the events are written again, without
those. The ids also tell whether all that executors wrote is there: on a cluster whose machines do not share the files
of the table, it is not.

Limits: an event that comes again is known by its id and its time; it is not looked for under another time.

Source: Spark, "Structured Streaming Programming Guide", foreachBatch; `Dataset.observe`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.errors import TableNotShared
from kafka_dt.pipeline.ingest.lines import LineLimits, check_lines, good_events, quarantined_lines
from kafka_dt.pipeline.table.journal import STAGING, Change, Journal
from kafka_dt.pipeline.table.parquet import Compaction, parquet_files, staged_files, write_parquet
from kafka_dt.pipeline.table.schema import DATE, DAY_MS, EVENT_SCHEMA, QUARANTINE_SCHEMA, Reason, instant
from kafka_dt.pipeline.table.table import CHECKPOINTS, EVENTS, QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

    from kafka_dt.pipeline.table import Table
    from kafka_dt.pipeline.table.storage import Storage

_HOUR_MS: Final = 3_600_000
_NEWEST: Final = "newest_ms"
"""In the record of a batch: the newest instant of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The limits that the ingest keeps."""

    late_after_ms: int | None = 7 * DAY_MS
    """How far behind the newest event of the table an event may be; None = any distance."""
    future_after_ms: int = _HOUR_MS
    """How far ahead of the clock of this machine an event may be."""
    compact_at: int = 16
    """How many small files of a day are merged; 0 = none are."""
    keep_replaced_ms: int = 0
    """How long merged files are kept for readers that have listed them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts of an ingest."""

    batches: int = 0
    lines: int = 0
    """Read."""
    events: int = 0
    """New in the table."""
    quarantined: int = 0
    late: int = 0
    """Of those in quarantine, the events that were too far behind."""
    duplicates: int = 0
    """Events that were there already, or came twice."""
    compacted_files: int = 0
    """Files that were merged into others."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})


class Stopped(Exception):
    """No further batch is begun."""


class BatchWriter:
    """Is called by Spark with each batch; `source` is the name of the checkpoint."""

    def __init__(
        self,
        spark: SparkSession,
        table: Table,
        source: str,
        rules: Rules,
        *,
        now_ms: Callable[[], int],
        heard: Callable[[Counts], None],
    ) -> None:
        self._spark = spark
        self._table = table
        self._source = source
        self._rules = rules
        self._now_ms = now_ms
        self._heard = heard
        self._storage = table.storage(spark)
        self._journal = Journal(self._storage)
        self._compaction = Compaction(
            spark, self._storage, self._journal, at=rules.compact_at, kept_ms=rules.keep_replaced_ms, now_ms=now_ms
        )
        self._closed = False
        self._idle = threading.Event()
        self._idle.set()
        self.failure: BaseException | None = None
        """The error of a batch that failed."""

    def close(self) -> None:
        """Begin no further batch."""
        self._closed = True

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait for the end of the batch under way; False if it has not ended by then."""
        return self._idle.wait(timeout_s)

    def __call__(self, lines: DataFrame, batch: int) -> None:
        """Do a batch."""
        self._idle.clear()
        try:
            self._do(lines, batch)
        except BaseException as failure:
            # Spark makes one text of it, which does not tell what it was.
            self.failure = failure
            raise
        finally:
            self._idle.set()

    def _do(self, lines: DataFrame, batch: int) -> None:
        if self._closed:
            raise Stopped
        series = self._series()
        if batch <= self._journal.last(series):
            return
        now_ms = self._now_ms()
        newest_ms = max((record[_NEWEST] for record in self._journal.records() if _NEWEST in record), default=0)
        name = f"{series}.{batch:012d}"
        directory = f"{STAGING}/{name}"
        self._storage.delete(directory)
        staged = stage(lines, self._limits(now_ms, newest_ms), self._storage, directory, now_ms)
        fresh = without_known(staged, self._table.events(self._spark), self._storage)
        for each in (directory, f"{CHECKPOINTS}/{self._source}"):
            self._storage.sync(each)
        change = Change(adds=self._places(fresh, name), record={_NEWEST: max(newest_ms, fresh.to_ms)})
        self._journal.carry_out(series, batch, change, now_ms)
        self._storage.delete(directory)
        self._heard(
            Counts(
                batches=1,
                lines=staged.events + staged.quarantined,
                events=fresh.events,
                quarantined=staged.quarantined,
                late=staged.late,
                duplicates=staged.events - fresh.events,
                compacted_files=self._compact({place.rpartition("/")[0] for _, place in change.adds}),
            )
        )

    def _series(self) -> str:
        """Name the checkpoint, as it is told from one that had its name before it was deleted."""
        metadata = self._storage.read_document(f"{CHECKPOINTS}/{self._source}/metadata")
        return f"{self._source}-{metadata['id']}"

    def _limits(self, now_ms: int, newest_ms: int) -> LineLimits:
        late_after_ms = self._rules.late_after_ms
        return LineLimits(
            latest_ms=now_ms + self._rules.future_after_ms,
            earliest_ms=0 if late_after_ms is None else max(0, newest_ms - late_after_ms),
        )

    def _places(self, staged: Staged, name: str) -> tuple[tuple[str, str], ...]:
        days = self._storage.directories(staged.events_directory)
        return (
            *(
                file
                for day in days
                for file in staged_files(self._storage, day, f"{EVENTS}/{day.rpartition('/')[2]}", name)
            ),
            *staged_files(self._storage, staged.quarantine_directory, QUARANTINE, name),
        )

    def _compact(self, directories: set[str]) -> int:
        files = 0
        for directory in sorted(directories):
            if directory == QUARANTINE:
                files += self._compaction.compact(directory, QUARANTINE_SCHEMA, "ingest_time")
            else:
                files += self._compaction.compact(directory, EVENT_SCHEMA, "time")
        return files


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """The files of a batch that are not yet part of the table."""

    directory: str
    """Of the batch."""
    events_directory: str
    """Of its events, a directory a day in it."""
    events: int
    quarantined: int
    late: int
    """Of those in quarantine, the events that are too far behind."""
    from_ms: int
    """The oldest instant of its events."""
    to_ms: int
    """The newest one, 0 without events."""

    @property
    def quarantine_directory(self) -> str:
        """Where what goes to quarantine is, if anything does."""
        return f"{self.directory}/{QUARANTINE}"


def stage(lines: DataFrame, limits: LineLimits, storage: Storage, directory: str, now_ms: int) -> Staged:
    """Write what the lines of a batch say into a directory that does not exist yet."""
    checked = check_lines(lines, limits)
    good = F.col("reason").isNull()
    time_ms = F.when(good, F.col("event.time"))
    observation = Observation()
    # No filter is pushed below an observation: every line would be read once for the filter, and again.
    observed = checked.observe(
        observation,
        F.count_if(good).alias("events"),
        F.count_if(~good).alias("quarantined"),
        F.count_if(F.col("reason") == Reason.LATE.value).alias("late"),
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
        late=seen["late"],
        from_ms=seen["from_ms"] or 0,
        to_ms=seen["to_ms"] or 0,
    )
    if staged.quarantined:
        write_parquet(quarantined_lines(checked, now_ms), storage.uri(staged.quarantine_directory))
    return staged


def without_known(staged: Staged, known: DataFrame, storage: Storage) -> Staged:
    """Give what is staged without the events that the table knows, and each of the others once.

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
