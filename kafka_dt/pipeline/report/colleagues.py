"""Who else was at the place of a use: an engineer may have tried the token, or taken it.

    uses = with_colleagues(uses, seen.habits)       # with `colleagues`
    uses = without_engineers(uses, seen)

*Colleagues.* Others had just logged in there in the same way: an engineer on call tries the token of a job that fails.
An engineer may also have taken it, so these are named.

*At work.* One of the colleagues alone was there: a principal that works by day, in that hour of its day and of the
company's (`workdays.office_hours`), in a zone that it knows. It has just logged in at the address. The logins with the
token are over within an hour (`_LOOKED_INTO`), the owner does not work by day itself, and the colleague is at no such
use of another owner on that day: an engineer looks into a job.

*In the job's place.* An engineer also looks into a job in its own pod or on its host. There a client of the job has
used the same token within a day (`_JUST_THERE`), and no other owner's token is used unlike before on that day. No
colleague is seen; the rest is as above.

*On a shared host.* Engineers on call look into jobs from a bastion, at any hour. It is a private address that several
people share (`hosts.with_shared`), and is no NAT. A colleague is there, and no other owner's token is used there unlike
before on that day.

Limits: an engineer who steals the token of a job, logs in with it at work within an hour and keeps the connection, is
left out. So is a thief on the engineer's machine; one who is on a shared host for less than an hour, or keeps the
connection; one on the machine of a service that works by day; and one in the job's own pod who comes in the hours of
the company and is gone within an hour.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import (
    distinct,
    distinct_over,
    ok,
)
from kafka_dt.pipeline.report.habits import AT_HAND, OWN, OWN_USE, foreign_zones, is_at_hand
from kafka_dt.pipeline.report.hosts import with_shared
from kafka_dt.pipeline.report.networks import ZoneKind
from kafka_dt.pipeline.report.workdays import is_in_day, is_inside, office_hours

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.habits import Habits
    from kafka_dt.pipeline.report.signs.sign import Observed

_LOOKED_INTO: Final = timedelta(hours=1)
"""An engineer finds the mistake, or hands it on."""
_JUST_THERE: Final = timedelta(days=1)
"""A job that runs daily is there on each day."""


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
    """Leave out the uses of a job's token in which a person at work looks into the job for a short time.

    Args:
        uses: has `who`, `token_id`, `zone`, `address`, `software`, `client`, `first_seen`, `last_seen`, and the column
            of `with_colleagues`.
        seen: what the company does.
    """
    of_use = Window.partitionBy("who", "address", "date")
    is_short = F.max("last_seen").over(of_use) <= F.min("first_seen").over(of_use) + F.lit(_LOOKED_INTO)
    rows = uses.withColumns({"date": F.to_date("first_seen"), "hour": F.hour("first_seen")})
    short = (
        rows.withColumn("engineer", F.when(F.size("colleagues") == 1, F.get("colleagues", F.lit(0))))
        .withColumns({"is_short": is_short, "owners_there": _owners("address"), "owners": _owners("engineer")})
        .where("is_short")
        .join(seen.workdays, "who", "left_anti")
        .join(foreign_zones(seen.usage), "zone", "left_anti")
    )
    looked = seen.work("looked_into", short)
    by_day = looked.join(office_hours(seen.workdays), "hour")
    is_machine = is_inside() & (F.col("zone_kind") != ZoneKind.NAT.value)
    alone_there = looked.where((F.col("owners_there") == 1) & is_machine & F.col("colleagues").isNotNull())
    shared = with_shared(alone_there, seen.habits, "address", people=seen.people)
    on_hosts = shared.where("on_shared").select(*OWN_USE)
    at_work = _of_colleague(by_day, seen).unionByName(_in_the_jobs_place(by_day, seen))
    engineers = at_work.unionByName(on_hosts)
    return uses.join(engineers.distinct(), OWN_USE, "left_anti").select(uses.columns)


def _owners(at: str) -> Column:
    """Count the owners of whose tokens a use on the same day is at the same address, or by the same engineer."""
    return distinct_over("who", at, "date")


def _of_colleague(uses: DataFrame, seen: Observed) -> DataFrame:
    """Give the uses at whose address one colleague at work has just logged in."""
    logins = seen.deeds.where(ok(EventType.LOGIN) & F.col("token_id").isNull()).select(
        *("address", "date", F.col("principal").alias("engineer")),
        F.col("first_seen").alias("own_first"),
        (F.col("last_seen") + F.lit(AT_HAND)).alias("own_last"),
    )
    places = seen.clients.where(~F.col("by_token")).groupBy(F.col("who").alias("engineer"), "zone")
    return (
        uses.where(F.col("owners") == 1)
        .join(logins, ["engineer", "address", "date"])
        .where(F.col("first_seen").between(F.col("own_first"), F.col("own_last")))
        .join(places.agg(F.to_date(F.min("first_seen")).alias("there_since")), ["engineer", "zone"])
        .where(F.col("there_since") < F.col("date"))
        .join(seen.workdays.withColumnRenamed("who", "engineer"), "engineer")
        .where(is_in_day(F.col("first_seen")))
        .select(*OWN_USE)
    )


def _in_the_jobs_place(uses: DataFrame, seen: Observed) -> DataFrame:
    """Give the uses at an address at which another client has just used the same token."""
    job = seen.usage.join(uses.select("token_id", "address").distinct(), ["token_id", "address"], "left_semi").select(
        *("token_id", "address", F.concat_ws(" ", "software", "client").alias("job_client")),
        F.col("first_seen").alias("job_first"),
        (F.col("last_seen") + F.lit(_JUST_THERE)).alias("job_until"),
    )
    just_there = (F.col("job_first") < F.col("first_seen")) & (F.col("job_until") > F.col("first_seen"))
    return (
        uses.where(F.col("owners_there") == 1)
        .join(job, ["token_id", "address"])
        .where(just_there & (F.col("job_client") != F.concat_ws(" ", "software", "client")))
        .select(*OWN_USE)
    )


def colleagues() -> Column:
    """Aggregate the column of `with_colleagues`; null if there were none."""
    names = F.array_distinct(F.flatten(F.collect_list("colleagues")))
    return F.when(F.size(names) > 0, F.array_sort(names)).alias("colleagues")
