"""Tokens are used over the Internet, where no other principal ever is, and their owner goes on elsewhere.

    visits = lone_visits(seen, known_for, known_days)
    uses = lone_uses_of_partners(seen, known_for)

*Visits* are those of people while they are elsewhere. A person who travels logs in there without a token, to get one,
or stays for longer than a day (`_BRIEF`), and is not in another network between two logins there that are `_AT_ONCE`
apart or less. By day, a notebook in the office may go on. A thief has the token alone.

*Partners* are programs whose logins come over the Internet, `_OUTSIDE` of them at least, and at any hour. A partner
that moves to a new network logs in there without a token as well, or stays for longer than `_SHORT`. One that passes
its token on does neither. One with such uses on more than `_ON_DAYS` days changes its networks often.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import DAY_H, UNKNOWN, distinct_in, distinct_over, is_public, ok
from kafka_dt.pipeline.report.lives import days_of, hours_of
from kafka_dt.pipeline.report.workdays import is_in_day

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_BRIEF: Final = timedelta(days=1)
"""Who is on a trip stays for a night."""
_OUTSIDE: Final = 0.9
"""A program of the company uses the Internet only when its own lines are down, so for few of its logins."""
_AROUND_THE_CLOCK_H: Final = 20
"""Hours of the day in which a program logs in; a person at home has fewer."""
_OFTEN: Final = 50
"""Logins that show the lines of a partner; it makes some each day."""
_SHORT: Final = timedelta(days=2)
"""A partner that moves to a new network stays for longer."""
_ON_DAYS: Final = 2
"""A partner with such uses on more days changes its networks often."""
_AT_ONCE: Final = timedelta(hours=2)
"""Less than the way to another place and back."""


def lone_visits(seen: Observed, known_for: timedelta, known_days: int) -> DataFrame:
    """Give the uses of such tokens in large networks (/16, of IPv6 /48), outside the day of owners that work by day.

    Args:
        seen: what the report has computed.
        known_for: how long an owner has to be known before.
        known_days: on how many days it has to be seen.

    Returns:
        Those rows of `usage`, with since when the owner is known (`known_since`).
    """
    networks = (
        seen.usage.where(is_public(F.col("wide")))
        .groupBy("wide")
        .agg(
            F.count_distinct("who").alias("principals"),
            F.min("who").alias("who"),
            F.min("first_seen").alias("came"),
            F.max("last_seen").alias("left"),
            F.bool_or(F.col("token_id").isNull()).alias("explained"),
        )
    )
    is_brief = F.col("left") <= F.col("came") + F.lit(_BRIEF)
    visits = networks.where((F.col("principals") == 1) & is_brief & ~F.col("explained")).join(seen.workdays, "who")
    is_one_day = F.to_date("came") == F.to_date("left")
    by_day = is_in_day(F.col("came")) & is_in_day(F.col("left")) & is_one_day
    visits = seen.work("visits", visits.where(~by_day).select("who", "wide", "came", "left"))
    of_people = seen.usage.join(visits.select("who").distinct(), "who", "left_semi")
    known = of_people.groupBy("who").agg(F.min("first_seen").alias("known_since"), F.max("last_seen").alias("until"))
    spans = of_people.select("who", F.explode(days_of()).alias("day")).groupBy("who")
    known = known.join(spans.agg(F.count_distinct("day").alias("days")), "who").where(F.col("days") >= known_days)
    late = (
        visits.join(known, "who")
        .where(F.col("came") >= F.col("known_since") + F.lit(known_for))
        .where(F.col("until") > F.col("left") + F.lit(_BRIEF))
    )
    at_once = _at_once(seen, seen.work("late_visits", late))
    return seen.usage.join(at_once, ["who", "wide"])


def lone_uses_of_partners(seen: Observed, known_for: timedelta) -> DataFrame:
    """Give the uses of partners' tokens in a large network in which the partner is for two days at most.

    Args:
        seen: what the report has computed.
        known_for: how long a partner has to be known before.

    Returns:
        Those rows of `usage`, with since when the owner is known (`known_since`).
    """
    is_outside = is_public(F.col("wide"))
    hours = F.array_distinct(F.transform(hours_of(), lambda hour: F.pmod(hour, F.lit(DAY_H))))
    outside = (
        seen.usage.groupBy("who")
        .agg(
            F.min("first_seen").alias("known_since"),
            F.max("last_seen").alias("until"),
            F.sum("logins").alias("logins"),
            F.sum(F.when(is_outside, F.col("logins"))).alias("outside"),
        )
        .where((F.col("logins") >= _OFTEN) & (F.col("outside") >= F.col("logins") * _OUTSIDE))
        .join(seen.workdays, "who", "left_anti")
        .select("who", "known_since", "until")
    )
    outside = seen.work("outside", outside)
    # The hours of each use are many, and few owners come from outside.
    of_day = F.size(distinct_in(hours)).alias("hours")
    around_the_clock = seen.usage.join(outside.select("who"), "who", "left_semi").groupBy("who").agg(of_day)
    partners = outside.join(around_the_clock.where(F.col("hours") >= _AROUND_THE_CLOCK_H).select("who"), "who")
    lines = (
        seen.usage.where(is_outside)
        .join(partners, "who")
        .groupBy("who", "wide", "known_since", "until")
        .agg(
            F.min("first_seen").alias("came"),
            F.max("last_seen").alias("left"),
            F.bool_or(F.col("token_id").isNull()).alias("explained"),
        )
        .where(~F.col("explained") & (F.col("left") <= F.col("came") + F.lit(_SHORT)))
        .where(F.col("came") >= F.col("known_since") + F.lit(known_for))
        .where(F.col("until") > F.col("left") + F.lit(_BRIEF))
        .withColumn("days", distinct_over(F.to_date("came"), "who"))
        .where(F.col("days") <= _ON_DAYS)
        .select("who", "wide", "known_since")
    )
    alone = seen.usage.groupBy("zone").agg(F.count_distinct("who").alias("principals")).where("principals = 1")
    return seen.usage.join(lines, ["who", "wide"]).join(alone.select("zone"), "zone")


def _at_once(seen: Observed, visits: DataFrame) -> DataFrame:
    """Give the visits between two logins of which the owner logs in elsewhere: `who`, `wide`, `known_since`."""
    logins = seen.events.where(ok(EventType.LOGIN)).select(
        F.coalesce("owner", "principal").alias("who"),
        F.coalesce("client_address", F.lit(UNKNOWN)).alias("address"),
        "time",
    )
    of_visits = F.broadcast(visits.withColumnRenamed("wide", "lone"))
    meanwhile = logins.join(of_visits, "who").where(F.col("time").between(F.col("came"), F.col("left")))
    placed = seen.zones.of(seen.work("meanwhile", meanwhile))
    there = F.when(F.col("wide") == F.col("lone"), F.col("time"))
    in_order = Window.partitionBy("who", "lone").orderBy("time")
    before = F.last(there, ignorenulls=True).over(in_order.rowsBetween(Window.unboundedPreceding, 0))
    after = F.first(there, ignorenulls=True).over(in_order.rowsBetween(0, Window.unboundedFollowing))
    elsewhere = placed.withColumns({"before": before, "after": after}).where(F.col("wide") != F.col("lone"))
    soon = elsewhere.where(F.col("after") <= F.col("before") + F.lit(_AT_ONCE))
    return soon.select("who", F.col("lone").alias("wide"), "known_since").distinct()
