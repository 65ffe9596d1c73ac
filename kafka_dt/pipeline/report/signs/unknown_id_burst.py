"""A client tries token ids that no token ever had, or wrong HMACs of tokens.

Ids are random, so a client cannot meet one by trying. A client that tries has heard of tokens and has none. The rule
counts the different unknown ids of an address in an hour, and in a day for a client that takes its time. It leaves out
ids that once were a token's, because jobs try those for a while.

An hour is a sign when it has at least `guessed_in_an_hour` different ids, a day when it has `guessed_in_a_day`. Both
need `guess_factor` times more than is usual for the address: behind a proxy or address translation there may always be
a few. All hours or days of an address that are within `guess_again` are one finding. Where no single address of a
network stands out but all of them together do, the network is the finding.

Machines for tests try wrong ids on purpose, now this one and now that one. So an hour or a day is no sign if all
addresses of the zone together tried as many ids in one hour or day on `guess_habit_days` days before. The next count
leaves out a zone on the days that are like these.

For a client that has another address each time, the rule counts the ids of a day over all addresses that never logged
in before and have the same library; wrong HMACs too, which are counted apart. `guessed_by_strangers` of them are a
sign, if an address does not repeat one id (`guess_repeats`) as a program does. The finding is about the busiest of
these addresses.

Not seen: a client that tries fewer ids in a day, or no more than machines for tests in its zone, and one at an address
that logs in otherwise, if it is slow. Ids of tokens that were removed before the table begins count as unknown.
"""

# The work is on refused logins by token; each window is over one address, or over days.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.report.deeds import of_strangers
from kafka_dt.pipeline.report.expressions import UNKNOWN, first_of, of_type, software, some, subnet
from kafka_dt.pipeline.report.signs.bursts import DAY, HOUR, Usual, bursts
from kafka_dt.pipeline.report.signs.finding import Severity, SubjectType, finding_rows
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


_PLACES: Final = ("address", "subnet")
"""Whose guesses are of one client, most likely; those of a library may be of several."""


@dataclass(frozen=True, slots=True)
class GuessThresholds:
    """How many ids are no typing errors."""

    guessed_in_an_hour: int = threshold(5, "Different unknown ids in an hour that are no typing errors")
    """A client with a wrong copy of an id notices at the second or third try."""
    guessed_in_a_day: int = threshold(8, "... in a day")
    guessed_by_strangers: int = threshold(3, "... in a day, by addresses that never logged in, all together")
    """A program with a wrong copy of a token has that one token, and logged in before."""
    guess_repeats: int = threshold(3, "... and tries of one id by one of these addresses, at most")
    """A program tries the one id that it has again and again; so do programs of a restored backup."""
    guess_factor: float = threshold(5.0, "... and times what is usual for the address")
    """A proxy with stale clients behind it always has some."""
    guess_history: timedelta = threshold(timedelta(days=7), "... in the time before")
    """The time before in which the usual number is counted."""
    guess_habit_days: int = threshold(5, "Days before with as many ids in the zone that show a habit")
    """Those of a working week, in which tests run."""
    guess_again: timedelta = threshold(
        timedelta(days=8), "Time within which an address that guesses again is told once"
    )
    """A scanner runs every week."""


def guessed_ids(seen: Observed, thresholds: GuessThresholds) -> DataFrame:
    """Find addresses, and networks, that guess token ids; one finding for each of them."""
    tries = seen.work("guesses", _guesses(seen))
    ids = tries.where(~F.col("is_token"))
    in_hours = _habits(tries, HOUR, thresholds)
    in_days = seen.work("habits", _habits(tries, DAY, thresholds))
    quick = _bursts(ids, "address", HOUR, thresholds.guessed_in_an_hour, thresholds)
    quick = seen.work("quick", _beyond(quick, in_hours, seen))
    rest = ids.join(quick.select(F.col("place").alias("address")), "address", "left_anti")
    slow = _bursts(rest, "address", DAY, thresholds.guessed_in_a_day, thresholds)
    found = seen.work("guessers", quick.unionByName(_beyond(slow, in_days, seen)))
    rest = tries.join(found.select(subnet(F.col("place")).alias("subnet")), "subnet", "left_anti")
    together = _bursts(rest.where(~F.col("is_token")), "subnet", HOUR, thresholds.guessed_in_an_hour, thresholds)
    together = _beyond(together, in_hours, seen)
    few = rest.where(F.col("repeats") <= thresholds.guess_repeats)
    day = few.withColumn("day", F.to_date("first_seen"))
    unusual = day.join(in_days.where(F.col("names") > F.col("habit")), ["zone", "reason", "day"], "left_semi")
    tools = of_strangers(unusual, seen.usage).withColumn("tool", F.concat_ws(" ", "reason", "software"))
    spread = _bursts(tools, "tool", DAY, thresholds.guessed_by_strangers, thresholds)
    return _findings(found.unionByName(together).unionByName(spread.withColumn("place", F.col("address"))))


def _guesses(seen: Observed) -> DataFrame:
    """Give the refused logins with ids of no token, or with a wrong HMAC."""
    wrong_id = (F.col("reason") == RefusalReason.UNKNOWN_TOKEN.value) & ~F.col("is_token")
    wrong_hmac = (F.col("reason") == RefusalReason.WRONG_CREDENTIALS.value) & F.col("is_token")
    refused = F.col("reason").isin(RefusalReason.UNKNOWN_TOKEN.value, RefusalReason.WRONG_CREDENTIALS.value)
    tries = seen.events.where(of_type(EventType.LOGIN) & refused & F.col("token_id").isNotNull()).select(
        *("token_id", "reason"),
        F.col("time").alias("first_seen"),
        F.col("time").alias("last_seen"),
        F.coalesce("client_address", F.lit(UNKNOWN)).alias("address"),
        software(F.col("client_software")).alias("software"),
        F.lit(1).alias("tries"),
    )
    known = tries.join(seen.lives.select("token_id", F.lit(True).alias("is_token")), "token_id", "left")
    return (
        seen.zones.of(known.withColumn("is_token", F.coalesce("is_token", F.lit(False))))
        .where(wrong_id | wrong_hmac)
        .withColumn("repeats", F.count("*").over(Window.partitionBy("address", "token_id")))
    )


def _bursts(tries: DataFrame, by: str, window: timedelta, many: int, thresholds: GuessThresholds) -> DataFrame:
    usual = Usual(thresholds.guess_factor, thresholds.guess_history)
    again = thresholds.guess_again if by in _PLACES else timedelta()
    found = bursts(tries, by=by, what="token_id", window=window, many=many, usual=usual, together=again)
    return found.withColumn("within", F.lit("an hour" if window == HOUR else "a day"))


def _habits(tries: DataFrame, window: timedelta, thresholds: GuessThresholds) -> DataFrame:
    """Tell of each zone and day how many ids were tried in a window, at most, and how many are a habit by then."""
    number = F.floor(F.unix_seconds("first_seen") / F.lit(int(window.total_seconds())))
    windows = tries.groupBy("zone", "reason", F.to_date("first_seen").alias("day"), number).agg(
        F.count_distinct("token_id").alias("names")
    )
    days = windows.groupBy("zone", "reason", "day").agg(F.max("names").alias("names"))
    before = Window.partitionBy("zone", "reason").orderBy("day").rowsBetween(Window.unboundedPreceding, -1)
    largest = F.sort_array(F.collect_list("names").over(before), asc=False)
    return days.withColumn("habit", F.coalesce(F.get(largest, F.lit(thresholds.guess_habit_days - 1)), F.lit(0)))


def _beyond(found: DataFrame, habits: DataFrame, seen: Observed) -> DataFrame:
    """Keep the bursts of ids that are larger than the habit of their zone."""
    of_ids = habits.where(F.col("reason") == RefusalReason.UNKNOWN_TOKEN.value).select("zone", "day", "habit")
    placed = seen.zones.of(found).withColumn("day", F.to_date("first_seen")).join(of_ids, ["zone", "day"], "left")
    return placed.where(F.col("most") > F.coalesce("habit", F.lit(0))).select(found.columns)


def _findings(found: DataFrame) -> DataFrame:
    none = F.lit(None).cast("string")
    rows = found.withColumns({"token_id": none, "owner": none})
    return finding_rows(
        rows,
        subject="place",
        severity=F.lit(Severity.MEDIUM.value),
        evidence=[
            ("different ids", F.concat_ws(" in ", F.col("most"), F.col("within"))),
            ("usual there", F.concat_ws(" in ", F.round("usual", 2), F.col("within"))),
            ("attempts", F.col("events")),
            ("days", F.col("days")),
            ("addresses", F.col("addresses")),
            ("clients", some(F.col("clients"))),
            ("ids, for example", first_of(F.col("examples"))),
        ],
    )


UNKNOWN_ID_BURST: Final = Sign(
    kind="unknown_id_burst",
    title="Guessing token ids",
    meaning="A client at this address tries many token ids that no token ever had.",
    finds="ids that no token had, and wrong HMACs: from an address, a network, or many addresses over days",
    misses="a few tries a day, and as many as machines for tests in the same zone make",
    subject_type=SubjectType.ADDRESS,
    thresholds=GuessThresholds(),
    rule=guessed_ids,
    steps=(
        advise("Block the address at the listeners until you know which client it is."),
        follow_address,
    ),
)
