"""A principal makes many tokens for itself at a time, and uses hardly any of them.

A thief with the password of a program makes tokens to keep: they are valid for days after the password has changed. The
rule looks at tokens that a principal makes for itself from one address in a day, of which at most `hoard_used` were
used within `hoard_soon`: `hoarded` or more within an hour, if it never made a token in that zone that was used, or if
`hoard_some` of them were used and the principal made another one within 15 minutes after each of these; `hoard_fast` or
more within an hour; or `hoard_at_once` within `AT_ONCE`. There have to be `hoard_factor` times more of them than the
principal ever made in an hour before. The principal has to be known for `hoard_history`.

Who takes hours for it, or days, and perhaps several machines, makes `hoard_by_hand` tokens or more in `HOARD_DAYS`
days, and never made more than half as many in three days before. This is a sign if it is a person who works by day
(`workdays.workdays`); or if the tokens were made in as many different hours, `SLOW` an hour at most: a container that
crashes makes more.

A load test, a back-fill and a large job use their tokens. A job that crashes makes a token at each start. At home it
made some before that were used, it waits between its starts, and it uses at most one of its tokens before it runs. In a
new place a container stays below `hoarded`, because the pauses grow. A service that makes tokens in vain is quiet if
`hoard_together` others do so within a day from other addresses: something that all of them need is broken.

The severity is high where the zone and the library are both new to the principal.

Not seen: a thief that makes fewer tokens than these, or in a program's name fewer in an hour than a container that
crashes; one that uses more of them, or begins in the first days of the principal; tokens made in the last hour before
the report, while those of the last day may be used yet; tokens for other owners (*Created by a new requester*).
"""

# The work is on one row for each token that its owner made; each window is over one principal and address.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.deeds import known_since
from kafka_dt.pipeline.report.expressions import (
    as_text,
    distinct,
    first_and_last,
    ok,
    some,
    union,
    with_most,
)
from kafka_dt.pipeline.report.signs.bursts import DAY, HOUR
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import (
    Sign,
    advise,
    end_all_of_owner,
    follow_address,
    follow_principal,
    threshold,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


AT_ONCE: Final = timedelta(minutes=3)
"""In which a person makes some tokens, or a script."""
HOARD_DAYS: Final = 3
"""In which a person makes some tokens each evening."""
_LOOP: Final = timedelta(minutes=15)
"""The longest pause between two starts of a job that crashes."""
SLOW: Final = 3
"""Tokens that a hand makes in an hour."""


@dataclass(frozen=True, slots=True)
class HoardThresholds:
    """How many tokens are no program's."""

    hoarded: int = threshold(20, "Tokens that a principal makes for itself within an hour from one address")
    """A container that crashes comes to 16 starts in its first hour: Kubernetes waits 10 s, then twice as long each
    time, up to 5 minutes."""
    hoard_used: float = threshold(0.2, "... the share of them that was used, at most")
    """A program makes a token to use it."""
    hoard_soon: timedelta = threshold(timedelta(days=1), "... in this time after they were made")
    """Who keeps tokens for later uses a few of them later."""
    hoard_factor: float = threshold(5.0, "... and times the most in an hour before")
    """A program that makes tokens all the time has busy hours."""
    hoard_history: timedelta = threshold(timedelta(days=3), "... by a principal that is known for")
    """A new service shows in its first days what it does."""
    hoard_fast: int = threshold(60, "... so many where it makes its own, too")
    """One a minute: a container that crashes waits longer."""
    hoard_some: int = threshold(2, "... or fewer, if it used so many and made another one soon after each")
    """A job that crashes uses none of its tokens, or only the last one, when it runs."""
    hoard_at_once: int = threshold(6, "... so many within three minutes")
    """A container that crashes comes to five."""
    hoard_by_hand: int = threshold(6, "... so many in three days, by hand")
    """In 28 months no honest principal made so many that it hardly used, if it did not always do so."""
    hoard_together: int = threshold(2, "Others that do so within a day when something is broken")
    """Two more than the one."""


def hoarded_tokens(seen: Observed, thresholds: HoardThresholds) -> DataFrame:
    """Find principals that make many tokens for themselves without use; one finding for each principal."""
    made = seen.work("made", _made(seen, thresholds))
    at_once = F.col("at_once") >= thresholds.hoard_at_once
    began = F.min("first_seen").over(Window.partitionBy("principal", "zone"))
    of_burst = Window.partitionBy("principal", "address", F.to_date("first_seen"))
    share = F.avg(F.col("used").cast("int")).over(of_burst)
    # The last token of a job that crashes is used when it runs in the end.
    some_used = F.sum((F.col("used") & F.col("goes_on")).cast("int")).over(of_burst)
    many = made.where((F.col("in_an_hour") >= thresholds.hoarded) | at_once)
    many = many.withColumns({"share": share, "some_used": some_used, "began": began})
    unused = many.where(F.col("share") <= thresholds.hoard_used)
    useful = made.where("ever_used").groupBy("principal", "zone").agg(F.min("first_seen").alias("useful_since"))
    is_new = ~F.coalesce(F.col("useful_since") < F.col("began"), F.lit(False))
    is_sure = is_new | (F.col("in_an_hour") >= thresholds.hoard_fast) | (F.col("some_used") >= thresholds.hoard_some)
    found = unused.join(useful, ["principal", "zone"], "left").where(at_once | is_sure)
    at_a_time = _unlike_before(seen.work("many", _of_principals(found)), made, thresholds)
    at_a_time = seen.work("at_a_time", _unlike_others(_known(at_a_time, seen, thresholds), thresholds))
    by_hand = seen.work("hoards", _known(_by_hand(made, seen, thresholds), seen, thresholds))
    by_hand = _unlike_others(by_hand, thresholds).join(at_a_time, "principal", "left_anti")
    return _findings(union(at_a_time, by_hand))


def _of_principals(made: DataFrame) -> DataFrame:
    """Give one row for each principal that made some of these tokens."""
    return made.groupBy("principal").agg(
        *first_and_last(),
        F.count("*").alias("events"),
        F.count(F.when(F.col("used"), 1)).alias("used"),
        F.max("in_an_hour").alias("most"),
        with_most("address", "in_an_hour").alias("address"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
        F.slice(distinct("zone"), 1, SHOWN).alias("zones"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
    )


def _by_hand(made: DataFrame, seen: Observed, thresholds: HoardThresholds) -> DataFrame:
    """Find who makes many tokens in some days; adds how many, and the most before (`in_days`, `usual_days`).

    The columns are those of `_of_principals` and these.
    """
    people = seen.workdays.select(F.col("who").alias("principal"), F.lit(True).alias("person"))
    known = known_since(seen.deeds, seen.clients)
    settled = F.col("known_since") + F.lit(thresholds.hoard_history)
    own = made.join(known, "principal").withColumns({"day": F.to_date("first_seen"), "settled": settled})
    in_order = Window.partitionBy("principal").orderBy("number")
    lately = in_order.rangeBetween(1 - HOARD_DAYS, 0)
    before = in_order.rangeBetween(Window.unboundedPreceding, -HOARD_DAYS)
    sums = {"in_days": "tokens", "used_lately": "used_then", "hours": "hours_then"}
    days = (
        own.groupBy("principal", "day", "settled")
        .agg(
            F.count("*").alias("tokens"),
            F.count(F.when(F.col("used"), 1)).alias("used_then"),
            F.count_distinct(F.hour("first_seen")).alias("hours_then"),
        )
        .withColumn("number", F.unix_date("day"))
        .withColumns({name: F.sum(of_day).over(lately) for name, of_day in sums.items()})
        .withColumn("usual_days", F.coalesce(F.max("in_days").over(before), F.lit(0)))
    )
    spread = (F.col("hours") >= thresholds.hoard_by_hand) & (F.col("in_days") <= F.col("hours") * SLOW)
    found = (
        days.join(people, "principal", "left")
        .where((F.col("person").isNotNull() | spread) & (F.col("day") > F.to_date("settled")))
        .where(F.col("in_days") >= F.greatest(F.lit(thresholds.hoard_by_hand), F.col("usual_days") * 2))
        .where(F.col("used_lately") <= F.col("in_days") * F.lit(thresholds.hoard_used))
    )
    ends = seen.work("by_hand", found.select("principal", F.col("day").alias("until"), "in_days", "usual_days"))
    counts = ends.groupBy("principal").agg(F.max("in_days").alias("in_days"), F.min("usual_days").alias("usual_days"))
    in_time = F.col("day").between(F.date_sub("until", HOARD_DAYS - 1), F.col("until"))
    tokens = own.where(F.col("first_seen") > F.col("settled")).join(ends.select("principal", "until"), "principal")
    return _of_principals(tokens.where(in_time).drop("until").distinct()).join(counts, "principal")


def _made(seen: Observed, thresholds: HoardThresholds) -> DataFrame:
    """Give the tokens that principals made for themselves, with the most that they made from there at a time."""
    soon = F.col("first_login") <= F.col("created_at") + F.lit(thresholds.hoard_soon)
    was_used = (F.col("logins") > 0).alias("ever_used")
    tokens = seen.lives.select("token_id", F.coalesce(soon, F.lit(False)).alias("used"), was_used)
    own = seen.deeds.where(ok(EventType.TOKEN_CREATED) & (F.coalesce("owner", "principal") == F.col("principal")))
    rows = own.select("principal", "token_id", "address", "software", "first_seen", "last_seen").join(
        tokens, "token_id"
    )
    seconds, few = (int(each.total_seconds()) for each in (HOUR, AT_ONCE))
    in_order = Window.partitionBy("principal", "address").orderBy(F.unix_seconds("first_seen"))
    until_then = {
        "until_then": F.count("*").over(in_order.rangeBetween(-seconds, 0)),
        "just_then": F.count("*").over(in_order.rangeBetween(-few, 0)),
    }
    around = {
        "in_an_hour": F.max("until_then").over(in_order.rangeBetween(0, seconds)),
        "at_once": F.max("just_then").over(in_order.rangeBetween(0, few)),
    }
    end = seen.deeds.agg((F.max("last_seen") - F.lit(HOUR)).alias("end"))
    goes_on = F.lead("first_seen").over(Window.partitionBy("principal", "address").orderBy("first_seen", "token_id"))
    goes_on = F.coalesce(goes_on <= F.col("first_seen") + F.lit(_LOOP), F.lit(False))
    counted = seen.zones.of(rows).withColumns(until_then).withColumns(around).withColumn("goes_on", goes_on)
    return counted.crossJoin(F.broadcast(end)).where(F.col("first_seen") <= F.col("end"))


def _unlike_before(found: DataFrame, made: DataFrame, thresholds: HoardThresholds) -> DataFrame:
    """Keep the principals that never made nearly as many tokens in an hour; adds the most before (`usual`)."""
    begun = found.select("principal", F.col("first_seen").alias("began"))
    earlier = made.join(begun, "principal").where(F.col("first_seen") < F.col("began"))
    most = earlier.groupBy("principal").agg(F.max("until_then").alias("usual"))
    return (
        found.join(most, "principal", "left")
        .withColumn("usual", F.coalesce("usual", F.lit(0)))
        .where(F.col("most") >= F.col("usual") * thresholds.hoard_factor)
    )


def _known(found: DataFrame, seen: Observed, thresholds: HoardThresholds) -> DataFrame:
    """Keep the principals that are known for long enough; tell whether all of the client is new (`both_new`)."""
    begun = found.select("principal", F.col("first_seen").alias("began"))
    was = seen.clients.withColumnRenamed("who", "principal").join(begun, "principal")
    before = was.where(F.col("first_seen") + F.lit(DAY) < F.col("began"))
    habits = before.groupBy("principal").agg(
        F.collect_set("zone").alias("had_zones"), F.collect_set("software").alias("had_clients")
    )
    both_new = ~F.arrays_overlap("zones", "had_zones") & ~F.arrays_overlap("clients", "had_clients")
    return (
        found.join(habits, "principal", "left")
        .join(known_since(seen.deeds, seen.clients), "principal")
        .withColumn("both_new", F.coalesce(both_new, F.lit(False)))
        .where(F.col("known_since") + F.lit(thresholds.hoard_history) < F.col("first_seen"))
    )


def _unlike_others(found: DataFrame, thresholds: HoardThresholds) -> DataFrame:
    """Leave out principals that do the same as others on the same day, each at an address of its own."""
    day = F.lit(DAY)
    other = found.select(
        F.col("principal").alias("other"), F.col("address").alias("elsewhere"), F.col("first_seen").alias("at")
    )
    along = (
        (F.col("principal") != F.col("other"))
        & (F.col("address") != F.col("elsewhere"))
        & F.col("at").between(F.col("first_seen") - day, F.col("first_seen") + day)
    )
    pairs = found.join(other, along).groupBy("principal").agg(F.count("*").alias("others"))
    explained = pairs.where(F.col("others") >= thresholds.hoard_together)
    return found.join(explained, "principal", "left_anti")


def _findings(found: DataFrame) -> DataFrame:
    rows = found.withColumns({"token_id": F.lit(None).cast("string"), "owner": F.col("principal")})
    return finding_rows(
        rows,
        subject="principal",
        severity=high_if(F.col("both_new")),
        evidence=[
            ("tokens made", F.col("events")),
            ("of them used soon", F.col("used")),
            ("the most in an hour", F.col("most")),
            ("the most in an hour before", F.col("usual")),
            ("made in three days", F.col("in_days")),
            ("the most in three days before", F.col("usual_days")),
            ("from addresses", some(F.col("addresses"))),
            ("in zones", some(F.col("zones"))),
            ("clients", some(F.col("clients"))),
            ("zone and library are new to the principal", F.when(F.col("both_new"), F.lit("yes"))),
            ("the principal is known since", as_text(F.col("known_since"))),
        ],
    )


HOARDED_TOKENS: Final = Sign(
    kind="hoarded_tokens",
    title="Making tokens without use",
    meaning="A principal makes many tokens for itself at a time, and uses hardly any of them.",
    finds="a principal that suddenly makes many tokens for itself and does not use them",
    misses="tokens made minutes apart, if there are few in an hour, or where the principal makes its own",
    subject_type=SubjectType.PRINCIPAL,
    thresholds=HoardThresholds(),
    rule=hoarded_tokens,
    steps=(
        advise(
            "Ask the principal's team what the tokens are for. If it was not the team, change the password or keytab."
        ),
        end_all_of_owner,
        follow_principal,
        follow_address,
    ),
)
