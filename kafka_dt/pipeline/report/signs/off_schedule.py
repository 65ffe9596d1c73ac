"""A token is used by one machine, hours before or after its job works.

A job that runs at the same hours every day has plainly ended outside of them. The hours of an owner are those in which
its tokens are used on `schedule_share` of its days, and on `schedule_days` at least, with an hour before and after. It
has to be seen on `schedule_known` days. An owner with more than `schedule_hours` such hours has no schedule; nor has
one whose machines work in them on less than `schedule_kept` of their days, such as a stream that logs in when it gets a
token.

Some honest uses are at other hours: a job is run again, or for many days of the past. Then it runs as it always does,
on several machines, or with a new token. So a use outside the hours is a sign only if the job works on
`schedule_machines` machines as a rule, one machine alone uses the owner's tokens within `apart` of then, and the token
was made more than `fresh` before. These uses are quiet: those of a token that `schedule_machines` machines begin to use
outside the hours, at whatever times (a long run); those that last for 23 hours or longer; and those of three owners or
more within an hour, each on a machine of its own (an outage is over).

A *start* is all logins within a minute, `start_logins` at most. These starts are quiet:

- one with the newest token of its requester, and with the library, the kind of client id and from the zone that the
  owner's tokens had for a day: on a machine that works at the job's hours too, or on one of the cluster, on which jobs
  of `node_owners` owners run with the same library, on as many days. Where less than `machines_stay` of the machines
  come again on another day, as in pods, any machine will do.
- one in the hour after the job's hours, with a library and a kind of client id that the owner's tokens had in that
  zone, on such a machine: it is late. If it is one login alone, any machine will do.

A single login by day with another client, on a machine on which the token was used an hour before, is quiet: an
engineer looks into the job.

The rule looks at the whole table, so also at later days. A stage that an engineer runs again on one machine looks like
a thief.

Not seen: a thief at the job's hours, one with three machines, one who stays for a day, one in the job's zone with its
library that starts once with the newest token on a machine of the job or in a pod, and the tokens of people, of
programs that work all day, and of jobs on a machine or two.
"""

# The work is on one row for each token, address and client.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import DAY_H, at_share, distinct, first_and_last, hour_number, some, with_most
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.late_runs import ONE_START, is_short, outages, with_usual_clients, without_looks
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_token, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


@dataclass(frozen=True, slots=True)
class ScheduleThresholds:
    """When a job has plainly ended for the day."""

    schedule_days: int = threshold(3, "Days that show an hour of a job")
    """Two may be a job that was run again."""
    schedule_share: float = threshold(0.2, "... and the share of its days")
    """A job that runs once a week has an hour on one day of seven, and no others on the rest."""
    schedule_hours: int = threshold(12, "Hours of a day with an hour around them in which a job works, at most")
    """A program that works for longer has no plain end."""
    schedule_kept: float = threshold(
        0.75, "Share of the days of a job's machines on which they work in its hours, at least"
    )
    """It is late now and then, or run again."""
    schedule_known: int = threshold(5, "Days on which a job with a schedule was seen")
    """A working week."""
    schedule_machines: int = threshold(3, "Machines of a run of the job, as a rule")
    """A job on one machine or two looks like a thief when it is run again."""
    apart: timedelta = threshold(timedelta(hours=2), "Time around a use in which no other machine uses a token")
    """The machines of a run come within an hour or two."""
    fresh: timedelta = threshold(timedelta(hours=1), "Age of a token that is not made for the use")
    """Who makes a token uses it at once."""
    machines_stay: float = threshold(0.75, "Share of the machines of a job that come again on another day")
    """Of a job on fixed machines nearly all do, of a job in pods few."""
    node_owners: int = threshold(5, "Owners whose jobs run on a machine of a cluster, on as many days")
    """A host on which people work has fewer."""
    start_logins: int = threshold(6, "Logins of a client within the minute in which it starts, at most")
    """A cluster has more brokers, and a client that starts needs few of them."""


def off_schedule(seen: Observed, thresholds: ScheduleThresholds) -> DataFrame:
    """Find machines that use tokens outside the hours of their jobs; one finding for each owner and machine."""
    by_token = seen.usage.where(F.col("token_id").isNotNull())
    odd = without_looks(_at_odd_hours(by_token, seen, thresholds), by_token, seen.workdays)
    return _findings(_without_outages(seen.work("odd_hours", odd)))


def _without_outages(odd: DataFrame) -> DataFrame:
    """Leave out hours, and those next to them, in which several owners come at odd hours, each on its own machine."""
    hours = odd.withColumn("hour", hour_number(F.col("first_seen")))
    return hours.join(outages(hours, "hour", ("who", "address")), "hour", "left_anti").drop("hour")


def _at_odd_hours(by_token: DataFrame, seen: Observed, thresholds: ScheduleThresholds) -> DataFrame:
    """Give the uses by one machine outside the hours of owners with a schedule."""
    schedules = seen.work("schedules", _schedules(by_token, thresholds))
    uses = by_token.join(schedules, "who")
    seconds = int(thresholds.apart.total_seconds())
    around = Window.partitionBy("who").orderBy(F.unix_seconds("first_seen")).rangeBetween(-seconds, seconds)
    rows = uses.withColumn("alone", F.min("address").over(around) == F.max("address").over(around))
    at_odd_hours = ~_in_hours("first_seen") & ~_in_hours("last_seen")
    odd = seen.work("odd", with_usual_clients(rows.where(F.col("alone") & is_short() & at_odd_hours), seen))
    odd = odd.join(_long_runs(odd, uses, thresholds), "token_id", "left_anti")
    is_old = F.coalesce(F.col("made") + F.lit(thresholds.fresh) < F.col("first_seen"), F.lit(True))
    there = Window.partitionBy("who", "address", "token_id")
    quick = F.max("last_seen").over(there) <= F.min("first_seen").over(there) + F.lit(ONE_START)
    logins = F.sum("logins").over(there)
    once = quick & (logins <= thresholds.start_logins)
    odd = seen.work("old", odd.where(is_old).withColumns({"once": once, "single": logins == 1}))
    odd = odd.join(_nodes(by_token, odd, thresholds), ["address", "software"], "left").fillna(False, ["node"])
    of_job = F.coalesce(F.col("works") | (F.col("stay") < thresholds.machines_stay), F.lit(False))
    at_work = of_job | F.col("node")
    hour_before = (F.hour("first_seen") + DAY_H - 1) % DAY_H
    is_late = F.array_contains("hours", hour_before) & (F.col("client_since") < F.col("first_seen"))
    usual = (is_late & (F.col("single") | (F.col("once") & at_work))) | (F.col("once") & F.col("as_ever") & at_work)
    return _with_machines(odd, uses).where(~usual)


def _long_runs(odd: DataFrame, uses: DataFrame, thresholds: ScheduleThresholds) -> DataFrame:
    """Give the tokens of odd uses that several machines begin to use outside the hours, one after another."""
    others = uses.join(odd.select("token_id").distinct(), "token_id", "left_semi").where(~_in_hours("first_seen"))
    tokens = others.groupBy("token_id").agg(F.count_distinct("address").alias("machines"))
    return tokens.where(F.col("machines") >= thresholds.schedule_machines).select("token_id")


def _with_machines(odd: DataFrame, uses: DataFrame) -> DataFrame:
    """Say whether machines work at the hours of their jobs (`works`), and what share of a job's machines come again."""
    at_work = uses.where(_in_hours("first_seen") | _in_hours("last_seen")).join(
        odd.select("who").distinct(), "who", "left_semi"
    )
    again = F.to_date(F.max("last_seen")) > F.to_date(F.min("first_seen"))
    machines = at_work.groupBy("who", "address").agg(again.cast("int").alias("again"))
    stay = machines.groupBy("who").agg(F.avg("again").alias("stay"))
    works = machines.select("who", "address", F.lit(True).alias("works"))
    rows = odd.join(stay, "who", "left").join(works, ["who", "address"], "left")
    return rows.fillna(False, ["works"])


def _nodes(by_token: DataFrame, odd: DataFrame, thresholds: ScheduleThresholds) -> DataFrame:
    """Give the machines of a cluster (`address`), on which jobs of several owners run on several days (`node`)."""
    there = by_token.join(odd.select("address", "software").distinct(), ["address", "software"], "left_semi")
    nodes = there.groupBy("address", "software").agg(
        F.count_distinct("who").alias("owners"), F.count_distinct(F.to_date("first_seen")).alias("days")
    )
    node = F.least("owners", "days") >= thresholds.node_owners
    return nodes.where(node).select("address", "software", F.lit(True).alias("node"))


def _schedules(by_token: DataFrame, thresholds: ScheduleThresholds) -> DataFrame:
    """Tell the hours of owners that have a schedule, and on how many machines their jobs run as a rule."""
    # Made distinct before the hours are listed: thousands of uses of a job have the same hours.
    ends = (F.date_trunc("hour", name).alias(name) for name in ("first_seen", "last_seen"))
    spans = by_token.select("who", "address", *ends, is_short().alias("short")).distinct()
    in_use = spans.select("who", "address", F.explode(_hours()).alias("instant"))
    day, hour = F.to_date("instant").alias("day"), F.hour("instant").alias("hour")
    by_machine = in_use.select("who", "address", day, hour).distinct()
    worked = by_machine.select("who", "day", "hour").distinct()
    known = worked.groupBy("who").agg(F.count_distinct("day").alias("days"))
    is_usual = (F.col("times") >= thresholds.schedule_days) & (
        F.col("times") >= F.col("days") * F.lit(thresholds.schedule_share)
    )
    nearby = F.explode(F.array(*((F.col("hour") + DAY_H + each) % DAY_H for each in (-1, 0, 1)))).alias("near")
    hours = (
        worked.groupBy("who", "hour")
        .agg(F.count("*").alias("times"))
        .join(known.where(F.col("days") >= thresholds.schedule_known), "who")
        .where(is_usual)
        .select("who", "days", nearby)
        .groupBy("who", "days")
        .agg(distinct("near").alias("hours"))
        .where(F.size("hours") <= thresholds.schedule_hours)
    )
    # Days of machines are counted, so that a thief who logs in all day does not take the job's hours away.
    in_hours = F.bool_or(F.array_contains("hours", F.col("hour")))
    days = by_machine.join(hours, "who").groupBy("who", "address", "day").agg(in_hours.cast("int").alias("in_hours"))
    kept = days.groupBy("who").agg(F.avg("in_hours").alias("kept"))
    hours = hours.join(kept.where(F.col("kept") >= thresholds.schedule_kept).select("who"), "who")
    runs = by_token.groupBy("who", F.date_trunc("hour", "first_seen").alias("run")).agg(
        F.count_distinct("address").alias("machines")
    )
    usual = runs.groupBy("who").agg(at_share("machines", 0.5).alias("usual_machines"))
    return hours.join(usual.where(F.col("usual_machines") >= thresholds.schedule_machines), "who")


def _in_hours(instant: str) -> Column:
    """Whether an instant is at the hours of a job."""
    return F.array_contains("hours", F.hour(instant))


def _hours() -> Column:
    """Give the hours between the first and the last login of a use; of one that takes days the ends alone."""
    between = F.sequence("first_seen", "last_seen", F.expr("INTERVAL 1 HOUR"))
    return F.when(F.col("short"), between).otherwise(F.array("first_seen", "last_seen"))


def _findings(uses: DataFrame) -> DataFrame:
    rows = uses.groupBy(F.col("who").alias("owner"), "address", "zone").agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        with_most("token_id", "logins").alias("token_id"),
        F.count_distinct("token_id").alias("tokens"),
        F.slice(distinct(F.hour("first_seen")), 1, SHOWN).alias("odd_hours"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        *(F.max(name).alias(name) for name in ("hours", "days", "usual_machines")),
    )
    return finding_rows(
        rows,
        subject="token_id",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("used in the hours (UTC)", F.array_join(F.col("odd_hours").cast("array<string>"), ", ")),
            ("hours of the job, and one around them", F.array_join(F.col("hours").cast("array<string>"), ", ")),
            ("days on which the job was seen", F.col("days")),
            ("from one machine", F.col("address")),
            ("in zone", F.col("zone")),
            ("machines of the job, as a rule", F.col("usual_machines")),
            ("tokens", F.col("tokens")),
            ("with libraries", some(F.col("clients"))),
        ],
    )


OFF_SCHEDULE: Final = Sign(
    kind="off_schedule",
    title="Used outside the hours of its job",
    meaning="One machine uses the token when its job never works.",
    finds="one machine that uses the token of a job when the job never works",
    misses="a thief at the job's hours, one login that looks like a late run, and owners without a schedule",
    subject_type=SubjectType.TOKEN,
    thresholds=ScheduleThresholds(),
    rule=off_schedule,
    about_use=True,
    steps=(
        advise("Ask the owner whether an engineer ran a part of the job again by hand. If not:"),
        end_token,
        follow_address,
    ),
)
