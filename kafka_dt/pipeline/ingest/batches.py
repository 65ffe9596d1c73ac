"""One batch of the ingest: lines become events and quarantine of the table, each in one commit.

Exactly once, whenever the process ends: Spark runs a batch again, with the same lines, until it has noted in its
checkpoint that the batch is done. Both commits have the number of the batch in them, so neither is made twice: first
that of the quarantine, then that of the events, which is what the batch is known by. Lines that a repeated batch judges
again are judged as before, because the limits are written down before the first commit. Before it, all notes about the
lines of the batch are on the disk; before Spark notes that the batch is done, both commits are.

A batch is parsed once, onto the disks of the executors. What is written leaves out the events that the table has
already, as part of the same commit: if another writer adds events meanwhile, Delta refuses the commit, and the batch is
compared with the table anew. Ids are compared, and only they are shuffled: the rows stay where they were parsed.

Limits: an event that comes again is known by its cluster, its id and its time; it is not looked for under another time.

Source: Spark, "Structured Streaming Programming Guide", foreachBatch; Delta Lake, "Idempotent table writes".
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.ingest.lines import SOURCE, LineLimits, check_lines, good_events, quarantined_lines
from kafka_dt.pipeline.table.delta import Conflict, retried
from kafka_dt.pipeline.table.schema import CLUSTER_ID, DATE, DAY_MS, Reason, instant
from kafka_dt.pipeline.table.table import CHECKPOINTS, EVENTS, QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from kafka_dt.pipeline.table import Table
    from kafka_dt.pipeline.table.delta import DeltaFiles

_HOUR_MS: Final = 3_600_000
LIMITS: Final = "limits"
"""In a checkpoint: the limits of the last batch."""
_ROW: Final = "row"
"""The number of a line in its batch."""
_PARTITIONS_A_CORE: Final = 4
"""Into how many parts ids are divided to be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The limits that the ingest keeps."""

    late_after_ms: int | None = 7 * DAY_MS
    """How far behind the newest event of its cluster in the table an event may be; None = any distance."""
    future_after_ms: int = _HOUR_MS
    """How far ahead of the clock of this machine an event may be."""
    compact_at: int = 64
    """How many small files are merged; 0 = none are."""
    keep_replaced_ms: int = 7 * DAY_MS
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
    """Is called by Spark with each batch of lines.

    Args:
        spark: does the work.
        table: receives the events.
        checkpoint: the name of the checkpoint.
        cluster_id: names the cluster whose lines these are.
        rules: the limits.
        now_ms: the clock, in milliseconds since 1970.
        heard: is called with the counts of each batch.
    """

    def __init__(
        self,
        spark: SparkSession,
        table: Table,
        checkpoint: str,
        cluster_id: str,
        rules: Rules,
        *,
        now_ms: Callable[[], int],
        heard: Callable[[Counts], None],
    ) -> None:
        self._storage = table.storage(spark)
        self._events = table.event_files(spark)
        self._quarantine = table.quarantine_files(spark)
        self._checkpoint = checkpoint
        self._cluster_id = cluster_id
        self._rules = rules
        self._now_ms = now_ms
        self._heard = heard
        self._newest_ms: int | None = None
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
        if batch <= self._events.last_batch(series):
            return
        # Before the batch, when Delta knows the files of the table anyway.
        compacted = self._compact(self._events)
        begun_s = time.time()
        judged_ms, limits = self._limits(batch)
        # What Spark has noted of the lines of this batch must outlive the commits: they say that these lines are done.
        self._storage.sync(f"{CHECKPOINTS}/{self._checkpoint}")
        checked = _slim(check_lines(lines, limits)).persist(StorageLevel.DISK_ONLY)
        try:
            found = _counted(checked)
            if found["quarantined"]:
                compacted += self._compact(self._quarantine)
                bad = quarantined_lines(checked, self._cluster_id, judged_ms)
                retried(lambda: self._quarantine.append(bad, series, batch))
            fresh = retried(lambda: self._append_new(checked, found, series, batch))
        finally:
            checked.unpersist()
        if self._newest_ms is not None:  # else the next batch asks the table, this one was a repeated one
            self._newest_ms = max(self._newest_ms, found["to_ms"] or 0)
        for part in (EVENTS, QUARANTINE):
            self._storage.sync(part, begun_s)
        self._heard(
            Counts(
                batches=1,
                lines=found["events"] + found["quarantined"],
                events=fresh,
                quarantined=found["quarantined"],
                late=found["late"],
                duplicates=found["events"] - fresh,
                compacted_files=compacted,
            )
        )

    def _series(self) -> str:
        """Name the checkpoint, as it is told from one that had its name before it was deleted."""
        metadata = self._storage.read_document(f"{CHECKPOINTS}/{self._checkpoint}/metadata")
        return f"{self._checkpoint}-{metadata['id']}"

    def _limits(self, batch: int) -> tuple[int, LineLimits]:
        """Give the time of a batch and its limits; a batch that is repeated has those of the first time."""
        folder = f"{CHECKPOINTS}/{self._checkpoint}/{LIMITS}"
        try:
            noted = self._storage.read_document(f"{folder}/{batch}")
        except FileNotFoundError:
            noted = self._new_limits(self._now_ms())
            self._storage.write_document(f"{folder}/{batch}", noted)
            self._storage.delete(f"{folder}/{batch - 1}")
        return noted["now_ms"], LineLimits(latest_ms=noted["latest_ms"], earliest_ms=noted["earliest_ms"])

    def _new_limits(self, now_ms: int) -> dict[str, int]:
        if self._newest_ms is None:
            self._newest_ms = self._newest_of_table_ms()
        late_after_ms = self._rules.late_after_ms
        return {
            "now_ms": now_ms,
            "latest_ms": now_ms + self._rules.future_after_ms,
            "earliest_ms": 0 if late_after_ms is None else max(0, self._newest_ms - late_after_ms),
        }

    def _newest_of_table_ms(self) -> int:
        (newest_ms,) = self._of_cluster().agg(F.unix_millis(F.max("time"))).collect()[0]
        return newest_ms or 0

    def _append_new(self, checked: DataFrame, found: Row, series: str, batch: int) -> int:
        """Append the events that the table lacks, each once, and return how many these are."""
        known = self._of_cluster().where(_between(found["from_ms"] or 0, found["to_ms"] or 0))
        fresh = checked.join(F.broadcast(_new_rows(checked, known)), _ROW, "left_semi")
        return self._events.append(good_events(fresh, self._cluster_id), series, batch)

    def _of_cluster(self) -> DataFrame:
        return self._events.latest().where(F.col(CLUSTER_ID) == self._cluster_id)

    def _compact(self, files: DeltaFiles) -> int:
        if not self._rules.compact_at or files.surplus_files() < self._rules.compact_at:
            return 0
        try:
            replaced = files.optimize()
        except Conflict:
            return 0  # another writer does the same
        files.vacuum(self._rules.keep_replaced_ms)
        return replaced


def _counted(checked: DataFrame) -> Row:
    """Count the lines of a batch, good and bad, and find the oldest and the newest instant of the good ones."""
    good = F.col("reason").isNull()
    time_ms = F.when(good, F.col("event.time"))
    counts = {
        "events": F.count_if(good),
        "quarantined": F.count_if(~good),
        "late": F.count_if(F.col("reason") == Reason.LATE.value),
        "from_ms": F.min(time_ms),
        "to_ms": F.max(time_ms),
    }
    return checked.agg(*(count.alias(name) for name, count in counts.items())).collect()[0]


def _slim(checked: DataFrame) -> DataFrame:
    """Give each line a number, and leave out of good ones what only the quarantine has."""
    bad = F.col("reason").isNotNull()
    rest = (F.when(bad, F.col(name)).alias(name) for name in (*SOURCE, "raw"))
    return checked.select("event", "reason", "fields", *rest, F.monotonically_increasing_id().alias(_ROW))


def _new_rows(checked: DataFrame, known: DataFrame) -> DataFrame:
    """Give the numbers of good lines whose ids are not known; of those with the same id the first."""
    good = checked.where(F.col("reason").isNull()).select("event.id", _ROW)
    ids = good.unionAll(known.select("id", F.lit(None).cast("bigint")))
    # Spark's 200 partitions would cost a small batch more than its events do.
    partitions = _PARTITIONS_A_CORE * checked.sparkSession.sparkContext.defaultParallelism
    each = (
        ids.repartition(partitions, "id")
        .groupBy("id")
        .agg(F.min(_ROW).alias(_ROW), F.count_if(F.col(_ROW).isNull()).alias("known"))
    )
    return each.where("known = 0").select(_ROW)


def _between(from_ms: int, to_ms: int) -> Column:
    """Select instants, and the days by which Delta passes over files."""
    first, last = (datetime.fromtimestamp(each / 1000, UTC).date() for each in (from_ms, to_ms))
    lowest, highest = (instant(F.lit(each).cast("bigint")) for each in (from_ms, to_ms))
    return F.col(DATE).between(F.lit(first), F.lit(last)) & F.col("time").between(lowest, highest)
