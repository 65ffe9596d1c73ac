"""One Delta table: it is read, appended to exactly once, clustered and cleaned up.

    events = DeltaFiles(spark, "/data/audit/events", layout)
    if events.last_batch("files-0a") < 7:
        events.append(rows, "files-0a", 7)     # one commit, with the number of the batch in it
    events.optimize()

A commit is one new file in `_delta_log`, which the file system makes whole and for one writer only, so several writers
may append at once; on a disk of this machine they take turns. An append whose rows depend on what the table has,
because their plan reads it (`latest`), does not take place if another writer has added something meanwhile: `Conflict`.

Limits: what a commit says of batches is read by Delta's own classes, which are no public interface: delta-spark is
pinned. Clustering rewrites what is new, and of what it has rewritten before only what came to less than FILE_BYTES.

Source: the Delta transaction log protocol; Delta Lake, "Idempotent table writes in foreachBatch", "Concurrency
control", "Use liquid clustering".
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from kafka_dt.pipeline.table.schema import completed
from kafka_dt.pipeline.table.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FILE_BYTES: Final = 128 * 1024 * 1024
"""The size of a large file. OPTIMIZE divides what it writes by it and rounds down: files are up to twice as large."""
_COMMIT: Final = "_delta_log/{:020}.json"
_CONFLICTS: Final = "io.delta.exceptions."
"""The package of Delta's errors about other writers, and of no others."""
_HOUR_MS: Final = 3_600_000
_T = TypeVar("_T")


class Conflict(Exception):
    """Another writer was first; nothing was written."""


def retried(step: Callable[[], _T]) -> _T:
    """Do a step until no other writer is first."""
    while True:
        with suppress(Conflict):
            return step()


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a table has, and how its files are made."""

    schema: StructType
    clustered_by: tuple[str, ...]
    """Columns; rows with the same values come into the same files."""
    indexed: tuple[str, ...]
    """Columns of which the log has the least and the greatest value of each file; the clustered ones are among them."""
    file_bytes: int = FILE_BYTES
    """As FILE_BYTES."""

    def properties(self) -> dict[str, str]:
        """Give the properties of the table."""
        return {"delta.enableChangeDataFeed": "true", "delta.dataSkippingStatsColumns": ",".join(self.indexed)}


class DeltaFiles:
    """The Delta table in a directory, which may not exist yet."""

    def __init__(self, spark: SparkSession, uri: str, layout: Layout) -> None:
        self._spark = spark
        self._uri = uri
        self._storage = Storage(spark, uri)
        self._layout = layout

    def exists(self) -> bool:
        """Say whether there is one: Delta's own answer is yes already while another writer makes it."""
        return int(self._snapshot().version()) >= 0

    def create(self) -> None:
        """Make it, unless there is one; an append that rests on `latest` needs a table to rest on.

        Raises:
            Conflict: another writer makes it at the same time.
        """
        made = DeltaTable.createIfNotExists(self._spark).location(self._uri).addColumns(self._layout.schema)
        for key, value in self._layout.properties().items():
            made = made.property(key, value)
        with self._storage.turn(), _conflicts():
            made.clusterBy(*self._layout.clustered_by).execute()

    def now(self) -> DataFrame:
        """Read what it has now; later commits change nothing. Columns that it lacks are null."""
        if not self.exists():
            return self._nothing()
        reader = self._spark.read.format("delta").option("versionAsOf", self._snapshot().version())
        return completed(reader.load(self._uri), self._layout.schema)

    def latest(self) -> DataFrame:
        """Read what it has when the frame is used; used in an `append`, what that rests on."""
        if not self.exists():
            return self._nothing()
        return completed(self._spark.read.format("delta").load(self._uri), self._layout.schema)

    def last_batch(self, series: str) -> int:
        """Give the number of the last batch of a series that was appended, -1 if none was."""
        if not self.exists():
            return -1
        found = self._snapshot().transactions().get(series)
        return int(found.get()) if found.isDefined() else -1

    def append(self, rows: DataFrame, series: str, batch: int) -> int:
        """Append rows as a batch of a series, unless that batch was appended before; return how many these are.

        The first rows make the table. Columns that it lacks are added to it.

        Raises:
            Conflict: the rows rest on what the table has, or has not, and another writer has changed that.
        """
        writer = rows.write.format("delta").mode("append").option("mergeSchema", True)
        writer = writer.option("txnAppId", series).option("txnVersion", batch)
        if not self.exists():
            self.create()  # a writer to a path would make a table that is not clustered
        with self._storage.turn(), _conflicts():
            writer.save(self._uri)
        return self._rows_of(series, batch)

    def surplus_files(self) -> int:
        """Give the number of files that it would have less if they were large."""
        if not self.exists():
            return 0
        snapshot = self._snapshot()
        return int(snapshot.numOfFiles()) - -(-int(snapshot.sizeInBytes()) // self._layout.file_bytes)

    def optimize(self) -> int:
        """Rewrite small files as large ones, clustered, and return how many were replaced.

        Raises:
            Conflict: another writer does the same.
        """
        file_bytes = self._layout.file_bytes
        prefix = "spark.databricks.delta.optimize"
        cube = f"{prefix}.clustering.mergeStrategy.minCubeSize"
        settings = {
            f"{prefix}.maxFileSize": file_bytes,
            # A cube is what is clustered together. Delta fills one until the next file would make it larger than the
            # target, so it has more than the target less one file: with a higher threshold each run would rewrite it.
            # The default threshold, 100 GiB, would rewrite most tables each time.
            f"{cube}.threshold": file_bytes,
            f"{cube}.targetCubeSize": 2 * file_bytes,
        }
        for key, value in settings.items():
            self._spark.conf.set(key, value)
        with self._storage.turn(), _conflicts():
            done = DeltaTable.forPath(self._spark, self._uri).optimize().executeCompaction()
        (row,) = done.select("metrics.numFilesRemoved").collect()
        return int(row[0])

    def vacuum(self, kept_ms: int) -> None:
        """Delete files that the table has not had since `kept_ms` milliseconds ago."""
        self._spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", False)
        # It lists files in as many tasks: 10,000 by default, for one directory.
        self._spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", 2)
        DeltaTable.forPath(self._spark, self._uri).vacuum(kept_ms / _HOUR_MS)

    def _snapshot(self) -> Any:
        context: Any = self._spark.sparkContext
        log = context._jvm.org.apache.spark.sql.delta.DeltaLog  # noqa: SLF001 - Delta has no other way to ask
        return log.forTableWithSnapshot(self._spark._jsparkSession, self._uri)._2()  # noqa: SLF001

    def _rows_of(self, series: str, batch: int) -> int:
        """Count the rows of a batch that is among the newest commits."""
        version = int(self._snapshot().version())
        while True:
            actions = [json.loads(line) for line in self._storage.read_text(_COMMIT.format(version)).splitlines()]
            marks = (action["txn"] for action in actions if "txn" in action)
            if any((each["appId"], each["version"]) == (series, batch) for each in marks):
                return sum(json.loads(action["add"]["stats"])["numRecords"] for action in actions if "add" in action)
            version -= 1

    def _nothing(self) -> DataFrame:
        columns = (F.lit(None).cast(each.dataType).alias(each.name) for each in self._layout.schema)
        return self._spark.range(0).select(*columns).limit(0)


@contextmanager
def _conflicts() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        cause = error.java_exception
        while cause is not None:
            if str(cause.getClass().getName()).startswith(_CONFLICTS):
                raise Conflict from error
            cause = cause.getCause()
        raise
