"""`OPTIMIZE` rewrites what is new, and little of what it wrote before, however large the table is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import DateType, StringType, StructField, StructType

from kafka_dt.pipeline.table.delta import DeltaFiles, Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE_BYTES: Final = 64 * 1024
"""A two-thousandth of the real one."""
LAYOUT: Final = Layout(
    schema=StructType(
        [StructField("date", DateType()), *(StructField(name, StringType()) for name in ("owner", "id"))]
    ),
    clustered_by=("date", "owner"),
    indexed=("date", "owner"),
    file_bytes=FILE_BYTES,
)
BATCHES: Final = 5
ROWS: Final = 1200
"""Of a batch: 48 KiB in four files, so that a cube takes two of them."""


def batch(spark: SparkSession, number: int) -> DataFrame:
    key = F.concat(F.lit(f"{number} "), F.col("id").cast("string"))
    return spark.range(ROWS, numPartitions=4).select(
        F.date_add(F.lit("2026-01-01"), F.lit(number)).alias("date"),
        F.concat(F.lit("User:"), (F.col("id") % 10).cast("string")).alias("owner"),
        F.sha2(key, 256).alias("id"),
    )


def last_change(log: Path, action: str) -> list[dict[str, Any]]:
    """The files that the last commit has added (`add`) or removed (`remove`)."""
    actions = (json.loads(line) for line in max(log.glob("*.json")).read_text().splitlines())
    return [each[action] for each in actions if action in each]


def size(files: list[dict[str, Any]]) -> int:
    return sum(each["size"] for each in files)


def test_clustering_rewrites_new_files_and_less_than_a_file_of_old_ones(spark: SparkSession, tmp_path: Path) -> None:
    files, log = DeltaFiles(spark, str(tmp_path / "rows"), LAYOUT), tmp_path / "rows" / "_delta_log"
    old = []
    for number in range(BATCHES):
        files.append(batch(spark, number), "series", number)
        new = size(last_change(log, "add"))
        files.optimize()
        old.append(size(last_change(log, "remove")) - new)
    assert max(old) < FILE_BYTES
    assert files.now().count() == BATCHES * ROWS


def test_the_first_rows_make_a_clustered_table(spark: SparkSession, tmp_path: Path) -> None:
    files, log = DeltaFiles(spark, str(tmp_path / "rows"), LAYOUT), tmp_path / "rows" / "_delta_log"
    files.append(batch(spark, 0), "series", 0)
    files.optimize()
    assert {each["tags"]["ZCUBE_ZORDER_BY"] for each in last_change(log, "add")} == {'["date","owner"]'}
