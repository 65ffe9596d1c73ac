"""Parquet files as the table has them: how they are written, and where staged ones go.

Source: Spark SQL, "Parquet files".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.table.storage import Storage

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
    """Say where the files of a staging directory go.

    Args:
        storage: the files of the table.
        staging: a directory that `write_parquet` has written.
        directory: where they shall be.
        name: what their names begin with; no other files have it.

    Returns:
        Where each is, and its place.
    """
    staged = enumerate(parquet_files(storage, staging))
    return tuple((each, f"{directory}/{name}-{index:04d}{_ENDING}") for index, each in staged)
