"""A token is used by one machine, hours before or after its job works.

A job that runs at the same hours every day has plainly ended outside of them. The hours of an owner are those in which
its tokens are used on `schedule_share` of its days, and on `schedule_days` at least, with an hour before and after. An
owner with more than `schedule_hours` such hours has no schedule.

Some honest uses are at other hours: a job is run again, or for many days of the past. Then it runs as it always does,
on several machines, or with a new token. So a use is a sign only if all of this holds: the job works on
`schedule_machines` machines as a rule; one machine alone uses the owner's tokens within `apart` of then; and the token
was made more than `fresh` before.

The rule looks at the whole table, so also at later days. A stage that an engineer runs again on one machine looks like
a thief.

Not seen: a thief at the job's hours, and the tokens of people, of programs that work all day, and of jobs on a machine
or two.
"""

# The work is on one row for each token, address and client of owners with a schedule.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import distinct, first_and_last, some, with_most
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_token, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_DAY_H: Final = 24


@dataclass(frozen=True, slots=True)
class ScheduleThresholds:
    """When a job has plainly ended."""

    schedule_days: int = threshold(3, "Days that show an hour of a job")
    """Two may be a job that was run again."""
    schedule_share: float = threshold(0.2, "... and the share of its days")
    """A job that runs once a week has an hour on one day of seven, and no others on the rest."""
    schedule_hours: int = threshold(12, "Hours of a day with an hour around them in which a job works, at most")
    """A program that works for longer has no plain end."""
    schedule_known: int = threshold(5, "Days on which a job with a schedule was seen")
    """A working week."""
    schedule_machines: int = threshold(3, "Machines of a run of the job, as a rule")
    """A job on one machine or two looks like a thief when it is run again."""
    apart: timedelta = threshold(timedelta(hours=2), "Time around a use in which no other machine uses a token")
    """The machines of a run come within an hour or two."""
    fresh: timedelta = threshold(timedelta(hours=1), "Age of a token that is not made for the use")
    """Who makes a token uses it at once."""


def off_schedule(seen: Observed, thresholds: ScheduleThresholds) -> DataFrame:
    """Find machines that use tokens outside the hours of their jobs; one finding for each owner and machine."""
    by_token = seen.usage.where(F.col("token_id").isNotNull())
    schedules = seen.work("schedules", _schedules(by_token, thresholds))
    uses = by_token.join(schedules, "who")
    seconds = int(thresholds.apart.total_seconds())
    around = Window.partitionBy("who").orderBy(F.unix_seconds("first_seen")).rangeBetween(-seconds, seconds)
    rows = uses.withColumn("alone", F.min("address").over(around) == F.max("address").over(around))
    at_odd_hours = ~F.array_contains("hours", F.hour("first_seen")) & ~F.array_contains("hours", F.hour("last_seen"))
    odd = rows.where(F.col("alone") & _is_short() & at_odd_hours)
    made = seen.lives.select("token_id", F.when(F.col("created_known"), F.col("created_at")).alias("made"))
    is_old = F.coalesce(F.col("made") + F.lit(thresholds.fresh) < F.col("first_seen"), F.lit(True))
    return _findings(odd.join(made, "token_id").where(is_old))


def _schedules(by_token: DataFrame, thresholds: ScheduleThresholds) -> DataFrame:
    """Tell the hours of owners that have a schedule, and on how many machines their jobs run as a rule."""
    # Made distinct before the hours are listed: thousands of uses of a job have the same hours.
    ends = (F.date_trunc("hour", name).alias(name) for name in ("first_seen", "last_seen"))
    spans = by_token.select("who", *ends, _is_short().alias("short")).distinct()
    in_use = spans.select("who", F.explode(_hours()).alias("instant"))
    worked = in_use.select("who", F.to_date("instant").alias("day"), F.hour("instant").alias("hour")).distinct()
    known = worked.groupBy("who").agg(F.count_distinct("day").alias("days"))
    is_usual = (F.col("times") >= thresholds.schedule_days) & (
        F.col("times") >= F.col("days") * F.lit(thresholds.schedule_share)
    )
    nearby = F.explode(F.array(*((F.col("hour") + _DAY_H + each) % _DAY_H for each in (-1, 0, 1)))).alias("near")
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
    runs = by_token.groupBy("who", F.date_trunc("hour", "first_seen").alias("run")).agg(
        F.count_distinct("address").alias("machines")
    )
    usual = runs.groupBy("who").agg(F.percentile_approx("machines", 0.5).alias("usual_machines"))
    return hours.join(usual.where(F.col("usual_machines") >= thresholds.schedule_machines), "who")


def _hours() -> Column:
    """Give the hours between the first and the last login of a use; of one that takes days the ends alone."""
    between = F.sequence("first_seen", "last_seen", F.expr("INTERVAL 1 HOUR"))
    return F.when(F.col("short"), between).otherwise(F.array("first_seen", "last_seen"))


def _is_short() -> Column:
    """Whether a use is over within a day; of longer ones it is not known at which hours they were."""
    return F.col("last_seen") < F.col("first_seen") + F.expr("INTERVAL 23 HOURS")


def _findings(uses: DataFrame) -> DataFrame:
    rows = uses.groupBy(F.col("who").alias("owner"), "address", "zone", "hours", "days", "usual_machines").agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        with_most("token_id", "logins").alias("token_id"),
        F.count_distinct("token_id").alias("tokens"),
        F.slice(distinct(F.hour("first_seen")), 1, SHOWN).alias("odd_hours"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
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
    meaning="One machine uses the token at an hour at which its job never works.",
    finds="one machine that uses the token of a job on many machines, when the job never works",
    misses="a thief at the job's hours, and owners without a schedule",
    subject_type=SubjectType.TOKEN,
    thresholds=ScheduleThresholds(),
    rule=off_schedule,
    steps=(
        advise("Ask the owner whether an engineer ran a part of the job again by hand. If not:"),
        end_token,
        follow_address,
    ),
)
