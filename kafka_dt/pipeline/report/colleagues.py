"""Who else was at the place of a use: an engineer may have tried the token, or taken it.

    uses = with_colleagues(uses, seen.habits)       # with `colleagues`
    uses = without_engineers(uses, seen)

*Colleagues.* Others had just logged in there in the same way: an engineer on call tries the token of a job that fails.
An engineer may also have taken it, so these are named.

*At work.* One of the colleagues alone was there: a principal that works by day, in that hour of its day and of the
company's (`workdays.office_hours`), in a zone that it knows. It has just logged in at the address. The logins with the
token are over within an hour (`_LOOKED_INTO`), the owner does not work by day itself, and the colleague is at no such
use of another owner on that day: an engineer looks into a job.

Limits: an engineer who steals the token of a job, logs in with it at work within an hour and keeps the connection, is
left out; so is a thief on the engineer's machine, and one on the machine of a service that works by day.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import distinct, ok
from kafka_dt.pipeline.report.habits import AT_HAND, OWN, OWN_USE, foreign_zones, is_at_hand
from kafka_dt.pipeline.report.workdays import is_in_day, office_hours

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.habits import Habits
    from kafka_dt.pipeline.report.signs.sign import Observed

_LOOKED_INTO: Final = timedelta(hours=1)
"""An engineer finds the mistake, or hands it on."""


def with_colleagues(uses: DataFrame, habits: Habits) -> DataFrame:
    """Add which others had just logged in without a token at the address of a use, as they do (`colleagues`).

    Args:
        uses: has the columns of `OWN_USE`.
        habits: those of the company.
    """
    others = habits.own_logins.withColumnRenamed("who", "colleague").select("colleague", "address", *OWN)
    there = (
        uses.select(*OWN_USE)
        .distinct()
        .join(others, "address")
        .where((F.col("colleague") != F.col("who")) & is_at_hand())
        .groupBy(*OWN_USE)
        .agg(distinct("colleague").alias("colleagues"))
    )
    return uses.join(there, OWN_USE, "left")


def without_engineers(uses: DataFrame, seen: Observed) -> DataFrame:
    """Leave out the uses of a job's token in which one person at work looks into the job for a short time.

    Args:
        uses: has `who`, `zone`, `address`, `first_seen`, `last_seen`, and the column of `with_colleagues`.
        seen: what the company does.
    """
    alone = uses.where(F.size("colleagues") == 1).select(
        *("who", "zone", "address", "first_seen", "last_seen"),
        F.get("colleagues", F.lit(0)).alias("engineer"),
        F.to_date("first_seen").alias("date"),
        F.hour("first_seen").alias("hour"),
    )
    there, of_engineer = Window.partitionBy("who", "address", "date"), Window.partitionBy("engineer", "date")
    begun, over = F.min("first_seen").over(there), F.max("last_seen").over(there)
    owners = F.size(F.collect_set("who").over(of_engineer))
    short = alone.withColumns({"is_short": over <= begun + F.lit(_LOOKED_INTO), "owners": owners})
    logins = seen.deeds.where(ok(EventType.LOGIN) & F.col("token_id").isNull()).select(
        *("address", "date", F.col("principal").alias("engineer")),
        F.col("first_seen").alias("own_first"),
        (F.col("last_seen") + F.lit(AT_HAND)).alias("own_last"),
    )
    places = seen.clients.where(~F.col("by_token")).groupBy(F.col("who").alias("engineer"), "zone")
    at_work = (
        short.where(F.col("is_short") & (F.col("owners") == 1))
        .join(logins, ["engineer", "address", "date"])
        .where(F.col("first_seen").between(F.col("own_first"), F.col("own_last")))
        .join(places.agg(F.to_date(F.min("first_seen")).alias("there_since")), ["engineer", "zone"])
        .where(F.col("there_since") < F.col("date"))
        .join(seen.workdays.withColumnRenamed("who", "engineer"), "engineer")
        .where(is_in_day(F.col("first_seen")))
        .join(office_hours(seen.workdays), "hour")
        .join(seen.workdays, "who", "left_anti")
        .join(foreign_zones(seen.usage), "zone", "left_anti")
    )
    return uses.join(at_work.select(*OWN_USE).distinct(), OWN_USE, "left_anti").select(uses.columns)


def colleagues() -> Column:
    """Aggregate the column of `with_colleagues`; null if there were none."""
    names = F.array_distinct(F.flatten(F.collect_list("colleagues")))
    return F.when(F.size(names) > 0, F.array_sort(names)).alias("colleagues")
