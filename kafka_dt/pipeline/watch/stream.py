"""The stream of the watch: batches of lines from files or a topic, judged as they come.

    watch = Watch(spark, table, TopicSource("kafka-dt-audit", "broker:9092"), settings, keeper, now_ms=now_ms)
    watch.run(interval_ms=2_000)                # until `stop`
    watch.run(interval_ms=None)                 # what the source has now

Spark's checkpoint says which lines were read. A batch that was cut off is read again, and the findings of it have the
same ids. What is usual is learned from the table at the start and every `relearn_ms`, while batches go on. The table
may have events already that the watch has still to judge: these are left out, or a theft in them would be usual.

Limits: one watch for a source and a table. An event that the source has twice is counted twice, and found once.

Source: Spark, "Structured Streaming Programming Guide" (foreachBatch, checkpoints).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from kafka_dt.pipeline.errors import NoTable, SourceInUse, WatchFailed
from kafka_dt.pipeline.ingest import LineSource, cause_of, is_taken
from kafka_dt.pipeline.ingest.lines import LineLimits, check_lines, good_events
from kafka_dt.pipeline.report.expressions import EPOCH
from kafka_dt.pipeline.session import TIME_ZONE
from kafka_dt.pipeline.table.table import CHECKPOINTS
from kafka_dt.pipeline.watch.habits import HISTORY, Habits, learn
from kafka_dt.pipeline.watch.seen import seen_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from kafka_dt.pipeline.report.networks import Network
    from kafka_dt.pipeline.table import Table
    from kafka_dt.pipeline.watch.keeping import Keeper

_POLL_S: Final = 0.2
_SMALL_BATCHES: Final = {
    TIME_ZONE: "UTC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""The settings of the stream's own session: compiling the plan of some thousand lines costs more than reading them."""
_HOUR_MS: Final = 3_600_000
BATCH_RECORDS: Final = 50_000
"""How many events a source should give in a batch. An alert comes when its batch is done, and what came while the watch
was away, or learned, would otherwise be one batch of an hour's events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """How the watch works."""

    since_ms: int = 24 * _HOUR_MS
    """Events that are older than this are left to the report."""
    future_after_ms: int = _HOUR_MS
    """How far ahead of this machine's clock an event may be."""
    relearn_ms: int = _HOUR_MS
    """How often it learns what is usual."""
    history: timedelta = HISTORY
    """From how much of the table it learns."""
    networks: tuple[Network, ...] = field(default=())
    """Those that a file names, the smallest first."""


class Watch:
    """One watch of a source.

    Args:
        spark: runs the stream.
        table: tells what is usual; it may not exist yet.
        source: gives the lines.
        settings: how it works.
        keeper: does what follows a batch.
        now_ms: the clock, in milliseconds since 1970.
        heard: is called with the number of events so far, now and then.
    """

    def __init__(
        self,
        spark: SparkSession,
        table: Table,
        source: LineSource,
        settings: WatchSettings,
        keeper: Keeper,
        *,
        now_ms: Callable[[], int],
        heard: Callable[[int], None] = lambda _events: None,
    ) -> None:
        self._spark = spark
        self._quick = spark.newSession()
        for key, value in _SMALL_BATCHES.items():
            self._quick.conf.set(key, value)
        self._table = table
        self._source = source
        self._settings = settings
        self._keeper = keeper
        self._now_ms = now_ms
        self._heard = heard
        self._stopping = False
        self._learned_ms = 0
        self._habits = Habits()
        self._lock = threading.Lock()
        """Spark calls with batches from a thread of its own."""
        self._failure: BaseException | None = None
        self.events = 0
        """How many events were judged."""

    def stop(self) -> None:
        """End it after the batch under way; may be called by a signal handler."""
        self._stopping = True

    def run(self, *, interval_ms: int | None) -> None:
        """Watch until `stop`, or what the source has now.

        Args:
            interval_ms: how long to wait between batches; None = end when all was read.

        Raises:
            NoSource: there is nothing to read.
            OldTable: the table is one of an earlier release.
            SourceInUse: another watch reads the source.
            WatchFailed: Spark could not do it.
            OSError: what is kept cannot be written.
        """
        try:
            self._learn()
            while self._read(interval_ms):
                pass
        except (PySparkException, Py4JError) as error:
            if self._failure is not None and not isinstance(self._failure, Stopped | PySparkException | Py4JError):
                raise self._failure from error
            if not self._stopping:
                raise SourceInUse(self._table.path) if is_taken(error) else WatchFailed(cause_of(error)) from error
        self._keeper.end()

    def _read(self, interval_ms: int | None) -> bool:
        """Read the source; True if it has to be read anew because it is another one now."""
        name = f"watch-{self._source.checkpoint(self._spark)}"
        cluster_id = self._source.cluster_id(self._spark)
        storage = self._table.storage(self._spark)
        if not storage.exists():
            storage.make_root()

        closed, idle = threading.Event(), threading.Event()
        idle.set()

        def judge(lines: DataFrame, number: int) -> None:
            idle.clear()
            try:
                _go_on(closed)
                metadata = storage.read_document(f"{CHECKPOINTS}/{name}/metadata")
                self._judge(lines, cluster_id, f"{name}-{metadata['id']}", number)
            except BaseException as failure:
                # Spark makes one text of it, which does not tell what it was.
                self._failure = failure
                raise
            finally:
                idle.set()

        stream = self._source.lines(self._quick).writeStream.foreachBatch(judge)
        stream = stream.option("checkpointLocation", storage.uri(f"{CHECKPOINTS}/{name}"))
        if interval_ms is None:
            stream = stream.trigger(availableNow=True)
        else:
            stream = stream.trigger(processingTime=f"{interval_ms} milliseconds")
        query = stream.start()
        try:
            while not query.awaitTermination(_POLL_S):  # type: ignore[arg-type] # it takes fractions as well
                self._heard(self.events)
                if self._stopping or self._source.has_changed():
                    break
                self._tend()
        finally:
            closed.set()
            while query.isActive and not idle.wait(_POLL_S):  # a batch under way may be ending a token
                self._heard(self.events)
            query.stop()
        return not self._stopping and interval_ms is not None

    def _judge(self, lines: DataFrame, cluster_id: str, series: str, number: int) -> None:
        now_ms = self._now_ms()
        limits = LineLimits(
            latest_ms=now_ms + self._settings.future_after_ms, earliest_ms=now_ms - self._settings.since_ms
        )
        # Kept before any is chosen: Spark would parse a line again for each condition on what is in it.
        checked = check_lines(lines, limits).select("event", "reason").persist()
        try:
            rows = seen_rows(good_events(checked, cluster_id), self._settings.networks)
        finally:
            checked.unpersist()
        with self._lock:
            self._keeper.take(rows, self._habits, series, number)
            self.events += sum(row.events for row in rows)

    def _tend(self) -> None:
        """Do what is due between batches."""
        with self._lock:
            self._keeper.tend()
        if self._now_ms() - self._learned_ms >= self._settings.relearn_ms:
            self._learn()

    def _learn(self) -> None:
        """Learn what is usual; batches go on meanwhile."""
        now_ms = self._now_ms()
        try:
            events = self._table.events(self._spark)
        except NoTable:
            habits = Habits()
        else:
            judged = max(self._keeper.state.judged, _instant(now_ms - self._settings.since_ms))
            habits = learn(events, min(judged, _instant(now_ms)), self._settings.history)
        with self._lock:
            self._habits = habits
        self._learned_ms = now_ms


class Stopped(Exception):
    """The batch is left to the next run."""


def _go_on(closed: threading.Event) -> None:
    if closed.is_set():
        raise Stopped


def _instant(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)
