"""A token is used by one machine, hours before or after its job works, or after a pause that its job never makes.

Two cases:

- *outside the hours of its job*: a job that runs at the same hours every day has plainly ended outside of them. The
  hours of an owner are those in which its tokens are used on `schedule_share` of its days, and on `schedule_days` at
  least, with an hour before and after. An owner with more than `schedule_hours` such hours has no schedule; nor has one
  whose machines work in them on less than `schedule_kept` of their days, such as a stream that logs in when it gets a
  token.
- *after a pause*: the owner gets a token for each run, and uses it without a pause. The siblings of a token are those
  that the same requester made for the same owner before. If there are `pause_tokens` of them, over `pause_history`, and
  none of them made a pause of more than `sibling_pause`, then a use after a pause of `pause` is a sign, if none of them
  was in use for half as long as this one by then: the job has plainly ended. Pauses are counted in whole hours without
  a login, in tokens that are used for less than 62 hours.

Some honest uses are at other hours: a job is run again, or for many days of the past. Then it runs as it always does,
on several machines, or with a new token. So a use outside the hours is a sign only if all of this holds: the job works
on `schedule_machines` machines as a rule; one machine alone uses the owner's tokens within `apart` of then; and the
token was made more than `fresh` before. A use after a pause is a sign only on one machine. Both are quiet if so many
owners as `pause_owners` come within an hour so, each on a machine of its own: an outage is over.

A job that is late, and a person in the evening, use the newest token: the job has not begun to use one that the same
requester made later. And they come with the library, the kind of client id and from the zone with which the owner's
tokens were used for `usual_client` before. From such a client, with such a token, these are quiet:

- outside the hours: a start, by a machine that works at the job's hours too. Where less than
  `machines_stay` of the machines come again on another day, as in pods, any machine will do; so will a machine of the
  cluster, on which jobs of `node_owners` owners run with the same library, on as many days.
- after a pause: a use at an hour (with an hour before and after) at which other tokens of the owner were used on
  `pause_hour_days` days before.

A use after a pause is quiet, too, if it begins in the day of an owner that works by day, in a private network and with
a library that its tokens had for `usual_client`, and either with a kind of client id that they had for so long or in a
zone in which the owner was for so long: it was a meeting, or a notebook goes on in the morning. So is a start on a
machine on which the owner's tokens were used before with the library, and from which the client is refused `hung_tries`
times later, because the token has ended: a part of the job hangs, and tries again.

A *start* is all logins within `one_start`, `start_logins` at most. One login in the hour after the job's hours is a
late one, with any token and on any machine, if it comes with a library and a kind of client id that the owner's tokens
had in that zone. So is a start on a machine that works for the job.

The rule looks at the whole table, so also at later days. A stage that an engineer runs again on one machine looks like
a thief.

Not seen: a thief at the job's hours that comes soon after its job, a thief in the job's zone with its library that
starts once with the newest token on a machine of the job or in a pod, and the tokens of people, of programs that work
all day, and of jobs on a machine or two whose tokens make pauses.
"""

# The work is on one row for each token, address and client, and on one row for each token.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.report.expressions import (
    DAY_H,
    as_text,
    at_share,
    distinct,
    first_and_last,
    hour_number,
    is_public,
    of_type,
    some,
    union,
    with_most,
)
from kafka_dt.pipeline.report.lives import TOLD, hours_of
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_token, follow_address, threshold
from kafka_dt.pipeline.report.workdays import is_in_day

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

OUTSIDE: Final = "outside the hours of its job"
PAUSED: Final = "after a pause"
_HOUR: Final = timedelta(hours=1)
_HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True)
class ScheduleThresholds:
    """When a job has plainly ended."""

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
    usual_client: timedelta = threshold(timedelta(days=1), "Time since a job uses a place, a library and a client id")
    """On the first day it may be a thief's."""
    machines_stay: float = threshold(0.75, "Share of the machines of a job that come again on another day")
    """Of a job on fixed machines nearly all do, of a job in pods few."""
    node_owners: int = threshold(5, "Owners whose jobs run on a machine of a cluster, on as many days")
    """A host on which people work has fewer."""
    pause: timedelta = threshold(timedelta(hours=4), "Pause of a token whose siblings make none")
    """A run that failed is tried again within a few hours."""
    sibling_pause: timedelta = threshold(timedelta(hours=1), "... but this, at most")
    """A job logs in when it starts and when its parts do, and then it is over."""
    pause_tokens: int = threshold(8, "Siblings that show whether there are pauses")
    """A week of a job that runs daily, and a day."""
    pause_history: timedelta = threshold(timedelta(days=3), "... and for how long")
    """Many runs of one day are one day."""
    pause_factor: float = threshold(
        2.0, "... and times the longest use of theirs, from the first login to the end of the pause"
    )
    """A job that is late takes half as long again."""
    pause_hour_days: int = threshold(2, "Days before on which other tokens are used at the hour after a pause")
    """One may be an outage, or a theft."""
    one_start: timedelta = threshold(
        timedelta(minutes=1), "Time in which a client that starts makes all its connections"
    )
    """It logs in once for each broker that it needs."""
    start_logins: int = threshold(6, "... and how often it logs in, at most")
    """A cluster has more brokers, and a client that starts needs few of them."""
    hung_tries: int = threshold(10, "Refused logins with the ended token at an address where a part of the job hangs")
    """A program that is written well gives up after a few."""
    pause_owners: int = threshold(3, "Owners that come at odd hours, or after a pause, within an hour of an outage")
    """Two jobs may be started again by one engineer."""


def off_schedule(seen: Observed, thresholds: ScheduleThresholds) -> DataFrame:
    """Find machines that use tokens outside the hours of their jobs; one finding for each owner and machine."""
    by_token = seen.usage.where(F.col("token_id").isNotNull())
    at_odd_hours = seen.work("odd_hours", _at_odd_hours(by_token, seen, thresholds).withColumn("case", F.lit(OUTSIDE)))
    at_odd_hours = _without_outages(at_odd_hours, thresholds)
    after_pause = _after_pause(by_token, seen, thresholds).withColumn("case", F.lit(PAUSED))
    return _findings(union(at_odd_hours, after_pause))


def _without_outages(odd: DataFrame, thresholds: ScheduleThresholds) -> DataFrame:
    """Leave out hours, and those next to them, in which several owners come at odd hours, each on its own machine."""
    hours = odd.withColumn("hour", hour_number(F.col("first_seen")))
    return hours.join(_outages(hours, "hour", ("who", "address"), thresholds), "hour", "left_anti").drop("hour")


def _outages(rows: DataFrame, hour: str, of: Sequence[str], thresholds: ScheduleThresholds) -> DataFrame:
    """Give the hours in which, or next to which, each column of `of` has as many values as an outage has owners."""
    near = F.explode(F.array(*(F.col(hour) + each for each in (-1, 0, 1)))).alias(hour)
    fewest = F.array_min(F.array(*(F.count_distinct(name) for name in of)))
    hours = rows.select(*of, near).groupBy(hour).agg(fewest.alias("fewest"))
    return hours.where(F.col("fewest") >= thresholds.pause_owners).select(hour)


def _at_odd_hours(by_token: DataFrame, seen: Observed, thresholds: ScheduleThresholds) -> DataFrame:
    """Give the uses by one machine outside the hours of owners with a schedule."""
    schedules = seen.work("schedules", _schedules(by_token, thresholds))
    uses = by_token.join(schedules, "who")
    seconds = int(thresholds.apart.total_seconds())
    around = Window.partitionBy("who").orderBy(F.unix_seconds("first_seen")).rangeBetween(-seconds, seconds)
    rows = uses.withColumn("alone", F.min("address").over(around) == F.max("address").over(around))
    at_odd_hours = ~_in_hours("first_seen") & ~_in_hours("last_seen")
    odd = seen.work("odd", _with_habits(rows.where(F.col("alone") & _is_short() & at_odd_hours), seen, thresholds))
    odd = odd.join(_long_runs(odd, uses, thresholds), "token_id", "left_anti")
    is_old = F.coalesce(F.col("made") + F.lit(thresholds.fresh) < F.col("first_seen"), F.lit(True))
    there = Window.partitionBy("who", "address", "token_id")
    quick = F.max("last_seen").over(there) <= F.min("first_seen").over(there) + F.lit(thresholds.one_start)
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


def _with_habits(uses: DataFrame, seen: Observed, thresholds: ScheduleThresholds) -> DataFrame:
    """Say when tokens were made, and whether uses are of the newest one, by a client that is usual (`as_ever`)."""
    client = ("who", "zone", "software", "client")
    since = seen.clients.where("by_token").groupBy(*client).agg(F.min("first_seen").alias("client_since"))
    later = Window.partitionBy("owner", "requester").orderBy("created_at", "token_id")
    replaced = F.min("first_login").over(later.rowsBetween(1, Window.unboundedFollowing))
    own = seen.lives.join(uses.select(F.col("who").alias("owner")).distinct(), "owner", "left_semi")
    made = F.when(F.col("created_known"), F.col("created_at"))
    tokens = own.select("token_id", made.alias("made"), replaced.alias("replaced_at"))
    is_newest = F.coalesce(F.col("replaced_at") > F.col("first_seen"), F.lit(True))
    is_usual = F.col("client_since") + F.lit(thresholds.usual_client) <= F.col("first_seen")
    rows = uses.join(tokens, "token_id").join(since, list(client))
    return rows.withColumn("as_ever", is_newest & is_usual)


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


def _after_pause(by_token: DataFrame, seen: Observed, thresholds: ScheduleThresholds) -> DataFrame:
    """Give the uses by one machine after a pause that the siblings of a token never made."""
    tokens = seen.work("pauses", _pauses(by_token))
    outages = _outages(_unusual(tokens, thresholds), "went_on", ("who",), thresholds)
    # What went on after an outage made no pause, so that it does not show one either.
    excused = tokens.join(outages.withColumn("excused", F.lit(True)), "went_on", "left")
    told = {name: F.when(F.col("excused"), F.lit(0)).otherwise(F.col(name)) for name in ("pause_hours", "used_s")}
    odd = seen.work("paused", _unusual(excused.withColumns(told), thresholds))
    went_on = F.timestamp_seconds(F.col("went_on") * F.lit(_HOUR_S))
    rows = by_token.join(odd.drop("who").withColumn("since", went_on), "token_id").where(
        F.col("last_seen") >= F.col("since")
    )
    of_token = Window.partitionBy("token_id")
    one_machine = F.min("address").over(of_token) == F.max("address").over(of_token)
    # A client that was there before the pause as well has logged in after it once, at least.
    logins = F.when(F.col("first_seen") >= F.col("since"), F.col("logins")).otherwise(F.lit(1))
    after = {"logins": logins, "first_seen": F.greatest("first_seen", "since")}
    alone = rows.withColumn("one_machine", one_machine).where("one_machine").withColumns(after)
    usual = _hours_before(odd, by_token, thresholds)
    judged = _with_habits(alone, seen, thresholds).join(usual, "token_id", "left")
    others = judged.where(~(F.col("as_ever") & F.coalesce("at_usual_hour", F.lit(False))))
    in_day = is_in_day(F.col("first_seen")) & ~is_public(F.col("zone"))
    known = _known_for(others.join(seen.workdays, "who", "left"), seen.clients, thresholds)
    at_work = in_day & F.col("library_known") & (F.col("client_known") | F.col("zone_known"))
    rows = known.where(~F.coalesce(at_work, F.lit(False))).drop("day_begins")
    return _without_hung_parts(rows, by_token, seen.deeds, thresholds)


def _without_hung_parts(
    uses: DataFrame, by_token: DataFrame, deeds: DataFrame, thresholds: ScheduleThresholds
) -> DataFrame:
    """Leave out the starts of clients on machines of their jobs that go on with the token when it has ended."""
    ended = (RefusalReason.EXPIRED_TOKEN.value, RefusalReason.UNKNOWN_TOKEN.value)
    refused = deeds.where(of_type(EventType.LOGIN) & F.col("reason").isin(*ended))
    tries = refused.groupBy("token_id", "address").agg(
        F.sum("deeds").alias("tries"), F.min("first_seen").alias("ended")
    )
    machines = by_token.groupBy("who", "address", "software").agg(F.min("first_seen").alias("machine_since"))
    there = Window.partitionBy("token_id", "address")
    # Of a client that was there before the pause it is known in which hour it logged in after it.
    start = F.when(F.col("first_seen") > F.col("since"), F.lit(thresholds.one_start)).otherwise(F.lit(_HOUR))
    goes_on = F.max("last_seen").over(there) > F.min(F.col("first_seen") + start).over(there)
    hangs = (
        (F.col("tries") >= thresholds.hung_tries)
        & (F.col("ended") > F.col("last_seen"))
        & (F.col("machine_since") < F.col("since"))
    )
    judged = uses.join(tries, ["token_id", "address"], "left").join(machines, ["who", "address", "software"])
    of_part = judged.withColumn("hangs", F.coalesce(hangs & ~goes_on, F.lit(False)))
    return of_part.where(~F.col("hangs")).drop("tries", "ended", "machine_since", "hangs")


def _known_for(uses: DataFrame, clients: DataFrame, thresholds: ScheduleThresholds) -> DataFrame:
    """Say whether the owner's tokens had the library and the client id before, and whether it was in the zone."""
    by_token = clients.where("by_token")
    for known, seen, columns in (
        ("library_known", by_token, ("who", "software")),
        ("client_known", by_token, ("who", "software", "client")),
        ("zone_known", clients, ("who", "zone")),
    ):
        since = seen.groupBy(*columns).agg(F.min("first_seen").alias("known_since"))
        is_known = F.col("known_since") + F.lit(thresholds.usual_client) <= F.col("first_seen")
        uses = uses.join(since, list(columns)).withColumn(known, is_known).drop("known_since")
    return uses


def _hours_before(odd: DataFrame, by_token: DataFrame, thresholds: ScheduleThresholds) -> DataFrame:
    """Give the tokens that go on at an hour at which other tokens of their owners were used before."""
    paused = odd.select("who", "token_id", F.col("went_on").alias("hour"))
    others = by_token.where(_is_short()).join(paused.select("who").distinct(), "who", "left_semi")
    used = others.select("who", F.explode(hours_of()).alias("used"), F.col("token_id").alias("other")).distinct()
    apart = F.pmod(F.col("used") - F.col("hour"), F.lit(DAY_H))
    before = (F.col("used") < F.col("hour") - 1) & apart.isin(0, 1, DAY_H - 1) & (F.col("other") != F.col("token_id"))
    days = F.count_distinct(F.floor(F.col("used") / F.lit(DAY_H)))
    return (
        paused.join(used, "who")
        .where(before)
        .groupBy("token_id")
        .agg((days >= thresholds.pause_hour_days).alias("at_usual_hour"))
    )


def _pauses(by_token: DataFrame) -> DataFrame:
    """Make one row of each token: its longest pause, and the hour in which it went on, as a number since 1970."""
    tokens = by_token.groupBy("who", "requester", "token_id").agg(
        *first_and_last(), F.bit_or("hour_bits").alias("hour_bits")
    )
    steps = F.transform(
        F.slice(F.col("in_use"), 2, F.size("in_use")),
        lambda hour, number: F.struct(
            (hour - F.element_at("in_use", number + 1) - 1).alias("pause_hours"), hour.alias("went_on")
        ),
    )
    is_told = F.col("last_seen") < F.col("first_seen") + F.lit(TOLD)
    longest = F.when(is_told & (F.size("in_use") > 1), F.array_max(steps))
    # No pause is longer than the whole use.
    at_most = F.floor((F.unix_seconds("last_seen") - F.unix_seconds("first_seen")) / F.lit(_HOUR_S))
    return (
        tokens.withColumn("in_use", F.when(is_told, hours_of()))
        .withColumn("longest", longest)
        .select(
            "who",
            F.col("requester").alias("maker"),
            "token_id",
            F.col("first_seen").alias("begun"),
            F.when(is_told, F.coalesce("longest.pause_hours", F.lit(0))).otherwise(at_most).alias("pause_hours"),
            F.col("longest.went_on").alias("went_on"),
            (F.unix_seconds("last_seen") - F.unix_seconds("first_seen")).alias("used_s"),
        )
    )


def _unusual(tokens: DataFrame, thresholds: ScheduleThresholds) -> DataFrame:
    """Keep the tokens with a pause whose siblings made none."""
    siblings = Window.partitionBy("who", "maker").orderBy("begun", "token_id")
    before = siblings.rowsBetween(Window.unboundedPreceding, -1)
    return tokens.withColumns(
        {
            "siblings": F.count("*").over(before),
            "siblings_since": F.min("begun").over(before),
            "sibling_hours": F.max("pause_hours").over(before),
            "sibling_s": F.max("used_s").over(before),
        }
    ).where(
        F.col("went_on").isNotNull()
        & (F.col("pause_hours") >= thresholds.pause // _HOUR)
        & (F.col("sibling_hours") <= thresholds.sibling_pause // _HOUR)
        & (F.col("siblings") >= thresholds.pause_tokens)
        & (
            F.col("went_on") * F.lit(_HOUR_S) - F.unix_seconds("begun")
            >= F.col("sibling_s") * F.lit(thresholds.pause_factor)
        )
        & (F.col("siblings_since") + F.lit(thresholds.pause_history) < F.col("begun"))
    )


def _schedules(by_token: DataFrame, thresholds: ScheduleThresholds) -> DataFrame:
    """Tell the hours of owners that have a schedule, and on how many machines their jobs run as a rule."""
    # Made distinct before the hours are listed: thousands of uses of a job have the same hours.
    ends = (F.date_trunc("hour", name).alias(name) for name in ("first_seen", "last_seen"))
    spans = by_token.select("who", "address", *ends, _is_short().alias("short")).distinct()
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


def _is_short() -> Column:
    """Whether a use is over within a day; of longer ones it is not known at which hours they were."""
    return F.col("last_seen") < F.col("first_seen") + F.expr("INTERVAL 23 HOURS")


def _findings(uses: DataFrame) -> DataFrame:
    rows = uses.groupBy(F.col("who").alias("owner"), "address", "zone").agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        with_most("token_id", "logins").alias("token_id"),
        F.count_distinct("token_id").alias("tokens"),
        distinct("case").alias("cases"),
        F.slice(distinct(F.hour("first_seen")), 1, SHOWN).alias("odd_hours"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        *(F.max(name).alias(name) for name in ("hours", "days", "usual_machines")),
        F.max(F.when(F.col("pause_hours").isNotNull(), F.struct("pause_hours", "siblings", "siblings_since"))).alias(
            "pause"
        ),
    )
    siblings = F.format_string("%d since %s", "pause.siblings", as_text(F.col("pause.siblings_since")))
    return finding_rows(
        rows,
        subject="token_id",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("what is unusual", F.array_join("cases", ", ")),
            ("used in the hours (UTC)", F.array_join(F.col("odd_hours").cast("array<string>"), ", ")),
            ("hours of the job, and one around them", F.array_join(F.col("hours").cast("array<string>"), ", ")),
            ("days on which the job was seen", F.col("days")),
            ("hours without a login before it", F.col("pause.pause_hours")),
            ("tokens of the job without such a pause", F.when(F.col("pause").isNotNull(), siblings)),
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
    meaning="One machine uses the token when its job never works, or after a pause that its job never makes.",
    finds="one machine that uses the token of a job when the job never works, or after an unusual pause",
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
