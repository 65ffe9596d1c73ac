"""Bursts of refused logins: windows of time in which a place tries many different names, and more than it usually does.

    bursts(guesses, by="address", what="token_id", window=HOUR, many=5, usual=Usual(5.0, timedelta(days=7)))

One burst is windows that are near to each other. A scanner that runs every week is told once, if `together` says so.

`guesses` has a row for each attempt, or for several: `first_seen`, `last_seen`, `tries`, `address`, `software`, and the
columns named by `by` and `what`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import distinct, first_and_last, with_most

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
_NEIGHBOURS: Final = 2
"""Windows that are so near to each other are one burst, at least."""
_DEVIATIONS: Final = 5
"""How many standard deviations of a Poisson distribution a window is above what is usual: chance does not do that."""


@dataclass(frozen=True, slots=True)
class Usual:
    """When a window has more than is usual."""

    factor: float
    """How many times more."""
    before: timedelta
    """The time before it that shows what is usual."""


def bursts(
    guesses: DataFrame,
    *,
    by: str,
    what: str,
    window: timedelta,
    many: int,
    usual: Usual,
    together: timedelta = timedelta(),
) -> DataFrame:
    """Find the windows in which a place tries many names, and many more than it usually does.

    Windows that follow each other are one burst, with one between them at the most, and so are windows that are
    `together` apart or less.

    Returns:
        A row for each burst, which is one window or several: `place`, `first_seen`, `last_seen`, `events`, `most`
        (different names in a window), `usual` (on average), `examples`, `clients`, `addresses` (how many in a window),
        `address` (the one with the most tries in a window), `days` (how many have such a window).
    """
    seconds = int(window.total_seconds())
    by_name = guesses.groupBy(
        F.col(by).alias("place"),
        F.floor(F.unix_seconds("first_seen") / seconds).cast("long").alias("window"),
        *("address", what),
    ).agg(*first_and_last(), F.sum("tries").alias("tries"), F.min("software").alias("software"))
    of_address = F.sum("tries").over(Window.partitionBy("place", "window", "address"))
    windows = (
        by_name.withColumn("of_address", of_address)
        .groupBy("place", "window")
        .agg(
            *first_and_last(),
            F.count_distinct(what).alias("names"),
            F.sum("tries").alias("tries"),
            F.array(F.min(what), F.max(what)).alias("examples"),
            F.min("software").alias("software"),
            F.count_distinct("address").alias("addresses"),
            with_most("address", "of_address").alias("address"),
            F.max("of_address").alias("of_address"),
        )
    )
    length = int(usual.before.total_seconds()) // seconds
    earlier = Window.partitionBy("place").orderBy("window").rangeBetween(-length, -1)
    # An earlier burst counts as one of the smallest size that is a sign beside such a usual number.
    counted = F.least("names", F.lit(many * usual.factor))
    average = F.coalesce(F.sum(counted).over(earlier), F.lit(0)) / F.lit(length)
    # Where there are a few now and then, as many as `many` come together by chance, too.
    chance = F.when(F.col("usual") > 0, F.col("usual") + F.lit(_DEVIATIONS) * F.sqrt("usual") + 1).otherwise(0)
    burst = F.col("names") >= F.greatest(F.lit(many), F.col("usual") * F.lit(usual.factor), chance)
    return _joined(windows.withColumn("usual", average).where(burst), max(_NEIGHBOURS, together // window))


def _joined(windows: DataFrame, apart: int) -> DataFrame:
    """Make one row of windows whose numbers are no more than `apart`."""
    in_order = Window.partitionBy("place").orderBy("window")
    begins = F.coalesce(F.col("window") - F.lag("window").over(in_order) > apart, F.lit(True))
    return (
        windows.withColumn("begins", begins.cast("int"))
        .withColumn("burst", F.sum("begins").over(in_order))
        .groupBy("place", "burst")
        .agg(
            *first_and_last(),
            F.sum("tries").alias("events"),
            F.max("names").alias("most"),
            F.min("usual").alias("usual"),
            F.array_distinct(F.flatten(distinct("examples"))).alias("examples"),
            distinct("software").alias("clients"),
            F.max("addresses").alias("addresses"),
            with_most("address", "of_address").alias("address"),
            F.count_distinct(F.to_date("first_seen")).alias("days"),
        )
    )
