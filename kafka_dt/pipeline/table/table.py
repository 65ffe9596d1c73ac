"""The table of audit events: where it keeps what, and how it is read.

    table = Table("/data/audit")
    table.events(spark).where("type = 'login'")
    table.quarantine(spark).groupBy("reason").count()

    events/           the events: a Delta table, clustered by cluster, day and owner
    quarantine/       what could not become an event, with the reason: a Delta table
    *.lock            whose turn it is to write to one of them, on a disk of this machine
    _checkpoints/     how far each source was read: Spark's own, and the limits of the batch under way

Any reader of Delta tables can read the first two. A frame of this class shows the table as it was when the frame was
made, also while an ingest runs.

Source: Delta Lake, "Table batch reads and writes".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_dt.pipeline.errors import NoTable, OldTable
from kafka_dt.pipeline.table.delta import DeltaFiles, Layout
from kafka_dt.pipeline.table.old import JOURNAL
from kafka_dt.pipeline.table.schema import CLUSTER_ID, DATE, EVENT_SCHEMA, QUARANTINE_SCHEMA
from kafka_dt.pipeline.table.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENTS: Final = "events"
QUARANTINE: Final = "quarantine"
CHECKPOINTS: Final = "_checkpoints"

EVENTS_LAYOUT: Final = Layout(
    schema=EVENT_SCHEMA,
    clustered_by=(CLUSTER_ID, DATE, "owner"),
    indexed=(CLUSTER_ID, DATE, "owner", "time", "token_id"),
)
QUARANTINE_LAYOUT: Final = Layout(
    schema=QUARANTINE_SCHEMA, clustered_by=("ingest_time",), indexed=("ingest_time", "reason")
)


class Table:
    """One table, at a path of this machine or the URI of any file system that Spark knows."""

    def __init__(self, path: str) -> None:
        self.path = path

    def storage(self, spark: SparkSession) -> Storage:
        """Give the files of the table."""
        return Storage(spark, self.path)

    def events(self, spark: SparkSession) -> DataFrame:
        """Read the events, as EVENT_SCHEMA has them.

        Raises:
            NoTable: there is none.
            OldTable: an earlier release has made it.
        """
        return self._read(spark, self.event_files(spark))

    def quarantine(self, spark: SparkSession) -> DataFrame:
        """Read what is in quarantine, as QUARANTINE_SCHEMA has it.

        Raises:
            NoTable: there is no table.
            OldTable: an earlier release has made it.
        """
        return self._read(spark, self.quarantine_files(spark))

    def event_files(self, spark: SparkSession) -> DeltaFiles:
        """Give the Delta table of the events."""
        return DeltaFiles(spark, self.storage(spark).uri(EVENTS), EVENTS_LAYOUT)

    def quarantine_files(self, spark: SparkSession) -> DeltaFiles:
        """Give the Delta table of what is in quarantine."""
        return DeltaFiles(spark, self.storage(spark).uri(QUARANTINE), QUARANTINE_LAYOUT)

    def check_format(self, spark: SparkSession) -> None:
        """See that the table, if there is one, is none of an earlier release.

        Raises:
            OldTable: it is one.
        """
        if self.storage(spark).exists(JOURNAL):
            raise OldTable(self.path)

    def _read(self, spark: SparkSession, files: DeltaFiles) -> DataFrame:
        self.check_format(spark)
        if not self.event_files(spark).exists():
            raise NoTable(self.path)
        return files.now()
