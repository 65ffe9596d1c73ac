"""Spark, on this machine or a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_dt.pipeline.session import for_few_rows, runs_here
from kafka_dt.pipeline.table.storage import Storage

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from kafka_dt.pipeline.table import Table


class SparkEngine:
    """Spark as an `Engine`."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    @property
    def runs_here(self) -> bool:
        """Whether its executors are threads of this process's JVM."""
        return runs_here(self.session)

    def files(self, root: str) -> Storage:
        """Give the files below a path or URI of any file system that Hadoop knows."""
        return Storage(self.session, root)

    def events(self, table: Table) -> DataFrame:
        """Read the events of a table as they are now."""
        return table.events(self.session)

    def quarantine(self, table: Table) -> DataFrame:
        """Read what is in quarantine now."""
        return table.quarantine(self.session)

    def written(self, uri: str, frame: DataFrame) -> DataFrame:
        """Write a frame to a directory as Parquet, and give it as it was written."""
        frame.write.mode("overwrite").parquet(uri)
        # With a schema Spark opens no file to find one.
        return self.session.read.schema(frame.schema).parquet(uri)

    def for_few_rows(self) -> AbstractContextManager[None]:
        """Run the queries of a block as suits a few rows."""
        return for_few_rows(self.session)
