"""The table of audit events: where it keeps what, and how it is read.

    table = Table("/data/audit")
    table.events(spark).where("type = 'login'")
    table.quarantine(spark).groupBy("reason").count()

    events/date=2026-01-31/*.parquet   the events, by their day in UTC
    quarantine/*.parquet               what could not become an event, with the reason
    _checkpoints/                      how far each source was read: Spark's own
    _journal/ _staging/ _lock          changes under way (journal.py)

Readers may come while an ingest runs: they see all of a batch or nothing of it, and a day before or after it was
compacted, never both. Other tools can read the Parquet files as they are; for them a batch appears file by file.

Limits: a read fails if the ingest deletes replaced files meanwhile; `--keep-replaced` keeps these for a while.

Source: Spark SQL, "Parquet files", "Partition discovery".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from kafka_dt.pipeline.errors import NoTable
from kafka_dt.pipeline.table.journal import Journal
from kafka_dt.pipeline.table.schema import EVENT_SCHEMA, QUARANTINE_SCHEMA
from kafka_dt.pipeline.table.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

EVENTS: Final = "events"
QUARANTINE: Final = "quarantine"
CHECKPOINTS: Final = "_checkpoints"


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
        """
        return self._read(spark, EVENTS, EVENT_SCHEMA)

    def quarantine(self, spark: SparkSession) -> DataFrame:
        """Read what is in quarantine, as QUARANTINE_SCHEMA has it.

        Raises:
            NoTable: there is no table.
        """
        return self._read(spark, QUARANTINE, QUARANTINE_SCHEMA)

    def _read(self, spark: SparkSession, name: str, schema: StructType) -> DataFrame:
        storage = self.storage(spark)
        if not storage.exists(name):
            raise NoTable(self.path)
        journal = Journal(storage)
        view = journal.view()
        while True:
            # This is where Spark lists the files.
            rows = spark.read.schema(schema).parquet(storage.uri(name))
            before, view = view, journal.view()
            if before == view:
                break
        names = sorted(each.rpartition("/")[2] for each in view.hidden if each.startswith(f"{name}/"))
        return rows.where(~F.col("_metadata.file_name").isin(names)) if names else rows
