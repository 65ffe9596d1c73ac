"""A token is used by one machine after a pause that its job never makes.

The owner gets a token for each run, and uses it without a pause. The siblings of a token are those that the same
requester made for the same owner before. If there are `pause_tokens` of them, over `pause_history`, and none of them
made a pause of more than `sibling_pause`, then a use after a pause of `pause` is a sign, if it is on one machine, and
if the time from the token's first login to the end of the pause is `pause_factor` times the longest use of a sibling or
more: the job has plainly ended. Pauses are counted in whole hours without a login. A token that is used for 62 hours or
longer counts as one long pause.

These are quiet:

- After an outage several owners go on within an hour, three at least.
- A job that is late, and a person in the evening: at an hour (with an hour before and after) at which other tokens of
  the owner were used on `pause_hour_days` days before, the newest token of its requester is used, with the library, the
  kind of client id and from the zone that the owner's tokens had for a day.
- A meeting, and a notebook that goes on in the morning: the use begins in the day of an owner that works by day, in a
  private network that no file of networks calls foreign, with a library that its tokens had for a day, and with a kind
  of client id that they had for so long or in a zone in which the owner was for so long.
- An engineer looks into the job: one login by day with another client, on a machine of the token's run.
- A part of the job hangs, and tries again: it starts, within a minute, on a machine on which the owner's tokens were
  used before with the library, and from which the client is refused `hung_tries` times later, because the token has
  ended.

The rule looks at the whole table, so also at later days.

Not seen: a thief that comes soon after its job, one at a usual hour in the job's zone with its library and newest
token, the tokens of people by day, and those of jobs whose tokens make pauses, or of which one was used for 62 hours or
longer.
"""

# The work is on one row for each token.

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
    distinct,
    first_and_last,
    of_type,
    some,
    with_most,
)
from kafka_dt.pipeline.report.lives import TOLD, hours_of
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.late_runs import (
    ONE_START,
    USUAL_CLIENT,
    is_short,
    outages,
    with_usual_clients,
    without_looks,
)
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_token, follow_address, threshold
from kafka_dt.pipeline.report.workdays import is_in_day, is_inside

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_HOUR: Final = timedelta(hours=1)
_HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True)
class PauseThresholds:
    """When a run of a job has plainly ended."""

    pause: timedelta = threshold(timedelta(hours=4), "Pause of a token whose siblings make none")
    """A run that failed is tried again within a few hours."""
    sibling_pause: timedelta = threshold(timedelta(hours=1), "... but this, at most")
    """A job logs in when it starts and when its parts do, and then it is over."""
    pause_tokens: int = threshold(8, "Siblings that show whether there are pauses")
    """A week of a job that runs daily, and a day."""
    pause_history: timedelta = threshold(timedelta(days=3), "... and for how long")
    """Many runs of one day are one day."""
    pause_factor: float = threshold(
        2.0, "Times the longest use of a sibling: time from the first login to the end of the pause, at least"
    )
    """A job that is late takes half as long again."""
    pause_hour_days: int = threshold(2, "Days before on which other tokens are used at the hour after a pause")
    """One may be an outage, or a theft."""
    hung_tries: int = threshold(10, "Refused logins with the ended token at an address where a part of the job hangs")
    """A program that is written well gives up after a few."""


def after_pause(seen: Observed, thresholds: PauseThresholds) -> DataFrame:
    """Find machines that use tokens after unusual pauses; one finding for each owner and machine."""
    by_token = seen.usage.where(F.col("token_id").isNotNull())
    return _findings(_after_pause(by_token, seen, thresholds))


def _after_pause(by_token: DataFrame, seen: Observed, thresholds: PauseThresholds) -> DataFrame:
    """Give the uses by one machine after a pause that the siblings of a token never made."""
    tokens = seen.work("pauses", _pauses(by_token))
    over = outages(_unusual(tokens, thresholds), "went_on", ("who",))
    # What went on after an outage made no pause, so that it does not show one either.
    excused = tokens.join(over.withColumn("excused", F.lit(True)), "went_on", "left")
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
    judged = with_usual_clients(alone, seen).join(usual, "token_id", "left")
    others = judged.where(~(F.col("as_ever") & F.coalesce("at_usual_hour", F.lit(False))))
    in_day = is_in_day(F.col("first_seen")) & is_inside()
    known = _known_for(others.join(seen.workdays, "who", "left"), seen.clients)
    at_work = in_day & F.col("library_known") & (F.col("client_known") | F.col("zone_known"))
    rows = known.where(~F.coalesce(at_work, F.lit(False))).drop("day_begins")
    rows = without_looks(rows, by_token, seen.workdays)
    return _without_hung_parts(rows, by_token, seen.deeds, thresholds)


def _without_hung_parts(
    uses: DataFrame, by_token: DataFrame, deeds: DataFrame, thresholds: PauseThresholds
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
    start = F.when(F.col("first_seen") > F.col("since"), F.lit(ONE_START)).otherwise(F.lit(_HOUR))
    goes_on = F.max("last_seen").over(there) > F.min(F.col("first_seen") + start).over(there)
    hangs = (
        (F.col("tries") >= thresholds.hung_tries)
        & (F.col("ended") > F.col("last_seen"))
        & (F.col("machine_since") < F.col("since"))
    )
    judged = uses.join(tries, ["token_id", "address"], "left").join(machines, ["who", "address", "software"])
    of_part = judged.withColumn("hangs", F.coalesce(hangs & ~goes_on, F.lit(False)))
    return of_part.where(~F.col("hangs")).drop("tries", "ended", "machine_since", "hangs")


def _known_for(uses: DataFrame, clients: DataFrame) -> DataFrame:
    """Say whether the owner's tokens had the library and the client id before, and whether it was in the zone."""
    by_token = clients.where("by_token")
    for known, seen, columns in (
        ("library_known", by_token, ("who", "software")),
        ("client_known", by_token, ("who", "software", "client")),
        ("zone_known", clients, ("who", "zone")),
    ):
        since = seen.groupBy(*columns).agg(F.min("first_seen").alias("known_since"))
        is_known = F.col("known_since") + F.lit(USUAL_CLIENT) <= F.col("first_seen")
        uses = uses.join(since, list(columns)).withColumn(known, is_known).drop("known_since")
    return uses


def _hours_before(odd: DataFrame, by_token: DataFrame, thresholds: PauseThresholds) -> DataFrame:
    """Give the tokens that go on at an hour at which other tokens of their owners were used before."""
    paused = odd.select("who", "token_id", F.col("went_on").alias("hour"))
    others = by_token.where(is_short()).join(paused.select("who").distinct(), "who", "left_semi")
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


def _unusual(tokens: DataFrame, thresholds: PauseThresholds) -> DataFrame:
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


def _findings(uses: DataFrame) -> DataFrame:
    rows = uses.groupBy(F.col("who").alias("owner"), "address", "zone").agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        with_most("token_id", "logins").alias("token_id"),
        F.count_distinct("token_id").alias("tokens"),
        F.slice(distinct(F.hour("first_seen")), 1, SHOWN).alias("used_hours"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        F.max(F.struct("pause_hours", "siblings", "siblings_since")).alias("pause"),
    )
    siblings = F.format_string("%d since %s", "pause.siblings", as_text(F.col("pause.siblings_since")))
    return finding_rows(
        rows,
        subject="token_id",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("hours without a login before it", F.col("pause.pause_hours")),
            ("tokens of the job without such a pause", siblings),
            ("used in the hours (UTC)", F.array_join(F.col("used_hours").cast("array<string>"), ", ")),
            ("from one machine", F.col("address")),
            ("in zone", F.col("zone")),
            ("tokens", F.col("tokens")),
            ("with libraries", some(F.col("clients"))),
        ],
    )


AFTER_PAUSE: Final = Sign(
    kind="after_pause",
    title="Used after a pause that its job never makes",
    meaning="One machine uses the token hours after its run was over; the job's other tokens make no such pause.",
    finds="one machine that uses the token of a job hours after the run that it was made for",
    misses="a thief that comes soon after the job, or by day like a person, and jobs whose tokens make pauses",
    subject_type=SubjectType.TOKEN,
    thresholds=PauseThresholds(),
    rule=after_pause,
    about_use=True,
    steps=(
        advise("Ask the owner whether an engineer ran a part of the job again by hand. If not:"),
        end_token,
        follow_address,
    ),
)
