"""The ingest: audit events from files or a topic into the table, each exactly once.

    ingest = Ingest(spark, Table("/data/audit"), FileSource("/var/log/kafka-dt/audit"), now_ms=now_ms)
    counts = ingest.run()                          # reads all that the source has now, then returns
    counts = ingest.run(interval_ms=10_000)        # until `stop` is called, by another thread or a signal handler

It continues where the last ingest of this source has ended. `stop` lets the batch under way end; `stop(at_once=True)`
does not, and the next run does that batch again.

Read this file first: it has the stream. `batches.py` does one batch of it, `lines.py` says what is an event, and
`sources.py` where lines come from.

Several ingests may write to a table at the same time, each from a source of its own.

Source: Spark, "Structured Streaming Programming Guide" (availableNow, foreachBatch, checkpoints).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from kafka_dt.pipeline.errors import IngestFailed, PipelineError, SourceInUse, TableNotShared
from kafka_dt.pipeline.ingest.batches import BatchWriter, Counts, Rules
from kafka_dt.pipeline.ingest.sources import FileSource, LineSource, TopicSource, innermost
from kafka_dt.pipeline.session import runs_here
from kafka_dt.pipeline.table.delta import retried
from kafka_dt.pipeline.table.table import CHECKPOINTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from kafka_dt.pipeline.table import Table

__all__ = ["Counts", "FileSource", "Ingest", "LineSource", "Rules", "TopicSource", "cause_of", "is_taken"]

_POLL_S: Final = 0.2
_BEFORE_CAUSE: Final = "terminated with exception: "
_PROBE: Final = "_probe"
_OTHER_QUERIES: Final = ("CONCURRENT_STREAM_LOG_UPDATE", "Multiple streaming")
"""What Spark says when another query has the checkpoint."""


class Ingest:
    """One ingest from a source into a table.

    Args:
        spark: runs the stream.
        table: receives the events.
        source: gives the lines.
        rules: the limits.
        now_ms: the clock, in milliseconds since 1970.
        heard: is called with the counts so far, after each batch and now and then in between.
    """

    def __init__(
        self,
        spark: SparkSession,
        table: Table,
        source: LineSource,
        rules: Rules | None = None,
        *,
        now_ms: Callable[[], int],
        heard: Callable[[Counts], None] = lambda _counts: None,
    ) -> None:
        self._spark = spark
        self._table = table
        self._source = source
        self._rules = rules or Rules()
        self._now_ms = now_ms
        self._heard = heard
        self._stopping = False
        self._hurried = False
        self.counts = Counts()
        """The counts so far."""

    def stop(self, *, at_once: bool = False) -> None:
        """End it, or even the batch under way; may be called by a signal handler."""
        self._stopping = True
        self._hurried = self._hurried or at_once

    def run(self, *, interval_ms: int | None = None) -> Counts:
        """Ingest, and return the counts of this run.

        Args:
            interval_ms: how long to wait between batches; None = read all that the source has now, then return.

        Raises:
            NoSource: there is nothing to read.
            OldTable: the table is one of an earlier release.
            SourceInUse: another ingest reads the source into this table.
            TableNotShared: executors write to disks of their own.
            IngestFailed: Spark could not do it.
        """
        self._table.check_format(self._spark)
        try:
            self._make_table()
            while self._read_until_changed(interval_ms):
                pass
        except (PySparkException, Py4JError) as error:
            if not self._stopping:
                raise SourceInUse(self._table.path) if is_taken(error) else IngestFailed(cause_of(error)) from error
        return self.counts

    def _make_table(self) -> None:
        storage = self._table.storage(self._spark)
        if not storage.exists():
            storage.make_root()
        if storage.is_local and not runs_here(self._spark):
            self._spark.range(1).write.mode("overwrite").parquet(storage.uri(_PROBE))
            shared = any(name.endswith(".parquet") for name in storage.names(_PROBE))
            storage.delete(_PROBE)
            if not shared:
                raise TableNotShared(storage.root)
        events = self._table.event_files(self._spark)
        if not events.exists():
            retried(events.create)

    def _read_until_changed(self, interval_ms: int | None) -> bool:
        """Read the source; True if it has to be read anew because it is another one now."""
        name, cluster_id = self._source.checkpoint(self._spark), self._source.cluster_id(self._spark)
        writer = BatchWriter(
            self._spark, self._table, name, cluster_id, self._rules, now_ms=self._now_ms, heard=self._add
        )
        stream = self._source.lines(self._spark).writeStream.foreachBatch(writer)
        stream = stream.option("checkpointLocation", self._table.storage(self._spark).uri(f"{CHECKPOINTS}/{name}"))
        if interval_ms is None:
            stream = stream.trigger(availableNow=True)
        else:
            stream = stream.trigger(processingTime=f"{interval_ms} milliseconds")
        query = stream.start()
        try:
            self._follow(query)
        except (PySparkException, Py4JError) as error:
            if isinstance(writer.failure, PipelineError):
                raise writer.failure from error
            raise
        finally:
            self._end(query, writer)
        return not self._stopping and interval_ms is not None

    def _follow(self, query: StreamingQuery) -> None:
        while not query.awaitTermination(_POLL_S):  # type: ignore[arg-type] # it takes fractions as well
            self._heard(self.counts)
            if self._stopping or self._source.has_changed():
                return

    def _end(self, query: StreamingQuery, writer: BatchWriter) -> None:
        writer.close()
        while query.isActive and not self._hurried and not writer.wait_until_idle(_POLL_S):
            self._heard(self.counts)
        query.stop()

    def _add(self, counts: Counts) -> None:
        self.counts += counts
        self._heard(self.counts)


def is_taken(error: Exception) -> bool:
    """Say whether a stream failed because another one has its checkpoint."""
    return any(mark in cause_of(error) for mark in _OTHER_QUERIES)


def cause_of(error: Exception) -> str:
    """Give the one line of Spark's long text that says what went wrong."""
    text = str(error)
    _, _, cause = text.partition(_BEFORE_CAUSE)
    if not cause and isinstance(error, Py4JJavaError):
        return innermost(error)  # its own text begins with the call that failed
    lines = [line.strip() for line in (cause or text).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
