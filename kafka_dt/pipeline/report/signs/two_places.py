"""A token is used in two places at once, or for a short time where its owner never was.

The first two cases are about owners that work by day (`workdays`):

- *to and fro*: the token is used in two zones of the company, again and again within minutes.
- *alone in a network of the Internet*: the token is used for less than a day where no other principal ever is, and the
  owner does not log in there without a token. Between two of its uses there, two hours apart or less, the owner logs in
  from another network. The owner is seen on `places_days` days, and is known for `places_history` when it comes. A
  visit in the owner's day is quiet: a traveller may have left a notebook running in the office.

- *briefly in another network of the Internet*: the owner is a partner. It makes 50 logins or more, nine of ten of them
  over the Internet, in 20 different hours of the day or more, and is known for `places_history`. Its token is used in a
  large network (/16, of IPv6 /48) where the partner is at no other time, for two days at most, from a zone that no
  other principal uses. The partner does not log in there without a token, and it logs in somewhere else more than a day
  later. A partner that has such uses on more than two days is quiet. The severity is medium, because the partner's
  usual line may have failed.

*To and fro.* A person works with one notebook, and moves from one zone to another, but does not go back and forth
within minutes. The rule looks at owners whose tokens were used from `few_addresses` addresses each, on average, and
at tokens whose uses in two zones overlap. A *return* is a login from another zone between two logins from one zone
that are no more than `at_once` apart. `returns` of them in a token are a sign if no token of the owner had one
before, and the owner is known for `places_history`. The severity is high if there are `sure_returns`.

It is quiet where returns are a habit: where `place_habit` owners return to the zone, they work on a laptop and with a
notebook in a cluster at once.

Only zones of the company count for this case, which `place_principals` principals use.

The severity of *alone in a network of the Internet* is high. It is told a day after the last use there.

Not seen: a thief with a token of a job, whose moves, roll-outs and second lines look the same; a thief in the zone of
the owner; one that waits until the owner's work is over; and one over the Internet with a person's token by day, or
for days, or with the tokens of several owners on one line.
"""

# The work is on one row for each token and address; only tokens in two zones at a time are looked up in the events.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import (
    UNKNOWN,
    as_text,
    distinct,
    first_and_last,
    login_by_token,
    some,
    with_most,
)
from kafka_dt.pipeline.report.signs.finding import SHOWN, Severity, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.lone_visits import lone_uses_of_partners, lone_visits
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_token, follow_address, threshold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


VISIT: Final = "alone in a network of the Internet"
PASSED_ON: Final = "briefly in another network of the Internet"


@dataclass(frozen=True, slots=True)
class PlacesThresholds:
    """When an owner cannot be in two places."""

    few_addresses: float = threshold(
        3.0, "Addresses of each token of an owner that is in one place, on average, at most"
    )
    """A person moves between an office, a VPN and a home."""
    at_once: timedelta = threshold(
        timedelta(hours=1), "Time within which an owner does not go to another zone and back"
    )
    """Less than the way to another office and back."""
    returns: int = threshold(3, "Returns to a zone that one person does not make")
    """A VPN may be lost twice, or a notebook that was left open logs in once more."""
    sure_returns: int = threshold(5, "... and that a notebook which was left open does not explain")
    """Its owner works from home for an evening."""
    place_principals: int = threshold(3, "Principals that use a zone of the company")
    """Two may be a traveller and a thief."""
    place_habit: int = threshold(5, "Owners with returns to a zone that show that people work in two places there")
    """They have a notebook in a cluster and a laptop."""
    places_history: timedelta = threshold(timedelta(days=3), "Time in which an owner shows in how many places it is")
    """A weekend is two days long."""
    places_days: int = threshold(10, "Days on which an owner is seen that shows its places")
    """Two weeks of work."""


def two_places(seen: Observed, thresholds: PlacesThresholds) -> DataFrame:
    """Find tokens that are used in two zones at once; one finding a token."""
    by_token = seen.usage.where(F.col("token_id").isNotNull())
    shared = (
        seen.clients.groupBy("zone")
        .agg(F.count_distinct("who").alias("principals"))
        .where(F.col("principals") >= thresholds.place_principals)
    )
    overlapping = seen.work("overlapping", _overlapping(by_token, shared))
    places = (
        by_token.join(overlapping.select("who").distinct(), "who", "left_semi")
        .groupBy("who", "token_id", "address", "zone")
        .agg(F.min("first_seen").alias("first_seen"))
    )
    owners = places.groupBy("who").agg(
        F.min("first_seen").alias("known_since"),
        (F.count("*") / F.count_distinct("token_id")).alias("addresses_a_token"),
    )
    few = owners.where(F.col("addresses_a_token") <= thresholds.few_addresses)
    in_one_place = few.join(seen.workdays, "who", "left_semi")
    candidates = (
        places.join(overlapping, ["who", "token_id"], "left_semi")
        .join(shared, "zone", "left_semi")
        .join(in_one_place, "who")
    )
    returns = seen.work("returns", _returns(seen.events, candidates, thresholds))
    returns = _without_habits(returns, thresholds)
    first = Window.partitionBy("owner").orderBy("first_seen", "token_id")
    new = returns.withColumn("rank", F.row_number().over(first)).where(
        (F.col("rank") == 1)
        & (F.col("returns") >= thresholds.returns)
        & (F.col("known_since") + F.lit(thresholds.places_history) < F.col("first_seen"))
    )
    lone = seen.work("alone", lone_visits(seen, thresholds.places_history, thresholds.places_days))
    is_sure = F.col("returns") >= thresholds.sure_returns
    lone = lone.join(new.where(is_sure).select("token_id"), "token_id", "left_anti")
    new = new.join(lone.select("token_id"), "token_id", "left_anti")
    partners = seen.work("partners", lone_uses_of_partners(seen, thresholds.places_history))
    visits, passed_on = _of_lone(lone, VISIT, Severity.HIGH), _of_lone(partners, PASSED_ON, Severity.MEDIUM)
    return _findings(new, thresholds).unionByName(visits).unionByName(passed_on)


def _without_habits(returns: DataFrame, thresholds: PlacesThresholds) -> DataFrame:
    """Leave out tokens with returns to a zone to which many owners return."""
    tokens = returns.select("owner", "token_id", F.explode("from_zones").alias("zone"))
    owners = tokens.groupBy("zone").agg(F.count_distinct("owner").alias("owners"))
    usual = tokens.join(owners.where(F.col("owners") >= thresholds.place_habit), "zone").select("token_id").distinct()
    return returns.join(usual, "token_id", "left_anti")


def _overlapping(by_token: DataFrame, shared: DataFrame) -> DataFrame:
    """Give the tokens that came to a zone of the company while they were in another one."""
    in_order = Window.partitionBy("token_id").orderBy("since", "until", "zone")
    return (
        by_token.groupBy("who", "token_id", "zone")
        .agg(F.min("first_seen").alias("since"), F.max("last_seen").alias("until"))
        .join(shared, "zone", "left_semi")
        .withColumn("before", F.max("until").over(in_order.rowsBetween(Window.unboundedPreceding, -1)))
        .where(F.col("since") < F.col("before"))
        .select("who", "token_id")
        .distinct()
    )


def _returns(events: DataFrame, candidates: DataFrame, thresholds: PlacesThresholds) -> DataFrame:
    """Make one row of each token with returns."""
    of_token = Window.partitionBy("token_id").orderBy("time", "address")
    logins = events.where(login_by_token()).select(
        "token_id", "time", F.coalesce("client_address", F.lit(UNKNOWN)).alias("address")
    )
    placed = logins.join(
        F.broadcast(candidates.select("token_id", "address", "who", "zone", "known_since", "addresses_a_token")),
        ["token_id", "address"],
    )
    changes = placed.withColumn("change", F.lag("zone").over(of_token) != F.col("zone")).withColumns(
        {"stay": F.sum(F.coalesce(F.col("change"), F.lit(False)).cast("int")).over(of_token)}
    )
    stays = changes.groupBy("token_id", "stay").agg(
        F.min("time").alias("begin"),
        F.max("time").alias("end"),
        F.count("*").alias("logins"),
        *(F.first(name).alias(name) for name in ("zone", "who", "known_since", "addresses_a_token")),
        with_most("address", "time").alias("address"),
    )
    of_address = F.sum("logins").over(Window.partitionBy("token_id", "address"))
    by_stay = Window.partitionBy("token_id").orderBy("stay")
    between = stays.withColumns(
        {
            "left_at": F.lag("end").over(by_stay),
            "back_at": F.lead("begin").over(by_stay),
            "from_zone": F.lag("zone").over(by_stay),
            "to_zone": F.lead("zone").over(by_stay),
        }
    )
    is_return = (F.col("from_zone") == F.col("to_zone")) & (
        F.col("back_at") <= F.col("left_at") + F.lit(thresholds.at_once)
    )
    return (
        between.where(is_return)
        .withColumn("of_address", of_address)
        .groupBy("token_id", F.col("who").alias("owner"), "known_since", "addresses_a_token")
        .agg(
            F.min("left_at").alias("first_seen"),
            F.max("back_at").alias("last_seen"),
            F.count("*").alias("returns"),
            F.sum("logins").alias("events"),
            with_most("address", "of_address").alias("address"),
            F.slice(distinct("zone"), 1, SHOWN).alias("zones"),
            F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
            F.collect_set("from_zone").alias("from_zones"),
        )
    )


def _findings(tokens: DataFrame, thresholds: PlacesThresholds) -> DataFrame:
    return finding_rows(
        tokens,
        subject="token_id",
        severity=high_if(F.col("returns") >= thresholds.sure_returns),
        evidence=[
            ("what is unusual", F.lit("to and fro")),
            ("zones at once", some(F.col("zones"))),
            ("returns", F.col("returns")),
            ("addresses", some(F.col("addresses"))),
            ("addresses of each token of the owner", F.round("addresses_a_token", 1)),
            ("the owner is known since", as_text(F.col("known_since"))),
        ],
    )


def _of_lone(uses: DataFrame, case: str, severity: Severity) -> DataFrame:
    tokens = uses.groupBy("token_id", F.col("who").alias("owner"), "known_since").agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        with_most("address", "logins").alias("address"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
        F.slice(distinct("wide"), 1, SHOWN).alias("networks"),
    )
    return finding_rows(
        tokens,
        subject="token_id",
        severity=F.lit(severity.value),
        evidence=[
            ("what is unusual", F.lit(case)),
            ("networks", some(F.col("networks"))),
            ("addresses", some(F.col("addresses"))),
            ("with libraries", some(F.col("clients"))),
            ("the owner is known since", as_text(F.col("known_since"))),
        ],
    )


TWO_PLACES: Final = Sign(
    kind="two_places",
    title="Used in two places at once",
    meaning="A token is used in two places at once, or for a short time where its owner never was.",
    finds="a person's token that is used in two places within minutes or two hours, and a partner's in a new network",
    misses="the tokens of the company's own jobs, and of people who work at any hour",
    subject_type=SubjectType.TOKEN,
    thresholds=PlacesThresholds(),
    rule=two_places,
    about_use=True,
    steps=(
        advise("Ask the owner in which of the zones it was, or a partner whether the address is its own. If not:"),
        end_token,
        follow_address,
    ),
)
