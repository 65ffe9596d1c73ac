"""A token is used in a zone that is rare for its owner, while the owner's work goes on where it always is.

The rule looks at zones to which an owner comes after `zone_history`, in which it makes at most `rare_visits` of its
logins, and which it leaves while it is still at home elsewhere. What that means depends on the owner's neighbours,
which are at home in the same zone. *Commuters* are mainly in another zone than on the day before, again and again
(`commutes`): they are people with an office and a VPN. The cases:

- *away from a zone where owners stay*: at most `commuters` of the owner's neighbours commute, and the owner does not.
  Jobs of a cluster stay there.
- *a commuter among jobs*: the owner's neighbours commute, and the zone is one where owners stay. People have no
  programs there.

It takes `neighbours` to know a zone. These visits are quiet:

- `visitors` owners from the same zone or large network, or more, are there within a day as well, with libraries that
  they had before: a cluster fails over, or moves. A move for good is quiet, because the owner does not stay at home.
- The owner comes with a group of people, who bring their notebooks.
- It begins on many machines (`peers.MACHINES`) with one library that the owner had before: a load test, or a new place
  of the job.
- It is a detour: the owner's line or cluster is down, its home is silent meanwhile, as it is not else, and its work
  goes on with clients that it had there.
- The owner works by day, comes by day and with clients that it had, and others were in that large network before:
  people whose notebooks run beside jobs have a laptop as well. In a zone where owners stay, such a visit is quiet only
  on a host that several principals share (`hosts.with_shared`).

- It is what many of the company do (`habits`): tokens of a hub or a scheduler are used there with this library, or a
  tool at that address logs in with the tokens of several principals.
- The owner has just logged in at the address without a token, with a library that it had: it tries its token itself.
  Or a colleague at work has, and looks into the job for an hour.
- The owner works by day, and comes by day with its usual client, as do `roamers` people in all within `habits.AROUND`
  before and after that, each to such a place: they work at home, or at a customer's, for a day.
- The owner is a person with a library of theirs, in a network to which many people come now and then (`roaming`).

The severity is high if the library or the kind of client id is new to the owner as well, but medium if others had just
logged in at the address as themselves. The finding names these. It is medium as well if an owner that works by day
comes in its day in the first week in which it is known.

Not seen: a thief in the owner's zone or in one that commuters may come to, a thief that comes on the day of a fail-over
or takes the place of the owner while its home is down, one with many machines and the owner's library, and one that
uses the token of a person with the usual client by day, or with the person's library on the VPN.
"""

# The work is on one row for each owner and zone; only visits are compared with the uses of others.

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.colleagues import colleagues, with_colleagues, without_engineers
from kafka_dt.pipeline.report.detours import detours
from kafka_dt.pipeline.report.expressions import (
    as_text,
    distinct,
    distinct_within,
    first_and_last,
    some,
    with_most,
)
from kafka_dt.pipeline.report.habits import month_around, without_habits
from kafka_dt.pipeline.report.hosts import with_shared
from kafka_dt.pipeline.report.peers import in_groups
from kafka_dt.pipeline.report.roaming import without_roamers
from kafka_dt.pipeline.report.signs.finding import SHOWN, SubjectType, finding_rows, high_if
from kafka_dt.pipeline.report.signs.sign import Sign, advise, end_token, follow_address, threshold
from kafka_dt.pipeline.report.workdays import is_in_day, with_first_week

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed


@dataclass(frozen=True, slots=True)
class ZoneThresholds:
    """When a zone is not the owner's."""

    zone_history: timedelta = threshold(timedelta(days=3), "Time in which an owner shows its zones")
    """Jobs run every day, and a weekend is two days long."""
    rare_visits: float = threshold(0.1, "Logins in a rare zone for each login of the owner, at most")
    """A move or a second place is more."""
    commutes: int = threshold(4, "Changes of the main zone from day to day that make a commuter")
    """A fail-over and the way back are two, and so is another one."""
    commuters: float = threshold(0.25, "Commuters among the owners of a zone where owners stay, at most")
    """In an office more than half of the people commute; in a cluster one in twenty owners."""
    neighbours: int = threshold(5, "Owners that are at home in a zone that is known")
    """Fewer show no habit."""
    roamers: int = threshold(4, "People who are elsewhere by day, with their usual client")
    """They work at home, or at a customer's, now and then."""
    visitors: int = threshold(2, "Neighbours in the same zone within a day that explain a visit")
    """A cluster that moves or fails over takes several owners along."""


def rare_zones(seen: Observed, thresholds: ZoneThresholds) -> DataFrame:
    """Find visits to zones that are rare for an owner; one finding for each owner and zone."""
    homes = seen.homes
    people = in_groups(seen.arrivals)
    late = (
        _visits(seen.clients, homes, thresholds)
        .join(_deployed(seen), ["who", "zone", "day"], "left_anti")
        .join(people, ["who", "zone"], "left_anti")
    )
    kinds = homes.groupBy(F.col("home").alias("zone")).agg(
        F.count("*").alias("owners"), F.count(F.when(F.col("changes") >= thresholds.commutes, 1)).alias("commuters")
    )
    known = kinds.where(F.col("owners") >= thresholds.neighbours).withColumn(
        "stays", F.col("commuters") <= F.col("owners") * F.lit(thresholds.commuters)
    )
    home_kinds = known.select(F.col("zone").alias("home"), "owners", "commuters", F.col("stays").alias("home_stays"))
    rows = late.join(home_kinds, "home").join(known.select("zone", "stays"), "zone", "left")
    is_commuter = F.col("changes") >= thresholds.commutes
    case = F.when(F.col("home_stays") & ~is_commuter, F.lit("away from a zone where owners stay")).when(
        ~F.col("home_stays") & F.col("stays"), F.lit("a commuter among jobs")
    )
    odd = rows.withColumn("case", case).where(F.col("case").isNotNull())
    visits = seen.work("visits", _alone(odd, seen, homes, thresholds))
    alone = seen.work("alone", visits.join(detours(seen, visits), ["who", "zone"], "left_anti"))
    uses = seen.work("uses", seen.usage.join(alone.select("who").distinct(), "who", "left_semi"))
    by_alone = seen.work("by_alone", _with_uses(alone, uses))
    rare = seen.work("rare", without_habits(by_alone, seen.habits))
    tried = seen.work("tried", with_colleagues(rare, seen.habits))
    there = with_shared(without_engineers(tried, seen), seen.habits, "address")
    there = with_first_week(without_roamers(there, seen), seen.clients, seen.workdays)
    return _findings(there.join(_by_day(alone, seen), ["who", "zone"]), thresholds)


def _visits(clients: DataFrame, homes: DataFrame, thresholds: ZoneThresholds) -> DataFrame:
    """Give the zones to which owners came late, and for a small part of their logins, and left again."""
    of_owner = Window.partitionBy("who")
    zones = (
        clients.groupBy("who", "zone")
        .agg(
            F.min("first_seen").alias("since"),
            F.max("last_seen").alias("until"),
            F.sum("logins").alias("logins"),
            F.max("by_token").alias("by_token"),
            F.min("wide").alias("wide"),
        )
        .withColumns(
            {
                "owner_since": F.min("since").over(of_owner),
                "owner_logins": F.sum("logins").over(of_owner),
                "day": F.to_date("since"),
            }
        )
    )
    return zones.join(homes, "who").where(
        (F.col("zone") != F.col("home"))
        & F.col("by_token")
        & (F.col("since") > F.col("owner_since") + F.lit(thresholds.zone_history))
        & (F.col("logins") <= F.col("owner_logins") * F.lit(thresholds.rare_visits))
        & (F.col("until") < F.col("home_until"))
    )


def _deployed(seen: Observed) -> DataFrame:
    """Give the zones, and the days, to which an owner came with many machines."""
    there = seen.usage.select("who", "wide", "zone", F.to_date("first_seen").alias("day"))
    return there.join(seen.deployments, ["who", "wide", "day"], "left_semi").drop("wide").distinct()


def _alone(visits: DataFrame, seen: Observed, homes: DataFrame, thresholds: ZoneThresholds) -> DataFrame:
    """Leave out visits on which neighbours came along, with the libraries that they had."""
    moved = seen.arrivals.where("moved").select("who", "zone")
    there = seen.usage.join(moved, ["who", "zone"], "left_semi")
    neighbour = [F.col(name).alias(f"their_{name}") for name in ("who", "home", "home_wide")]
    neighbours = there.join(homes, "who").select("zone", *neighbour, *_span("there"))
    # The machines of one cluster may be in several zones, as far as these are learned.
    same_home = (F.col("home") == F.col("their_home")) | (F.col("home_wide") == F.col("their_home_wide"))
    day = F.expr("INTERVAL 1 DAY")
    along = (
        visits.select("who", "zone", "home", "home_wide", "since")
        .join(neighbours, "zone")
        .where(
            (F.col("their_who") != F.col("who"))
            & same_home
            & (F.col("there_since") <= F.col("since") + day)
            & (F.col("there_until") >= F.col("since") - day)
        )
        .groupBy("who", "zone")
        .agg(F.count_distinct("their_who").alias("along"))
    )
    return visits.join(along, ["who", "zone"], "left").fillna(0, ["along"]).where(F.col("along") < thresholds.visitors)


def _span(name: str) -> tuple[Column, Column]:
    return F.col("first_seen").alias(f"{name}_since"), F.col("last_seen").alias(f"{name}_until")


def _with_uses(visits: DataFrame, usage: DataFrame) -> DataFrame:
    """Add the tokens and clients of the visits, and whether the owner had such a client elsewhere before."""
    for name in ("software", "client"):
        since = F.min("first_seen").over(Window.partitionBy("who", name))
        usage = usage.withColumn(f"{name}_since", since)
    there = usage.where(F.col("token_id").isNotNull()).join(visits.drop("logins", "wide"), ["who", "zone"])
    new_client = (F.col("software_since") >= F.col("since")) | (F.col("client_since") >= F.col("since"))
    return there.withColumn("new_client", new_client)


def _by_day(visits: DataFrame, seen: Observed) -> DataFrame:
    """Tell of each visit whether a person makes it by day (`in_day`), and who was there before (`others_before`).

    Others were before if they came to the large network: on each floor of an office others work.
    """
    there = seen.network_arrivals.select("who", "wide", "others_before")
    in_day = F.col("day_begins").isNotNull() & is_in_day(F.col("since"))
    return (
        visits.select("who", "zone", "wide", "since")
        .join(seen.workdays, "who", "left")
        .join(there, ["who", "wide"])
        .select("who", "zone", "others_before", F.coalesce(in_day, F.lit(False)).alias("in_day"))
    )


def _findings(uses: DataFrame, thresholds: ZoneThresholds) -> DataFrame:
    by_day = F.col("in_day") & (F.col("others_before") > 0)
    rows = uses.groupBy(F.col("who").alias("owner"), "zone", "home", "case", "owners", "commuters", "along").agg(
        *first_and_last(),
        F.sum("logins").alias("events"),
        with_most("token_id", "logins").alias("token_id"),
        with_most("address", "logins", "token_id").alias("address"),
        F.max("new_client").alias("new_client"),
        F.max("in_day").alias("in_day"),
        F.bool_and("first_week").alias("first_week"),
        colleagues(),
        F.bool_and(by_day & (~F.coalesce("stays", F.lit(False)) | F.col("on_shared"))).alias("by_day"),
        F.max("owner_logins").alias("owner_logins"),
        F.max("owner_since").alias("owner_since"),
        F.slice(distinct("address"), 1, SHOWN).alias("addresses"),
        F.slice(distinct("software"), 1, SHOWN).alias("clients"),
    )
    roams = F.col("in_day") & ~F.col("new_client")
    roamers = distinct_within(F.when(roams, F.col("owner")), month_around("first_seen"))
    rows = rows.withColumn("by_day", F.col("by_day") | (F.col("in_day") & (roamers >= thresholds.roamers)))
    counted = F.format_string(
        "of %d owners at home in %s, %d commute; %d came along", "owners", "home", "commuters", "along"
    )
    return finding_rows(
        rows.where(F.col("new_client") | ~F.col("by_day")),
        subject="token_id",
        severity=high_if(F.col("new_client") & ~F.col("first_week") & F.col("colleagues").isNull()),
        evidence=[
            ("what is unusual", F.col("case")),
            ("zone", F.col("zone")),
            ("logins there", F.col("events")),
            ("logins of the owner", F.col("owner_logins")),
            ("counted", counted),
            ("from addresses", some(F.col("addresses"))),
            ("logged in there as themselves", some(F.col("colleagues"))),
            ("with libraries", some(F.col("clients"))),
            ("the client is new to the owner", F.when(F.col("new_client"), F.lit("yes"))),
            ("the owner is known since", as_text(F.col("owner_since"))),
        ],
    )


RARE_ZONE: Final = Sign(
    kind="rare_zone",
    title="Used in a zone that is rare for the owner",
    meaning="The token is used in a zone where its owner and the owner's neighbours hardly ever are.",
    finds="a token in a zone where its owner and the owner's neighbours hardly ever are",
    misses="a thief in the owner's zone, and people at new places",
    subject_type=SubjectType.TOKEN,
    thresholds=ZoneThresholds(),
    rule=rare_zones,
    about_use=True,
    steps=(
        advise("Ask the owner what it did in that zone. If it was not there:"),
        end_token,
        follow_address,
    ),
)
