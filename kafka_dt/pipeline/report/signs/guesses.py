"""Many wrong secrets of one token or principal, where its owner never logs in.

    found = guesses(tries, seen, of="token_id", many=8, history=timedelta(days=1))

`tries` has a row for each attempt, or for several: `owner`, the column named by `of`, `date`, `address`, `software`,
`first_seen`, `last_seen`, `deeds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.deeds import known_since
from kafka_dt.pipeline.report.expressions import distinct, first_and_last, with_most
from kafka_dt.pipeline.report.signs.finding import SHOWN

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


def guesses(tries: DataFrame, seen: Observed, *, of: str, many: int, history: timedelta) -> DataFrame:
    """Find what is tried `many` times in a day from zones where its owner never logs in, neither before nor later.

    Args:
        tries: as above.
        seen: tells where owners log in.
        of: the column of what is guessed.
        many: tries in a day, from all addresses together.
        history: how long an owner is known that has shown where it logs in.

    Returns:
        A row for each: `of`, `owner`, `known_since`, `first_seen`, `last_seen`, `events`, `most` (in a day), `address`
        (the one with the most), `addresses`, `zones`, `clients`, and `homes`, where the owner logs in.
    """
    homes = seen.clients.select(F.col("who").alias("owner"), "zone").distinct()
    known = known_since(seen.deeds, seen.clients).withColumnRenamed("principal", "owner")
    strange = (
        seen.zones.of(tries)
        .join(homes, ["owner", "zone"], "left_anti")
        .join(known, "owner")
        .where(F.col("known_since") + F.lit(history) < F.col("first_seen"))
    )
    in_a_day = F.sum("deeds").over(Window.partitionBy(of, "date"))
    of_address = F.sum("deeds").over(Window.partitionBy(of, "address"))
    found = (
        strange.withColumns({"in_a_day": in_a_day, "of_address": of_address})
        .where(F.col("in_a_day") >= many)
        .groupBy(*dict.fromkeys((of, "owner")), "known_since")
        .agg(
            *first_and_last(),
            F.sum("deeds").alias("events"),
            F.max("in_a_day").alias("most"),
            with_most("address", "of_address").alias("address"),
            F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
            F.slice(distinct("zone"), 1, SHOWN).alias("zones"),
            F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        )
    )
    there = homes.join(found.select("owner"), "owner", "left_semi")
    return found.join(there.groupBy("owner").agg(F.slice(distinct("zone"), 1, SHOWN).alias("homes")), "owner", "left")
