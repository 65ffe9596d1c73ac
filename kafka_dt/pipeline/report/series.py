"""Long tails: the names that matter most, and all others as one.

    named = with_top(rows, "owner")

A cluster may have a million owners; a plot shows eight, and a query keeps no more than that in its result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OTHER: Final = "other"
NOBODY: Final = "(nobody)"
"""Where there is none, as of a token without renewers."""
TOP: Final = 7
"""How many names a plot shows beside `OTHER`; as many colours can be told apart."""


def top_names(rows: DataFrame, by: str, limit: int = TOP) -> DataFrame:
    """Find the most frequent values of a column: `by` and `count`, the most frequent first."""
    counted = rows.groupBy(by).agg(F.count("*").alias("count"))
    return counted.orderBy(F.desc("count"), by).limit(limit)


def with_top(rows: DataFrame, by: str, limit: int = TOP) -> DataFrame:
    """Add the column `series`: the value of `by` if it is among the most frequent ones, else `OTHER`."""
    top = top_names(rows, by, limit).select(F.col(by), F.col(by).alias("_top"))
    joined = rows.join(F.broadcast(top), by, "left")
    return joined.withColumn("series", F.coalesce("_top", F.lit(OTHER))).drop("_top")
