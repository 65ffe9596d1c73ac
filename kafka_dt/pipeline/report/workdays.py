"""Owners that work by day, as people do, and when their day is.

    days = workdays(usage, deeds)           # `who`, `day_begins`
    who = people(usage, days)               # `who`
    visits.join(days, "who").where(is_in_day(F.col("since")))
    uses = with_at_work(uses, days)         # `at_work`
    uses = with_first_week(uses, clients, days)     # `first_week`
    uses = without_new_places_of_work(uses, usage)
    hours = office_hours(days)              # `hour`
    rows = with_in_office(rows, "since", days)      # `in_office`
    rows = out_of_office(rows, "since", days)

Such an owner makes `_SHARE` of its uses in the same `_HOURS` hours of the day, in `_PARTS` different hours at least: of
the uses of its tokens, or of its logins without one. If both have a day, that of the tokens counts, because people have
programs that renew their tokens at any hour. Of a use with few logins the first and the last hour count alone; if more
than `_HOURS` of a day lie between, so does the hour in the middle.

Programs may work by day, too. Such an owner is a person if at most a share `_WEEKENDS` of the days on which it logs in
are Saturdays or Sundays (UTC). Logins without a token decide if they are on `_OWN_DAYS` days or more, and all logins
otherwise. Where the weekend is on other days, people count as programs.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import DAY_H, hour_number, is_public, ok, with_most
from kafka_dt.pipeline.report.lives import TOLD, days_of, hours_of
from kafka_dt.pipeline.report.networks import ZoneKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_HOURS: Final = 10
"""Eight, and some days begin later."""
_SHARE: Final = 0.85
"""A program that works all day has less than half of its uses in such hours."""
_WEEK: Final = timedelta(days=7)
_WEEKENDS: Final = 1 / 5
"""A program that runs every day has 2 of 7. In the west of America Friday evening is Saturday in UTC: 1 of 6."""
_OWN_DAYS: Final = 5
"""A working week."""
_PARTS: Final = 5
"""A job that runs once or twice a day has its hours, but they are no day."""


def workdays(usage: DataFrame, deeds: DataFrame) -> DataFrame:
    """Give the owners that work by day (`who`), and in which hour of the day (UTC) they begin (`day_begins`).

    Args:
        usage: where tokens were used, as `lives.logins_by_place` makes it.
        deeds: what each principal did on each day, as `deeds.deeds_by_day` makes it; its logins count.
    """
    begin, end = (hour_number(F.col(name)) for name in ("first_seen", "last_seen"))
    told = F.col("last_seen") < F.col("first_seen") + F.lit(TOLD)
    middle = F.when((end - begin > _HOURS) & (end - begin < DAY_H), F.floor((begin + end) / 2))
    few = F.array_distinct(F.array_compact(F.array(begin, middle, end)))
    long = F.when(F.col("logins") < DAY_H, few).otherwise(F.sequence(begin, begin + F.lit(DAY_H - 1)))
    in_use = F.when(told, hours_of()).otherwise(long)
    by_token = usage.where(F.col("token_id").isNotNull()).select("who", F.explode(in_use).alias("number"))
    in_day = F.when(F.col("deeds") * 2 <= end - begin, few).otherwise(F.sequence(begin, end))
    own = deeds.where(ok(EventType.LOGIN)).select(F.col("principal").alias("who"), F.explode(in_day).alias("number"))
    uses = own.withColumn("by_token", F.lit(False)).unionByName(by_token.withColumn("by_token", F.lit(True)))
    of_day = F.pmod("number", F.lit(DAY_H)).alias("hour")
    hours = uses.groupBy("who", "by_token", of_day).agg(F.count("*").alias("uses"))
    begins = F.transform(
        F.sequence(F.lit(0), F.lit(_HOURS - 1)), lambda each: F.pmod(F.col("hour") - each, F.lit(DAY_H))
    )
    days = (
        hours.withColumn("begin", F.explode(begins))
        .groupBy("who", "by_token", "begin")
        .agg(F.sum("uses").alias("uses"))
    )
    busiest = days.groupBy("who", "by_token").agg(
        with_most("begin", "uses").alias("day_begins"), F.max("uses").alias("in_day")
    )
    return (
        hours.groupBy("who", "by_token")
        .agg(F.sum("uses").alias("uses"), F.count("*").alias("hours"))
        .join(busiest, ["who", "by_token"])
        .where((F.col("in_day") >= F.col("uses") * F.lit(_SHARE)) & (F.col("hours") >= _PARTS))
        .groupBy("who")
        .agg(with_most("day_begins", "by_token").alias("day_begins"))
    )


def people(usage: DataFrame, days: DataFrame) -> DataFrame:
    """Give the people among the owners that work by day (`who`).

    Args:
        usage: where principals logged in, as `lives.logins_by_place` makes it.
        days: as `workdays` makes it.
    """
    is_own = F.col("token_id").isNull().alias("own")
    used = usage.join(days.select("who"), "who").select("who", is_own, F.explode(days_of()).alias("date")).distinct()
    own_day, at_weekend = F.when(F.col("own"), F.col("date")), F.dayofweek("date").isin(1, 7)
    counted = used.groupBy("who").agg(
        F.count_distinct(own_day).alias("own_days"),
        F.count_distinct(F.when(at_weekend, own_day)).alias("own_weekends"),
        F.count_distinct("date").alias("all_days"),
        F.count_distinct(F.when(at_weekend, F.col("date"))).alias("all_weekends"),
    )
    own, every = (F.col(f"{whose}_weekends") <= F.col(f"{whose}_days") * _WEEKENDS for whose in ("own", "all"))
    return counted.where(F.when(F.col("own_days") >= _OWN_DAYS, own).otherwise(every)).select("who")


def is_in_day(instant: Column) -> Column:
    """Whether an instant is in the day of the owner of a row of `workdays`."""
    return F.pmod(F.hour(instant) - F.col("day_begins"), F.lit(DAY_H)) < _HOURS


def is_inside() -> Column:
    """Whether a use with `wide` and `zone_kind` is in a private network that no file of networks calls foreign."""
    return ~is_public(F.col("wide")) & (F.col("zone_kind") != ZoneKind.FOREIGN.value)


def with_at_work(uses: DataFrame, days: DataFrame) -> DataFrame:
    """Add whether the owner of a use works by day, and is there in its day, in a private network (`at_work`).

    A network that a file calls foreign is no such network.

    Args:
        uses: has `who`, `wide`, `zone_kind`, `first_seen` and `last_seen`.
        days: as `workdays` makes it.
    """
    in_day = is_in_day(F.col("first_seen")) & is_in_day(F.col("last_seen"))
    at_work = F.coalesce(in_day, F.lit(False)) & is_inside()
    return uses.join(days, "who", "left").withColumn("at_work", at_work).drop("day_begins")


def with_first_week(rows: DataFrame, clients: DataFrame, days: DataFrame) -> DataFrame:
    """Add whether a use is by day, by an owner that works by day, in the first week of the owner (`first_week`).

    A week shows where a person works, and with what.

    Args:
        rows: has `who` and `first_seen`.
        clients: where principals were, as `lives.clients_by_zone` makes it.
        days: as `workdays` makes it.
    """
    known = clients.groupBy("who").agg((F.min("first_seen") + F.lit(_WEEK)).alias("week_ends"))
    by_day = is_in_day(F.col("first_seen")) & (F.col("first_seen") < F.col("week_ends"))
    at_day = days.join(known, "who")
    first_week = F.coalesce(by_day, F.lit(False))
    return rows.join(at_day, "who", "left").withColumn("first_week", first_week).drop("day_begins", "week_ends")


def without_new_places_of_work(uses: DataFrame, usage: DataFrame) -> DataFrame:
    """Leave out uses of people at work, at an address at which they log in without a token in the week after.

    They do that with the same library: they have a new notebook, or another desk. A thief has their token alone. In the
    first week, when no place is known, any address of the zone will do: a VPN gives another one each day.

    Args:
        uses: has `who`, `zone`, `address`, `software`, `first_seen`, and the columns of `with_at_work` and
            `with_first_week`.
        usage: where principals logged in, as `lives.logins_by_place` makes it, with zones.
    """
    there = ["who", "zone", "software"]
    of_use = [*there, "address", "first_seen", "at_work"]
    own = usage.where(F.col("token_id").isNull()).select(
        *there, F.col("address").alias("own_address"), F.explode(days_of()).alias("day")
    )
    began, week_later = F.to_date("first_seen"), F.to_date(F.col("first_seen") + F.lit(_WEEK))
    is_soon = (F.col("day") > began) & (F.col("day") <= week_later)
    is_there = F.col("first_week") | (F.col("own_address") == F.col("address"))
    new = uses.where("at_work").join(own, there).where(is_soon & is_there)
    return uses.join(new.select(*of_use).distinct(), of_use, "left_anti")


def office_hours(days: DataFrame) -> DataFrame:
    """Give the hours of the day (`hour`, UTC) that are in the days of half as many owners as in the busiest one."""
    every = F.explode(F.transform(F.sequence(F.lit(0), F.lit(_HOURS - 1)), _hour_of_day)).alias("hour")
    at_work = days.select(every).groupBy("hour").agg(F.count("*").alias("owners"))
    most = at_work.agg(F.max("owners").alias("most"))
    return at_work.crossJoin(F.broadcast(most)).where(F.col("owners") * 2 >= F.col("most")).select("hour")


def with_in_office(rows: DataFrame, instant: str, days: DataFrame) -> DataFrame:
    """Add whether an instant of a row is in the hours of the company (`in_office`); no, if it has no hours."""
    hours = office_hours(days).agg(F.collect_set("hour").alias("office"))
    in_office = F.array_contains("office", F.hour(instant))
    return rows.crossJoin(F.broadcast(hours)).withColumn("in_office", in_office).drop("office")


def out_of_office(rows: DataFrame, instant: str, days: DataFrame) -> DataFrame:
    """Keep rows with an instant outside the hours of the company; none if it has no hours."""
    hours = office_hours(days).agg(F.collect_set("hour").alias("office"))
    is_out = (F.size("office") > 0) & ~F.array_contains("office", F.hour(instant))
    return rows.crossJoin(F.broadcast(hours)).where(is_out).drop("office")


def _hour_of_day(number: Column) -> Column:
    return F.pmod(F.col("day_begins") + number, F.lit(DAY_H)).cast("int")
