"""Parquet files as the table has them: how they are written, where staged ones go, how small ones are merged.

Source: Spark SQL, "Parquet files" (statistics of row groups).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructType

from kafka_dt.pipeline.table.journal import STAGING, Change
from kafka_dt.pipeline.table.schema import DATE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from kafka_dt.pipeline.table.journal import Journal
    from kafka_dt.pipeline.table.storage import Storage

_TARGET_BYTES: Final = 128 * 1024 * 1024
"""About how large the large files are."""
SERIES: Final = "compaction"
_SMALL_PART: Final = 4
"""A file is small below this part of the target."""

_COMPRESSION: Final = "zstd"
_ENDING: Final = ".parquet"


def write_parquet(rows: DataFrame, uri: str, *partitioned_by: str) -> None:
    """Write rows into a directory of their own."""
    # Spark's own choice, INT96, is unknown to others, and has no statistics by which files are passed over.
    rows.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    writer = rows.write.mode("overwrite").option("compression", _COMPRESSION)
    (writer.partitionBy(*partitioned_by) if partitioned_by else writer).parquet(uri)


def parquet_files(storage: Storage, directory: str) -> list[str]:
    """Give the names of the files with rows right in a directory; Spark writes others beside them."""
    return [each.name for each in storage.files(directory) if each.name.endswith(_ENDING)]


def staged_files(storage: Storage, staging: str, directory: str, name: str) -> tuple[tuple[str, str], ...]:
    """Say where each file of a staging directory is and where it goes; no other names begin with `name`."""
    staged = enumerate(parquet_files(storage, staging))
    return tuple((each, f"{directory}/{name}-{index:04d}{_ENDING}") for index, each in staged)


class Compaction:
    """Merges many small files of a directory into few large ones, sorted by time.

    Every batch brings at least one file for each day that it has events of, and what reads a table pays for every file.
    Large files stay as they are, so a day is written anew a few times, not with every batch. In a sorted file Spark
    finds an hour without reading the day. The change is one entry of the journal: readers see the small files or the
    large ones.

    at: how many small files in a directory are too many; 0 = there never are
    kept_ms: how long replaced files are kept for readers that have listed them
    now_ms: the clock, in milliseconds since 1970
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
    ) -> None:
        self._spark = spark
        self._storage = storage
        self._journal = journal
        self._at = at
        self._kept_ms = kept_ms
        self._now_ms = now_ms

    def compact(self, directory: str, schema: StructType, order: str) -> int:
        """Merge small files, sorted by a column, if they are too many, and return how many were replaced."""
        if not self._at or self._storage.count(directory) < self._at:
            return 0
        hidden = self._journal.view().hidden
        small = [
            each
            for each in self._storage.files(directory)
            if each.size < _TARGET_BYTES // _SMALL_PART and each.name not in hidden
        ]
        if len(small) < self._at:
            return 0
        number = self._journal.last(SERIES) + 1
        staging = f"{STAGING}/{SERIES}.{number:012d}"
        count = max(1, round(sum(each.size for each in small) / _TARGET_BYTES))
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
