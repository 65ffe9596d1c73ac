"""Passwords are tried for many principals, from addresses that never logged in.

A thief with a list of names tries a few passwords for each, so that no name stands out. The rule counts the principals
for which a login is refused in a day, over all addresses from which no client had logged in before. It counts only
principals that exist, each tried `spray_repeats` times at the most: a program with an old password tries it again and
again. A principal that logs in from the same address, before or later, made a typing error. A refused client with the
principal's own library, or with a nameless one, may have an old password, if the principal worked in that zone before
and no more than two names are tried from the address: programs of a cluster begin anew on other machines after
passwords were changed. `sprayed` principals in a day from one address are a sign.

They are counted for each address first. Addresses with enough are one spray if they have the same library and try at
the same time, with all that other addresses try with it then. The principals of all other addresses are counted
together: at least `sprayed_apart` of them in a day are a sign, and at least `spray_factor` times as many as is usual.
Days that follow each other are one spray. The finding is about the busiest address of the spray.

Names that do not exist are a sign of their own: a client that looks for accounts. `sprayed_names` of them in a day from
one address are a finding, each tried `spray_repeats` times at the most, if the address is not refused so for
`spray_scans` or longer: a scanner of the company comes every week, and a proxy has such clients always. A name that
logs in later was tried too early.

The severity is high when one of the principals that were tried logs in, until a day later, from an address of the spray
or from a zone of it in which no client had logged in before: a password was right.

Not seen: a thief at an address from which others log in, such as an office's, that tries those who work there; one
that tries passwords of programs in their own network, two from each address; one that tries fewer principals in a day,
or one of them very often.
"""

# The work is on one row for each day, principal and address with refused passwords.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, RefusalReason
from kafka_dt.pipeline.report.deeds import after_first_days, of_strangers
from kafka_dt.pipeline.report.expressions import (
    UNKNOWN,
    distinct,
    distinct_over,
    first_and_last,
    first_of,
    of_type,
    some,
    with_most,
)
from kafka_dt.pipeline.report.signs.bursts import DAY, Usual, bursts
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


_TRY: Final = ("principal", "address", "date", "software", "tool", "tries", "first_seen", "last_seen")
_OWN_NAMES: Final = 2
"""Principals of one program: what tries more from an address tries passwords of others."""


@dataclass(frozen=True, slots=True)
class SprayThresholds:
    """How many principals are no typing errors."""

    sprayed: int = threshold(5, "Principals refused in a day from addresses that never logged in")
    """More people than that do not mistype at a new place on one day and give up."""
    sprayed_at_work: int = threshold(10, "... or from one that did, and who were never in its zone")
    """More than programs that move to a machine with old passwords."""
    sprayed_apart: int = threshold(10, "... or from several addresses together, of which none has so many")
    """On some days several people mistype at new places."""
    spray_repeats: int = threshold(5, "... and tries of each, at most")
    """A program with an old password tries it again and again; servers lock an account after some tries."""
    sprayed_names: int = threshold(10, "Names that do not exist, tried in a day from one address")
    """A host with that many programs whose users do not exist yet is none that has been tried out."""
    spray_scans: timedelta = threshold(timedelta(days=6), "... by an address that is refused for so long at most")
    """A scanner runs every week."""
    spray_factor: float = threshold(5.0, "... and times what is usual")
    """Some companies have such refusals every day."""
    spray_history: timedelta = threshold(timedelta(days=7), "... in the days before")
    """The days that show what is usual."""


def sprayed_passwords(seen: Observed, thresholds: SprayThresholds) -> DataFrame:
    """Find sprays on the days on which passwords of many principals are tried; one finding for each spray."""
    refused = _refused(seen, thresholds)
    tries = seen.work("tries", _by_strangers(refused, seen, thresholds))
    busy = _by_busy_addresses(tries, thresholds)
    rest = tries.join(busy, list(_TRY), "left_anti")
    known = busy.unionByName(_by_all_others(rest, thresholds)).withColumn("exist", F.lit(True))
    sprays = seen.work("sprays", known.unionByName(_unknown_names(seen, thresholds)))
    return _findings(_counted(sprays).join(_hits(sprays, refused, seen), "spray", "left"))


def _refused(seen: Observed, thresholds: SprayThresholds) -> DataFrame:
    """Give the refused passwords of principals that exist, a few of each."""
    wrong = of_type(EventType.LOGIN) & (F.col("reason") == RefusalReason.WRONG_CREDENTIALS.value)
    few = F.col("deeds") <= thresholds.spray_repeats
    return seen.deeds.where(wrong & few & F.col("token_id").isNull() & F.col("principal").isNotNull())


def _by_strangers(refused: DataFrame, seen: Observed, thresholds: SprayThresholds) -> DataFrame:
    """Keep those from addresses that never logged in before, unless it may be the principal's own client.

    From other addresses, those of principals that were never in the zone are kept where they are many in a day.

    A principal that logs in from the same address, before or later, mistyped. Its own library or a nameless one, in a
    zone in which it works with its own, is a program with an old password.
    """
    tried = refused.select("principal", "address").distinct()
    logins = seen.usage.select(F.col("who").alias("principal"), "address")
    at_home = logins.join(tried, ["principal", "address"], "left_semi")
    of_program = seen.clients.where(~F.col("by_token")).groupBy(F.col("who").alias("principal"), "zone")
    own = of_program.agg(F.min("first_seen").alias("own_since"), F.collect_set("software").alias("libraries"))
    names = distinct_over("principal", "address")
    has_library = F.array_contains("libraries", F.col("software")) | (F.col("software") == UNKNOWN)
    is_own = (F.col("own_since") < F.col("first_seen")) & has_library & (F.col("names") <= _OWN_NAMES)
    placed = seen.zones.of(refused).withColumn("names", names).join(own, ["principal", "zone"], "left")
    was_there = F.coalesce(F.col("own_since") < F.col("first_seen"), F.lit(False))
    strange = placed.where(~F.coalesce(is_own, F.lit(False))).select(*refused.columns, was_there.alias("was_there"))
    typed = seen.work("typed", strange.join(at_home, ["principal", "address"], "left_anti"))
    new = of_strangers(typed, seen.usage)
    used = after_first_days(typed.where(~F.col("was_there")), seen.usage)
    of_try = ["principal", "address", "date", "first_seen"]
    used = used.join(new.select(*of_try), of_try, "left_anti")
    of_day = distinct_over("principal", "address", "date")
    many = used.withColumn("of_day", of_day).where(F.col("of_day") >= thresholds.sprayed_at_work).drop("of_day")
    tool = F.min("software").over(Window.partitionBy("address"))
    return new.unionByName(many).withColumns({"tool": tool, "tries": F.col("deeds")}).select(*_TRY)


def _by_busy_addresses(tries: DataFrame, thresholds: SprayThresholds) -> DataFrame:
    """Name the sprays (`spray`) of addresses that try enough principals by themselves.

    Of the same library and at the same time they are one spray; so are the tries of other addresses then.
    """
    in_a_day = distinct_over("principal", "address", "date")
    runs = (
        tries.withColumn("names", in_a_day)
        .groupBy("tool", "address")
        .agg(*first_and_last(), F.max("names").alias("names"))
        .where(F.col("names") >= thresholds.sprayed)
    )
    in_order = Window.partitionBy("tool").orderBy("first_seen", "address")
    busy_until = F.max("last_seen").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    begins = F.coalesce(F.col("first_seen") > F.col("busy_until"), F.lit(False)).cast("int")
    spans = (
        runs.withColumn("busy_until", busy_until)
        .withColumn("number", F.sum(begins).over(in_order))
        .groupBy("tool", "number")
        .agg(F.min("first_seen").alias("began"), F.max("last_seen").alias("ended"))
        .withColumn("spray", F.concat_ws(" ", "began", "tool"))
    )
    then = tries.join(F.broadcast(spans), "tool").where(F.col("first_seen").between(F.col("began"), F.col("ended")))
    return then.select(*tries.columns, "spray", F.lit(None).cast("double").alias("usual"))


def _by_all_others(rest: DataFrame, thresholds: SprayThresholds) -> DataFrame:
    """Name the sprays of addresses that try enough principals together, more than is `usual`."""
    usual = Usual(thresholds.spray_factor, thresholds.spray_history)
    together = rest.withColumn("everywhere", F.lit(True))
    many = thresholds.sprayed_apart
    days = bursts(together, by="everywhere", what="principal", window=DAY, many=many, usual=usual).select(
        F.col("first_seen").alias("began"), F.col("last_seen").alias("ended"), "usual"
    )
    then = rest.join(F.broadcast(days), F.col("first_seen").between(F.col("began"), F.col("ended")))
    return then.select(*rest.columns, F.col("began").cast("string").alias("spray"), "usual")


def _unknown_names(seen: Observed, thresholds: SprayThresholds) -> DataFrame:
    """Give the tries of addresses that try many names that do not exist; those of an address are one spray."""
    reasons = (RefusalReason.UNKNOWN_USER, RefusalReason.BROKEN_EXCHANGE, RefusalReason.UNSUPPORTED_MECHANISM)
    refused = seen.deeds.where(of_type(EventType.LOGIN) & F.col("reason").isin([each.value for each in reasons]))
    spans = refused.groupBy("address").agg(*first_and_last())
    brief = spans.where(F.col("last_seen") < F.col("first_seen") + F.lit(thresholds.spray_scans)).select("address")
    few = F.col("deeds") <= thresholds.spray_repeats
    names = refused.where(F.col("reason") == RefusalReason.UNKNOWN_USER.value).where(few)
    names = names.join(brief, "address").join(
        seen.clients.withColumnRenamed("who", "principal"), "principal", "left_anti"
    )
    in_a_day = distinct_over("principal", "address", "date")
    tries = names.where(F.col("principal").isNotNull()).withColumns(
        {
            "tool": F.col("software"),
            "tries": F.col("deeds"),
            "names": in_a_day,
            "spray": F.concat_ws(" ", "address", F.lit("names")),
            "usual": F.lit(None).cast("double"),
            "exist": F.lit(False),
        }
    )
    return tries.where(F.col("names") >= thresholds.sprayed_names).select(*_TRY, "spray", "usual", "exist")


def _counted(sprays: DataFrame) -> DataFrame:
    """Make one row of each spray."""
    in_a_day = distinct_over("principal", "spray", "date")
    of_address = F.sum("tries").over(Window.partitionBy("spray", "address"))
    return (
        sprays.withColumns({"in_a_day": in_a_day, "of_address": of_address})
        .groupBy("spray")
        .agg(
            *first_and_last(),
            F.sum("tries").alias("events"),
            F.max("in_a_day").alias("most"),
            F.min("usual").alias("usual"),
            F.max("exist").alias("exist"),
            F.array(F.min("principal"), F.max("principal")).alias("examples"),
            F.count_distinct("address").alias("different"),
            F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
            F.slice(distinct("software"), 1, SHOWN).alias("clients"),
            with_most("address", "of_address").alias("address"),
        )
    )


def _hits(sprays: DataFrame, refused: DataFrame, seen: Observed) -> DataFrame:
    """Give for each spray a principal that it tried and that logs in from there later: its password was right.

    There is an address of the spray, or a zone of it, in which no client had logged in before.
    """
    tried = sprays.select("spray", "address", "date").distinct()
    principals = refused.join(tried, ["address", "date"]).select("spray", "principal").distinct()
    places = (
        seen.zones.of(sprays.select("spray", "address", "first_seen", "last_seen"))
        .select("spray", F.explode(F.array("address", "zone")).alias("place"), "first_seen", "last_seen")
        .groupBy("spray", "place")
        .agg(F.min("first_seen").alias("began"), F.max("last_seen").alias("ended"))
    )
    by_token = F.col("token_id").isNotNull().alias("by_token")
    logins = seen.usage.select(
        F.col("who").alias("principal"), by_token, "first_seen", F.explode(F.array("address", "zone")).alias("place")
    )
    since = F.min("first_seen").over(Window.partitionBy("spray", "place"))
    soon = F.col("first_seen") <= F.col("ended") + F.lit(DAY)
    return (
        logins.join(F.broadcast(places), "place")
        .withColumn("since", since)
        .where((F.col("since") >= F.col("began")) & soon & ~F.col("by_token"))
        .join(principals, ["spray", "principal"], "left_semi")
        .groupBy("spray")
        .agg(F.min("principal").alias("hit"))
    )


def _findings(found: DataFrame) -> DataFrame:
    none = F.lit(None).cast("string")
    return finding_rows(
        found.withColumns({"token_id": none, "owner": none}),
        subject="address",
        severity=high_if(F.col("hit").isNotNull()),
        evidence=[
            ("principals in a day", F.col("most")),
            ("usual in a day", F.round("usual", 2)),
            ("do they exist", F.when(~F.col("exist"), "no")),
            ("attempts", F.col("events")),
            ("different addresses", F.col("different")),
            ("from addresses", some(F.col("addresses"))),
            ("principals, for example", first_of(F.col("examples"))),
            ("logged in there later", F.col("hit")),
            ("clients", some(F.col("clients"))),
        ],
    )


SPRAYED_PASSWORDS: Final = Sign(
    kind="sprayed_passwords",
    title="Trying passwords of many principals",
    meaning="Logins of many principals are refused, from addresses that never logged in; or many names do not exist.",
    finds="refused logins of many principals from addresses that never logged in, and of many names that do not exist",
    misses="tries from an office's address, and a few tries a day",
    subject_type=SubjectType.ADDRESS,
    thresholds=SprayThresholds(),
    rule=sprayed_passwords,
    steps=(
        advise("Block the address at the listeners, and change the password of a principal that logged in from there."),
        follow_address,
    ),
)
