"""Detours: an owner comes from another place while it is silent at home, because its line or its cluster is down.

    away = detours(seen, visits)            # those visits that are detours

A visit is one to a zone that is not the owner's home (`peers.homes_of`). It is a detour if its clients are usual, and
each absence from home in which the owner is in that zone fits. Clients are usual if the owner had the library together
with the kind of client id at home before. An absence is the time from a login at home to the next one there; it fits if
all of this holds:

- *It is not usual.* On `_CLOSED` of the other days, at most, and on `_RARE` of the same days of other weeks, the owner
  is silent at home at that time for about as long (`_ABOUT`). A thief that comes at night, on a Sunday, or between two
  runs of a job makes no detour. An owner that is known for no other week has none either.
- *The work goes on.* The longest time in it without any login of the owner is a small part of it (`_PART`), or usual
  (`_USUAL`) at home at that time of the day or of the week. A thief that comes once while a job is down makes no
  detour.
- It takes `_SHORTEST`.

Owners of the same home that are away in the same zone at the same time fail over together. Then each may be as silent
on up to half of the other days: two services are seldom silent at once.

Not seen: a thief with the usual program that begins when the work at home breaks off and goes on as the work did, and
one that comes to the place of a detour during it. If an owner logs in at random times, a single login of a thief with
its program is taken for a detour about once in 25 times.
"""

# Logins are read of owners with a visit alone, and of the logins of a minute in a zone the first one is enough. An
# absence is compared with pauses of about `_SHORTEST` and more, of which there are few a day, however many logins an
# owner makes.

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import UNKNOWN, ok

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_SHORTEST: Final = timedelta(minutes=30)
"""A restart takes less."""
_ABOUT: Final = 0.6
"""A daily job that comes from elsewhere once is silent at home for twice as long as usual, give or take some hours; and
when a line goes down, a login is late by some part of the usual pause."""
_CLOSED: Final = 2 / 7
"""A shop or an office is closed on two days of a week."""
_RARE: Final = 1 / 4
"""There was a holiday in that month, or the line was down at that time before."""
_USUAL: Final = 1 / 2
"""More often than not."""
_PART: Final = 1 / 4
"""A part of an absence that is no pause of the work: in a long absence the longest part is longer than usual."""
_MINUTE_S: Final = 60
_DAY_S: Final = 86_400
_PERIODS: Final = {"days": _DAY_S, "weeks": 7 * _DAY_S}


def detours(seen: Observed, visits: DataFrame) -> DataFrame:
    """Give those visits that are detours.

    Args:
        seen: the homes of owners, and their logins.
        visits: `who` and `zone`; several rows may be of one visit.

    Returns:
        `who` and `zone`, one row for each visit.
    """
    away = visits.select("who", "zone").distinct().join(seen.homes, "who").where(F.col("zone") != F.col("home"))
    usual = seen.work("usual_visits", _with_usual_clients(away, seen.clients))
    stretches = seen.work("stretches", _stretches(usual, seen))
    absences = seen.work("absences", _judged(stretches, seen.homes))
    fits = F.col("fits") | (F.col("may_fit") & F.col("together").isNotNull())
    return (
        _by_zone(absences)
        .join(usual, ["who", "zone"])
        .join(_together(absences), ["who", "zone", "begin"], "left")
        .groupBy("who", "zone")
        .agg(F.bool_and(fits).alias("fits"))
        .where("fits")
        .drop("fits")
    )


def _with_usual_clients(visits: DataFrame, clients: DataFrame) -> DataFrame:
    """Keep the visits all of whose clients the owner had at home before."""
    names = ["who", "software", "client"]
    homes = visits.select("who", F.col("home").alias("zone")).distinct()
    had = clients.join(homes, ["who", "zone"]).groupBy(*names).agg(F.min("first_seen").alias("had_since"))
    there = clients.join(visits.select("who", "zone"), ["who", "zone"]).join(had, names, "left")
    usual = F.coalesce(F.col("had_since") < F.col("first_seen"), F.lit(False))
    return there.groupBy("who", "zone").agg(F.bool_and(usual).alias("usual")).where("usual").drop("usual")


def _stretches(visits: DataFrame, seen: Observed) -> DataFrame:
    """Make one row of the time from each login at home to the next, for the owners of visits.

    The instants are seconds since 1970: `begin`, null before the first one at home; `end`, null after the last one;
    `arrived`, the first login in one of the other `zones`; `idle_since`, the begin of the longest part without any
    login, which takes `idle`.
    """
    owners = visits.select("who").distinct()
    places = seen.usage.join(owners, "who", "left_semi").select("who", "address", "zone").distinct()
    logins = (
        seen.events.where(ok(EventType.LOGIN))
        .select(
            F.coalesce("owner", "principal").alias("who"),
            F.coalesce("client_address", F.lit(UNKNOWN)).alias("address"),
            F.unix_seconds("time").alias("at"),
        )
        .join(owners, "who", "left_semi")
        .join(places, ["who", "address"])
        .groupBy("who", "zone", F.floor(F.col("at") / _MINUTE_S).alias("minute"))
        .agg(F.min("at").alias("at"))
        .join(seen.homes.select("who", "home"), "who")
        .withColumn("at_home", F.col("zone") == F.col("home"))
    )
    in_order = Window.partitionBy("who").orderBy("at", "zone")
    home_before = F.last(F.when(F.col("at_home"), F.col("at")), ignorenulls=True)
    steps = logins.withColumns(
        {
            "begin": home_before.over(in_order.rowsBetween(Window.unboundedPreceding, -1)),
            "last": F.lag("at").over(in_order),
        }
    )
    parts = F.struct((F.col("at") - F.col("last")).alias("idle"), F.col("last").alias("idle_since"))
    stretches = steps.groupBy("who", "begin").agg(
        F.max(F.when(F.col("at_home"), F.col("at"))).alias("end"),
        F.min(F.when(~F.col("at_home"), F.col("at"))).alias("arrived"),
        F.collect_set(F.when(~F.col("at_home"), F.col("zone"))).alias("zones"),
        F.max(parts).alias("longest"),
    )
    return stretches.select("who", "begin", "end", "arrived", "zones", "longest.idle", "longest.idle_since")


def _judged(stretches: DataFrame, homes: DataFrame) -> DataFrame:
    """Tell of each absence whether it fits (`fits`), and whether it does if another owner is away too (`may_fit`)."""
    absences = stretches.where(F.col("arrived").isNotNull()).join(homes, "who")
    length, shortest = F.col("end") - F.col("begin"), _SHORTEST.total_seconds()
    pauses = stretches.where(length >= shortest * _ABOUT).select(
        "who", F.col("begin").alias("pause_begin"), F.col("end").alias("pause_end")
    )
    rows = _with_shares(absences, pauses, "silent", F.col("arrived"), length)
    rows = _with_shares(rows, pauses, "idle", F.col("idle_since") + F.floor(F.col("idle") / 2), F.col("idle"))
    is_usual = F.greatest("idle_days", "idle_weeks") >= _USUAL
    goes_on = (F.col("idle") < shortest) | (F.col("idle") <= length * _PART) | is_usual
    may_fit = (length >= shortest) & goes_on & (F.col("silent_weeks") <= _RARE) & (F.col("silent_days") <= _USUAL)
    # Of an owner that was not at home before, or does not come back, nothing is told.
    judged = {
        "may_fit": F.coalesce(may_fit, F.lit(False)),
        "fits": F.coalesce(may_fit & (F.col("silent_days") <= _CLOSED), F.lit(False)),
    }
    return rows.withColumns(judged).select("who", "home", "home_wide", "zones", "begin", "end", *judged)


def _with_shares(absences: DataFrame, pauses: DataFrame, name: str, at: Column, length: Column) -> DataFrame:
    """Tell on which share of the other days and weeks the owner is silent at home at a time for about as long.

    The columns `<name>_days` and `<name>_weeks` are null if there are none.
    """
    rows = absences.withColumns({"moment": at, "length": length})
    is_other = F.col("pause_begin") != F.col("begin")
    as_long = F.col("pause_end") - F.col("pause_begin") >= F.col("length") * _ABOUT
    silent = (
        rows.join(pauses, "who")
        .where(is_other & as_long)
        .groupBy("who", "begin")
        .agg(*(F.sum(_times("pause_begin", "pause_end", each)).alias(unit) for unit, each in _PERIODS.items()))
    )
    first, last = (F.unix_seconds(name).alias(name) for name in ("home_since", "home_until"))
    known = rows.withColumns({"first": first, "last": last})
    of_all = {unit: _times("first", "last", each) - _times("begin", "end", each) for unit, each in _PERIODS.items()}
    shares = {f"{name}_{unit}": F.when(every > 0, F.coalesce(unit, F.lit(0)) / every) for unit, every in of_all.items()}
    return (
        known.join(silent, ["who", "begin"], "left")
        .withColumns(shares)
        .drop("moment", "length", "first", "last", *_PERIODS)
    )


def _times(begin: str, end: str, period_s: int) -> Column:
    """Count the instants between two that are a number of periods before or after `moment`."""
    first, last = (F.floor((F.col(each) - F.col("moment")) / period_s) for each in (begin, end))
    return last - first


def _by_zone(absences: DataFrame) -> DataFrame:
    return absences.withColumn("zone", F.explode("zones")).drop("zones")


def _together(absences: DataFrame) -> DataFrame:
    """Give the absences in which an owner of the same home is away in the same zone."""
    each = _by_zone(absences.where("may_fit"))
    others = each.select(
        "zone", *(F.col(name).alias(f"their_{name}") for name in ("who", "home", "home_wide", "begin", "end"))
    )
    # The machines of one cluster may be in several zones, as far as these are learned.
    same_home = (F.col("home") == F.col("their_home")) | (F.col("home_wide") == F.col("their_home_wide"))
    at_once = (F.col("begin") < F.col("their_end")) & (F.col("their_begin") < F.col("end"))
    return (
        each.join(others, "zone")
        .where((F.col("who") != F.col("their_who")) & same_home & at_once)
        .select("who", "zone", "begin")
        .distinct()
        .withColumn("together", F.lit(True))
    )
