"""A principal that works by day logs in very often in a night, from one or two machines: it copies data.

A principal works by day if it makes nearly all uses of its tokens, or nearly all its logins without one, in ten hours
of the day (`workdays.workdays`). The logins of a night are those of uses that begin and end between two such days.
They are a sign if there are `burst_logins` of them, and `burst_factor` times as many as on the principal's busiest day,
from `burst_machines` at most; and if the principal was seen on `burst_days` days before.

A principal that copies data before it leaves uses its own rights, program and place.

These nights are quiet:

- The principal has more than `burst_nights` of them: this is how it works.
- `burst_together` principals have theirs in the same night: they work on the same thing, and know of each other.
- Many machines log in: a load test, or a job that is run again.

The severity is medium: the principal may do all this.

Not seen: data that is copied by day, or over few connections; a night in which the client uses a token that it uses by
day as well, or logs in without a token from the machine and with the library of the day; a burst that begins before
the evening or ends after the morning; and principals that work around the clock.
"""

# The work is on one row for each token, machine and client, and for each day of a principal without a token.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.deeds import own_logins
from kafka_dt.pipeline.report.expressions import (
    DAY_H,
    as_text,
    distinct,
    first_and_last,
    hour_number,
    some,
    with_most,
)
from kafka_dt.pipeline.report.lives import days_of
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_token, follow_principal, threshold
from kafka_dt.pipeline.report.workdays import is_in_day

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_DAY: Final = timedelta(hours=23)
"""A use that takes longer is in the day and in the night, and says of neither how many logins it had."""
_USE: Final = ("who", "address", "token_id", "software", "first_seen", "last_seen", "logins")


@dataclass(frozen=True, slots=True)
class BurstThresholds:
    """When a night is busier than any day."""

    burst_logins: int = threshold(20, "Logins in a night that are a burst")
    """A program that is left running logs in now and then."""
    burst_factor: float = threshold(2.0, "... for each login on its busiest day, at least")
    """A busy day is not twice as busy as all others."""
    burst_machines: int = threshold(2, "Machines of a burst, at most")
    """Who copies data has a notebook and a laptop; a job has more."""
    burst_days: int = threshold(3, "Days that show how busy a principal is")
    """Fewer may all be quiet ones."""
    burst_nights: int = threshold(3, "Nights with a burst, at most")
    """More are a habit."""
    burst_together: int = threshold(3, "Principals with a burst in the same night, which explain each other")
    """A night before a release has several; a thief is one."""


def off_hours_bursts(seen: Observed, thresholds: BurstThresholds) -> DataFrame:
    """Find principals that work by day and are very busy in a night; one finding a principal."""
    # A night has the number of the day before it.
    day, until = (
        F.floor((hour_number(F.col(name)) - F.col("day_begins")) / F.lit(DAY_H)) for name in ("first_seen", "last_seen")
    )
    by_night = ~is_in_day(F.col("first_seen")) & ~is_in_day(F.col("last_seen")) & (day == until)
    rows = seen.work("people", _uses(seen).join(seen.workdays, "who").withColumns({"by_night": by_night, "day": day}))
    nights = seen.work("nights", _nights(rows, seen.usage, thresholds))
    return _findings(rows.where("by_night").join(nights, ["who", "day"]))


def _uses(seen: Observed) -> DataFrame:
    """Give the uses that are over within a day, of tokens and without."""
    by_token = seen.usage.where(F.col("token_id").isNotNull() & _is_short()).select(*_USE)
    return by_token.unionByName(own_logins(seen.deeds))


def _nights(rows: DataFrame, usage: DataFrame, thresholds: BurstThresholds) -> DataFrame:
    """Give the nights with a burst; `usage` tells how often long uses log in on a day."""
    of_owner = Window.partitionBy("who")
    long = usage.where(F.col("token_id").isNotNull() & ~_is_short()).join(
        rows.select("who").distinct(), "who", "left_semi"
    )
    in_long = long.groupBy("who").agg(F.max(F.col("logins") / F.size(days_of())).alias("in_long"))
    days = rows.groupBy("who", "day").agg(
        F.coalesce(F.sum(F.when(~F.col("by_night"), F.col("logins"))), F.lit(0)).alias("by_day"),
        F.coalesce(F.sum(F.when(F.col("by_night"), F.col("logins"))), F.lit(0)).alias("in_night"),
        F.count_distinct(F.when(F.col("by_night"), F.col("address"))).alias("machines"),
    )
    before = of_owner.orderBy("day").rowsBetween(Window.unboundedPreceding, -1)
    known = days.withColumns({"most": F.max("by_day").over(of_owner), "days": F.count("*").over(before)})
    busiest = F.greatest("most", F.ceil(F.coalesce("in_long", F.lit(0))))
    many = F.greatest(F.lit(thresholds.burst_logins), F.col("busiest") * F.lit(thresholds.burst_factor))
    bursts = (
        known.join(in_long, "who", "left")
        .withColumn("busiest", busiest)
        .where(
            (F.col("in_night") >= many)
            & (F.col("machines") <= thresholds.burst_machines)
            & (F.col("days") >= thresholds.burst_days)
        )
    )
    counted = bursts.withColumns(
        {"nights": F.count("*").over(of_owner), "together": F.count("*").over(Window.partitionBy("day"))}
    )
    return counted.where(
        (F.col("nights") <= thresholds.burst_nights) & (F.col("together") < thresholds.burst_together)
    ).select("who", "day", "busiest", "days", "nights")


def _is_short() -> Column:
    return F.col("last_seen") < F.col("first_seen") + F.lit(_DAY)


def _findings(uses: DataFrame) -> DataFrame:
    rows = uses.groupBy("who").agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        with_most("token_id", "logins").alias("token_id"),
        with_most("address", "logins", "token_id").alias("address"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        F.max("day_begins").alias("day_begins"),
        *(F.max(name).alias(name) for name in ("busiest", "nights")),
        F.min("days").alias("days"),
    )
    return finding_rows(
        rows.withColumn("owner", F.col("who")),
        subject="who",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("logins by night", F.col("events")),
            ("nights", F.col("nights")),
            ("logins on its busiest day", F.col("busiest")),
            ("days on which it was seen before", F.col("days")),
            ("its day begins at the hour (UTC)", F.col("day_begins")),
            ("from addresses", some(F.col("addresses"))),
            ("clients", some(F.col("clients"))),
            ("until", as_text(F.col("last_seen"))),
        ],
    )


OFF_HOURS_BURST: Final = Sign(
    kind="off_hours_burst",
    title="Far busier in a night than on any day",
    meaning="A principal that works by day logs in more often in a night than on its busiest day.",
    finds="a principal that works by day and makes twice as many logins in a night as on its busiest day",
    misses="data that is copied by day or over few connections, and principals that work around the clock",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=BurstThresholds(),
    rule=off_hours_bursts,
    steps=(
        advise("Ask the principal what it did in that night. If it was not there, or should not have done it:"),
        end_token,
        advise("If it logged in without a token, change its password or its keytab."),
        follow_principal,
    ),
)
