"""Visits of operators: a tool on one machine uses tokens of many owners now and then, and did so from the first days.

    usage = without_visits(usage, store.work)

People who look after a cluster try a token of an owner from a jump host, with the same tool each time. To each owner
that is a strange place and a strange program; to the company it is a habit. A use is a visit if its owner makes few of
its logins (`_SHARE`) in that zone with that library. A library at an address is a tool of operators if

- more owners visit there than have their work there, and
- `_OWNERS` of them were visited within `_FIRST_DAYS` after the first of its owners was known, and
- it is in use on `_DAYS` days.

So a thief that begins later, or that brings another library to the jump host, is not among them. One that has the tool
of the operators on their machine is.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import nth
from kafka_dt.pipeline.report.lives import days_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.store import WriteAndRead

_SHARE: Final = 0.1
"""The share of its owner's logins that a visit is, at most."""
_OWNERS: Final = 2
"""One owner's token alone may be in the hands of a thief from the first days on."""
_FIRST_DAYS: Final = timedelta(days=7)
"""Operators look at each cluster every week."""
_DAYS: Final = 5
"""Fewer days are no habit."""


def without_visits(usage: DataFrame, work: WriteAndRead) -> DataFrame:
    """Leave out the uses of tokens that are visits of operators.

    Args:
        usage: where each token was used, as `lives.logins_by_place` makes it, in zones.
        work: writes what is computed. Most companies have no visits, and their usage is not written again.
    """
    visits = work("visits", _visits(usage))
    if visits.isEmpty():
        return usage
    found = F.broadcast(visits.withColumn("is_visit", F.lit(True)))
    rows = usage.join(found, ["who", "address", "software"], "left")
    return work("own_usage", rows.where(F.col("token_id").isNull() | F.col("is_visit").isNull()).drop("is_visit"))


def _visits(usage: DataFrame) -> DataFrame:
    """Give the owners, addresses and libraries of visits."""
    uses = (
        usage.where(F.col("token_id").isNotNull())
        .groupBy("who", "zone", "address", "software")
        .agg(F.sum("logins").alias("logins"), F.min("first_seen").alias("since"))
    )
    of_owner, there = Window.partitionBy("who"), Window.partitionBy("who", "zone", "software")
    is_visit = F.sum("logins").over(there) <= F.sum("logins").over(of_owner) * F.lit(_SHARE)
    uses = uses.withColumns({"is_visit": is_visit, "owner_since": F.min("since").over(of_owner)})
    visited_since = F.when(F.col("is_visit"), F.col("since"))
    tools = (
        uses.groupBy("address", "software")
        .agg(
            F.count(visited_since).alias("visitors"),
            F.count("*").alias("owners"),
            nth(visited_since, _OWNERS).alias("settled_since"),
            F.min("owner_since").alias("known_since"),
        )
        .where(F.col("visitors") * 2 > F.col("owners"))
        .where(F.col("settled_since") <= F.col("known_since") + F.lit(_FIRST_DAYS))
        .select("address", "software")
    )
    days = usage.where(F.col("token_id").isNotNull()).join(F.broadcast(tools), ["address", "software"])
    lasting = (
        days.select("address", "software", F.explode(days_of()).alias("day"))
        .groupBy("address", "software")
        .agg(F.count_distinct("day").alias("days"))
        .where(F.col("days") >= _DAYS)
    )
    return (
        uses.where("is_visit").join(F.broadcast(lasting), ["address", "software"]).select("who", "address", "software")
    )
