"""What is usual for an owner and for its peers, with the numbers that say so.

    arrivals = peers(clients, "zone")               # one row for each owner and zone
    arrivals = peers(clients, "wide")               # ... and large network
    homes = homes_of(usage)                         # one row for each owner
    tests = deployments(usage, clients, days)       # one row for each owner, large network and day

A rule asks: did others come there before, did others come along, and does the owner often come to a new place?

| column | |
|---|---|
| `who`, and the column of the question | an owner (or a principal without a token), and where it is |
| `since`, `until`, `logins` | its first and last login there, and how many |
| `owner_since` | its first login anywhere |
| `tokens_since`, `own_since` | its first login with a token, and without one, anywhere |
| `elsewhere_until` | its last login in one of the zones in which it was before |
| `owner_before` | in how many other zones it was before |
| `others_before` | how many others were there for `settled` when it came |
| `others_along` | how many others came within `together` of it, before or after |
| `origin` | where it made the most logins of where it had been before; null: it began there |
| `neighbours_before` | how many of the others that were there for `settled` had come from the same origin |
| `people` | the size of the group of people with which it came; null: with none |
| `others_moved` | how many of those moved; if others were there before, how many from the same origin |
| `moved` | whether it came with a library that it had before, or began there, or came with a group of people |
| `by_token` | whether it came with a token |

The counts are over one row for each owner and zone, not over events. A cluster that moves takes its programs along. A
thief with the tokens of many owners brings one of its own, so owners whose library is new there did not move. Where
others were before, those who move together come from the same place: people who come to a VPN from their office do not
explain a job that does.

A group of people are `PEOPLE` owners or more that come from one origin to a large network within `together`, each on
addresses of its own and not all with the same library: they bring their notebooks to a new office, or to a guests'
network. A thief has a machine or two. The others of the group count as `others_moved`.

`homes_of` tells the zone in which an owner is on most days (`home`) and its large network there (`home_wide`), since
when and until when it is there (`home_since`, `home_until`), and how often it was mainly in another zone than on its
last day before (`changes`). People go to an office on some days and work over a VPN on others. Jobs stay, and a cluster
that moves is one change.

`deployments` tells where an owner's own library came to another large network on `MACHINES` machines on one day
(`who`, `wide`, `day`). A team starts a load test, or its job in a new place; a thief has a machine or two. A cluster
gets new nodes, and a part of a job is started there now and then: on `_SPREAD` machines of a private network in the
first `_SPREADS`, and it is there for longer than a day (`_STAYS`). Then its days of the first `_KNOWN` there count.
After that the network is its own. A cluster fails over, and comes from many places: `_FAILOVER` owners come to a
private network on one day, each on two machines or more that it has for itself. Owners that work by day are no jobs: a
VPN gives a notebook another address each time.

Source: Microsoft Sentinel, "UEBA enrichments": peers' use of a thing beside the user's own.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import (
    distinct_over,
    distinct_within,
    host,
    is_carriers,
    is_public,
    with_most,
)
from kafka_dt.pipeline.report.lives import days_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SETTLED: Final = timedelta(days=1)
"""How long an owner is in a zone where it is at home."""
TOGETHER: Final = timedelta(days=1)
"""Within which time those arrive who move together: a cluster moves within a shift."""
MACHINES: Final = 5
"""So many machines that begin on one day are those of a team."""
_SPREAD: Final = 3
"""A thief has fewer machines in the company's networks."""
_SPREADS: Final = timedelta(days=2)
"""In this time parts of a job end and begin."""
_KNOWN: Final = timedelta(days=7)
"""In a week most parts of a job are started anew."""
_STAYS: Final = timedelta(days=1)
"""A thief, and a test, are gone by then."""
_FAILOVER: Final = 5
"""Owners that come to a network on one day, each on several machines: a thief tries the tokens of many on one."""
PEOPLE: Final = 3
"""Two owners that come to a place on one day may be a thief with two tokens."""


def peers(clients: DataFrame, name: str, *, settled: timedelta = SETTLED, together: timedelta = TOGETHER) -> DataFrame:
    """Tell of each owner since when it is in a zone, and who else.

    Args:
        clients: where principals were and with what, as `lives.clients_by_zone` makes it.
        name: the column of the zones: `zone`, or `wide` for large networks.
        settled: how long others have to be there that were there before.
        together: within which time others come along.
    """
    each = clients.groupBy("who", name).agg(
        F.min("first_seen").alias("since"),
        F.max("last_seen").alias("until"),
        F.sum("logins").alias("logins"),
        F.min(F.struct("first_seen", "software", "by_token", "own_address")).alias("first"),
        F.min("wide").alias("network"),
        F.min(F.when(F.col("by_token"), F.col("first_seen"))).alias("tokens_since"),
        F.min(F.when(~F.col("by_token"), F.col("first_seen"))).alias("own_since"),
    )
    came = (F.col("first.software").alias("came_with"), "first.by_token", "first.own_address")
    each = each.select("*", *came).drop("first")
    had = clients.groupBy("who", F.col("software").alias("came_with")).agg(F.min("first_seen").alias("had_since"))
    arrival = F.unix_seconds("since")
    there = Window.partitionBy(name).orderBy(arrival)
    settled_before = -int(settled.total_seconds())
    before = there.rangeBetween(Window.unboundedPreceding, settled_before)
    seconds = int(together.total_seconds())
    along = there.rangeBetween(-seconds, seconds)
    of_owner = Window.partitionBy("who")
    in_order = of_owner.orderBy("since", name)
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    busiest = F.max(F.struct("logins", name)).over(earlier)
    arrived = each.join(had, ["who", "came_with"]).withColumn("owner_since", F.min("since").over(of_owner))
    began = F.col("owner_since") == F.col("since")
    in_network = Window.partitionBy("network", "origin").orderBy(arrival).rangeBetween(-seconds, seconds)
    notebook = F.when(F.col("own_address") & ~began, F.col("came_with"))
    notebooks, libraries = F.count(notebook).over(in_network), distinct_within(notebook, in_network)
    from_origin = Window.partitionBy(name, "origin").orderBy(arrival)
    neighbours = from_origin.rangeBetween(Window.unboundedPreceding, settled_before)
    from_there = from_origin.rangeBetween(-seconds, seconds)
    moved_there = F.when(F.col("others_before") == 0, F.col("all_moved")).otherwise(F.col("moved_from_there"))
    movers, own = F.count(F.when(F.col("moved"), 1)), F.col("moved").cast("int")
    return (
        arrived.withColumns(
            {
                "origin": busiest[name],
                "tokens_since": F.min("tokens_since").over(of_owner),
                "own_since": F.min("own_since").over(of_owner),
                "elsewhere_until": F.max("until").over(earlier),
                "owner_before": F.row_number().over(in_order) - 1,
                "others_before": F.count("*").over(before),
                "others_along": F.count("*").over(along) - 1,
            }
        )
        .withColumn("people", F.when(notebook.isNotNull() & (notebooks >= PEOPLE) & (libraries > 1), notebooks))
        .withColumn("moved", (F.col("had_since") < F.col("since")) | began | F.col("people").isNotNull())
        .withColumn("neighbours_before", F.when(F.col("origin").isNotNull(), F.count("*").over(neighbours)))
        .withColumns({"all_moved": movers.over(along) - own, "moved_from_there": movers.over(from_there) - own})
        .withColumn("others_moved", F.greatest(moved_there, F.col("people") - 1))
        .drop("all_moved", "moved_from_there", "network", "own_address")
    )


def in_groups(arrivals: DataFrame) -> DataFrame:
    """Give the owners and zones of those who came with a group of people."""
    return arrivals.where(F.col("people").isNotNull()).select("who", "zone")


def first_arrivals(arrivals: DataFrame, condition: Column) -> DataFrame:
    """Keep the first arrival of each owner for which a condition holds: an owner that has another one travels."""
    before = Window.partitionBy("who").orderBy(F.unix_micros("since")).rangeBetween(Window.unboundedPreceding, -1)
    journeys = F.coalesce(F.sum(condition.cast("int")).over(before), F.lit(0))
    return arrivals.withColumn("journeys", journeys).where(condition & (F.col("journeys") == 0))


def homes_of(usage: DataFrame) -> DataFrame:
    """Tell the home of each owner, and how often it goes from zone to zone."""
    # Counted before the days are listed: thousands of uses of a job have the same days.
    ends = (F.to_date(name).alias(name) for name in ("first_seen", "last_seen"))
    spans = usage.groupBy("who", "zone", *ends, "day_bits").agg(F.count("*").alias("uses"))
    in_use = spans.select("who", "zone", "uses", F.explode(days_of()).alias("day"))
    there = in_use.groupBy("who", "day", "zone").agg(F.sum("uses").alias("uses"))
    days = there.groupBy("who", "day").agg(with_most("zone", "uses").alias("zone"))
    changed = F.lag("zone").over(Window.partitionBy("who").orderBy("day")) != F.col("zone")
    in_zone = (
        days.withColumn("changed", changed)
        .groupBy("who", "zone")
        .agg(F.count("*").alias("days"), F.count(F.when(F.col("changed"), 1)).alias("changes"))
    )
    homes = in_zone.groupBy("who").agg(with_most("zone", "days").alias("home"), F.sum("changes").alias("changes"))
    at_home = usage.groupBy("who", F.col("zone").alias("home")).agg(
        F.min("first_seen").alias("home_since"),
        F.max("last_seen").alias("home_until"),
        with_most("wide", "logins").alias("home_wide"),
    )
    return homes.join(at_home, ["who", "home"])


def deployments(usage: DataFrame, clients: DataFrame, days: DataFrame) -> DataFrame:
    """Tell when an owner began on many machines in another large network, with a library that it had elsewhere.

    Args:
        usage: where principals logged in, as `lives.logins_by_place` makes it, with zones.
        clients: where principals were and with what, as `lives.clients_by_zone` makes it.
        days: which of them work by day, as `workdays.workdays` makes it.
    """
    since = clients.groupBy("who", "wide").agg(F.min("first_seen").alias("since"))
    had = clients.groupBy("who", "software").agg(F.min("first_seen").alias("had_since"))
    there = usage.join(since, ["who", "wide"]).join(had, ["who", "software"])
    own = there.where(F.col("had_since") < F.col("since")).withColumn("day", F.to_date("first_seen"))
    machines = own.groupBy("who", "wide", "software", "day").agg(F.count_distinct("address").alias("machines"))
    many = machines.where(F.col("machines") >= MACHINES)
    early = F.when(F.col("first_seen") < F.col("since") + F.lit(_SPREADS), host(F.col("address")))
    inside = own.where(~is_public(F.col("wide")) & ~is_carriers(F.col("wide"))).join(days, "who", "left_anti")
    spread = (
        inside.groupBy("who", "wide")
        .agg(
            F.count_distinct(early).alias("machines"), F.max("last_seen").alias("until"), F.min("since").alias("since")
        )
        .where((F.col("machines") >= _SPREAD) & (F.col("until") > F.col("since") + F.lit(_STAYS)))
    )
    first_week = inside.join(spread, ["who", "wide"], "left_semi")
    first_week = first_week.where(F.col("first_seen") < F.col("since") + F.lit(_KNOWN))
    place = ["who", "wide", "day"]
    arrived = inside.where(F.col("day") == F.to_date("since")).withColumn("machine", host(F.col("address")))
    guests = distinct_over("who", "wide", "day", "machine")
    first_day = arrived.withColumn("guests", guests).where(F.col("guests") == 1).groupBy(*place)
    several = first_day.agg(F.count_distinct("machine").alias("machines")).where(F.col("machines") > 1)
    together = F.count("*").over(Window.partitionBy("wide", "day"))
    failover = several.withColumn("together", together).where(F.col("together") >= _FAILOVER)
    later = first_week.select(*place).unionByName(failover.select(*place))
    return many.select(*place).unionByName(later).distinct()
