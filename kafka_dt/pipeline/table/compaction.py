"""Many small files of a directory become few large ones, sorted by time.

    compaction = Compaction(spark, storage, journal, at=16, kept_ms=0, now_ms=now_ms)
    compaction.compact("events/date=2026-01-31", EVENT_SCHEMA, "time")

Every batch brings at least one file for each day that it has events of, and what reads a table pays for every file.
A directory with `at` small files has them merged; what has become large stays as it is, so a day is written anew a few
times, not with every batch. In a sorted file Spark finds an hour without reading the day.

The change is one entry of the journal: readers see the small files or the large ones.

Source: Spark SQL, "Parquet files" (statistics of row groups).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from kafka_dt.pipeline.table.journal import STAGING, Change
from kafka_dt.pipeline.table.parquet import staged_files, write_parquet
from kafka_dt.pipeline.table.schema import DATE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from kafka_dt.pipeline.table.journal import Journal
    from kafka_dt.pipeline.table.storage import Storage

TARGET_BYTES: Final = 128 * 1024 * 1024
"""About how large the large files are."""
SERIES: Final = "compaction"
_SMALL_PART: Final = 4
"""A file is small below this part of the target."""


class Compaction:
    """Merges files of one table.

    Args:
        spark: what reads and writes them.
        storage: the files of the table.
        journal: its changes.
        at: how many small files in a directory are too many; 0 = there never are.
        kept_ms: how long replaced files are kept for readers that have listed them, in milliseconds.
        now_ms: the clock, in milliseconds since 1970.
        target_bytes: about how large the files shall be.
    """

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        journal: Journal,
        *,
        at: int,
        kept_ms: int,
        now_ms: Callable[[], int],
        target_bytes: int = TARGET_BYTES,
    ) -> None:
        self._spark = spark
        self._storage = storage
        self._journal = journal
        self._at = at
        self._kept_ms = kept_ms
        self._now_ms = now_ms
        self._target_bytes = target_bytes

    def compact(self, directory: str, schema: StructType, order: str) -> int:
        """Merge the small files of a directory if they are too many.

        Args:
            directory: in the table.
            schema: of its files; the day is in the directory's name.
            order: the column by which they are sorted.

        Returns:
            How many files were replaced.
        """
        if not self._at or self._storage.count(directory) < self._at:
            return 0
        hidden = self._journal.view().hidden
        small = [
            each
            for each in self._storage.files(directory)
            if each.size < self._target_bytes // _SMALL_PART and each.name not in hidden
        ]
        if len(small) < self._at:
            return 0
        number = self._journal.last(SERIES) + 1
        staging = f"{STAGING}/{SERIES}.{number:012d}"
        count = max(1, round(sum(each.size for each in small) / self._target_bytes))
        stored = StructType([field for field in schema if field.name != DATE])
        rows = self._spark.read.schema(stored).parquet(*(self._storage.uri(each.name) for each in small))
        rows = rows.coalesce(1) if count == 1 else rows.repartitionByRange(count, order)
        write_parquet(rows.sortWithinPartitions(order), self._storage.uri(staging))
        self._storage.sync(staging)
        change = Change(
            adds=staged_files(self._storage, staging, directory, f"{SERIES}.{number:012d}"),
            removes=tuple(each.name for each in small),
            kept_until_ms=self._now_ms() + self._kept_ms,
        )
        self._journal.carry_out(SERIES, number, change, self._now_ms())
        self._storage.delete(staging)
        return len(small)
