"""One batch of the ingest: lines become staged files, and these become part of the table in one change.

    writer = BatchWriter(spark, table, "files-1a2b", rules, now_ms=now_ms, heard=heard)
    lines.writeStream.foreachBatch(writer)...

Exactly once, whenever the process ends: Spark runs a batch again, with the same lines, until it has noted in its
checkpoint that the batch is done. A batch that ended before its change was prepared has left staged files only. One
whose change was prepared is rolled forward at the next start, and is found in the journal when it is run again.

The same holds should the machine stop: before a change is prepared, its files are on the disk, and so is what Spark has
noted of the lines of the batch. Without that, the journal might know a batch that Spark would then make of other lines.

Source: Spark, "Structured Streaming Programming Guide", foreachBatch.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.ingest.lines import LineLimits
from kafka_dt.pipeline.ingest.rules import Counts
from kafka_dt.pipeline.ingest.staging import stage, without_known
from kafka_dt.pipeline.table.compaction import Compaction
from kafka_dt.pipeline.table.journal import STAGING, Change, Journal
from kafka_dt.pipeline.table.parquet import staged_files
from kafka_dt.pipeline.table.schema import EVENT_SCHEMA, QUARANTINE_SCHEMA
from kafka_dt.pipeline.table.table import CHECKPOINTS, EVENTS, QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from kafka_dt.pipeline.ingest.rules import Rules
    from kafka_dt.pipeline.ingest.staging import Staged
    from kafka_dt.pipeline.table.table import Table

_NEWEST: Final = "newest_ms"
"""In the record of a batch: the newest instant of the table."""


class Stopped(Exception):
    """No further batch is begun."""


class BatchWriter:
    """What Spark calls with each batch.

    Args:
        spark: what reads the table.
        table: where it all goes.
        source: the name of the checkpoint.
        rules: what is done with events.
        now_ms: the clock, in milliseconds since 1970.
        heard: is told what each batch did.
    """

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
        """What a batch has failed with."""

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
            # Spark makes one text of it, from which nobody could tell what it was.
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
