"""A principal that worked by day is silent for weeks, and then comes back outside the hours of the company alone.

Who leaves a company often keeps an account, and who finds a forgotten account uses it in the evening. A person who
comes back from holidays comes by day. So this is a sign, if all of it holds:

- The principal came on `dormant_days` days, made `dormant_logins` logins, and began `dormant_by_day` of its uses in the
  hours of the company (`workdays.office_hours`): of its tokens, and of its logins without one.
- It was silent for `dormant` then, for the first time.
- For `dormant_back` after that it is there outside these hours only, and once, at least, more than an hour away from
  any hour of the day at which it was there before.

The severity is medium: the principal may have come back to a night on call.

Not seen: an account that comes back by day; one that was never seen before, or for fewer days; one whose token was in
use before and after, from the same machine; and an absence that began before the table.
"""

# The work is on one row for each token, machine and client, and for each day of a principal without a token.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.deeds import own_logins
from kafka_dt.pipeline.report.expressions import DAY_H, as_text, distinct, first_and_last, some, with_most
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_all_of_owner, follow_principal, threshold
from kafka_dt.pipeline.report.workdays import with_in_office

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


@dataclass(frozen=True, slots=True)
class DormantThresholds:
    """When a principal was forgotten."""

    dormant: timedelta = threshold(timedelta(days=14), "Time in which a principal is silent that is forgotten")
    """Most holidays are shorter, and those that are not end by day."""
    dormant_days: int = threshold(2, "Days on which it was seen before")
    """One shows no hours."""
    dormant_logins: int = threshold(10, "... and its logins until then")
    """A job that runs once a month has few."""
    dormant_by_day: float = threshold(0.85, "... and the share of its uses in the hours of the company")
    """A person stays late now and then; a program works at all hours."""
    dormant_back: timedelta = threshold(timedelta(days=3), "Time after its return in which it does not come by day")
    """Who comes back on the last evening of the holidays works on the next morning, or after a weekend."""


def dormant_principals(seen: Observed, thresholds: DormantThresholds) -> DataFrame:
    """Find principals that come back so; one finding a principal."""
    uses = seen.work("uses", with_in_office(_uses(seen), "first_seen", seen.workdays))
    until_then = Window.partitionBy("who").orderBy("first_seen").rowsBetween(Window.unboundedPreceding, -1)
    breaks = uses.withColumn("gone", F.max("last_seen").over(until_then))
    returns = (
        breaks.where(F.col("first_seen") >= F.col("gone") + F.lit(thresholds.dormant))
        .groupBy("who")
        .agg(F.min("first_seen").alias("back"), F.min("gone").alias("gone"))
    )
    returns = seen.work("returns", returns)
    before = uses.join(returns, "who").where(F.col("last_seen") <= F.col("gone"))
    habits = before.groupBy("who").agg(
        F.count_distinct(F.to_date("first_seen")).alias("days"),
        F.sum("logins").alias("logins_before"),
        F.avg(F.col("in_office").cast("int")).alias("by_day"),
        F.array_distinct(F.flatten(F.collect_set(F.array(F.hour("first_seen"), F.hour("last_seen"))))).alias("hours"),
    )
    known = habits.where(
        (F.col("days") >= thresholds.dormant_days)
        & (F.col("logins_before") >= thresholds.dormant_logins)
        & (F.col("by_day") >= thresholds.dormant_by_day)
    )
    after = uses.join(returns.join(known, "who"), "who").where(
        (F.col("first_seen") >= F.col("back")) & (F.col("first_seen") < F.col("back") + F.lit(thresholds.dormant_back))
    )
    apart = F.transform("hours", lambda hour: F.pmod(F.hour("first_seen") - hour, F.lit(DAY_H)))
    odd = ~F.exists(apart, lambda hours: hours.isin(0, 1, DAY_H - 1))
    of_principal = Window.partitionBy("who")
    judged = after.withColumns(
        {"ever_in_office": F.bool_or("in_office").over(of_principal), "ever_odd": F.bool_or(odd).over(of_principal)}
    )
    return _findings(judged.where(F.col("ever_odd") & ~F.col("ever_in_office")))


def _uses(seen: Observed) -> DataFrame:
    """Give the uses of tokens, and the logins without one."""
    logins = own_logins(seen.deeds).where(F.col("who").isNotNull())
    return seen.usage.where(F.col("token_id").isNotNull()).select(*logins.columns).unionByName(logins)


def _findings(uses: DataFrame) -> DataFrame:
    rows = uses.groupBy("who").agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        with_most("token_id", "logins").alias("token_id"),
        with_most("address", "logins", "token_id").alias("address"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        F.slice(distinct(F.hour("first_seen")), 1, SHOWN).alias("at_hours"),
        *(F.max(name).alias(name) for name in ("gone", "days", "hours")),
    )
    hours = F.array_join(F.array_sort("hours").cast("array<string>"), ", ")
    return finding_rows(
        rows.withColumn("owner", F.col("who")),
        subject="who",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("back in the hours (UTC)", F.array_join(F.col("at_hours").cast("array<string>"), ", ")),
            ("last seen before", as_text(F.col("gone"))),
            ("until then in the hours (UTC)", hours),
            ("days on which it was seen until then", F.col("days")),
            ("from addresses", some(F.col("addresses"))),
            ("clients", some(F.col("clients"))),
        ],
    )


DORMANT_PRINCIPAL: Final = Sign(
    kind="dormant_principal",
    title="Back at night after weeks of silence",
    meaning="A principal that worked by day was silent for weeks and comes back outside the hours of the company only.",
    finds="a principal that worked by day and comes back at night after two weeks of silence",
    misses="an account that comes back by day and one whose silence began before the table",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=DormantThresholds(),
    rule=dormant_principals,
    steps=(
        advise("Ask whether the principal has left, or was on call. If it has left, delete its credentials:"),
        end_all_of_owner,
        follow_principal,
    ),
)
