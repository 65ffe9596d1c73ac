"""Clients that are strange to an owner: in a new place and with a new program, while the company explains neither.

    strange = strange_clients(seen, since="tokens_since", known_for=..., move_together=...)

| column | |
|---|---|
| `who`, `wide`, `zone`, `software`, `client`, `by_token` | the client, as in `lives.clients_by_zone` |
| `case` | `ALONE` or `ANEW` |
| `since` | when the owner came to the place |
| `counts` | what was counted, as text |

- `ALONE`: when the owner came to this large network (/16, of IPv6 /48), no other principal was there for a day, and
  fewer than `move_together` moved there on the same day; and the library or the kind of client id is new to the owner.
  An owner that came to such networks before travels.
- `ANEW`: the zone, the library and the kind of client id are all new to the owner, and fewer than `move_together` moved
  to the zone on the same day. An owner that came to another zone so before travels. A kind of client id that libraries
  give counts as new.

In both cases the owner was known for `known_for` when it came. In the second one an owner that works by day, and comes
in its day from a private network, was known for `people_known_for`: people have a second program for some things, and
use it at a second place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import as_text, is_given, is_public
from kafka_dt.pipeline.report.habits import foreign_zones
from kafka_dt.pipeline.report.peers import first_arrivals
from kafka_dt.pipeline.report.workdays import is_in_day

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

CLIENT: Final = ("who", "wide", "zone", "software", "client")
"""What a client of a principal is."""
ALONE: Final = "alone in a network, with another client"
ANEW: Final = "another program in another place"


def strange_clients(
    seen: Observed, *, since: str, known_for: timedelta, people_known_for: timedelta, move_together: int
) -> DataFrame:
    """Give the clients with which owners came to strange places.

    Args:
        seen: where principals were and with what, and when they came there.
        since: the column of `peers.peers` from which on an owner is known: `tokens_since` or `own_since`.
        known_for: how long it is known when it has a usual place.
        people_known_for: how long one that works by day is known when it has usual programs.
        move_together: owners that came to a place on the same day and move together.
    """
    late = F.col("since") >= F.col(since) + F.lit(known_for)
    alone = late & (F.col("others_moved") < move_together - 1)
    is_early = F.col("since") < F.col(since) + F.lit(people_known_for)
    is_private = F.col("foreign").isNull() & ~is_public(F.col("zone"))
    is_person_at_work = F.coalesce(is_early & is_in_day(F.col("since")) & is_private, F.lit(False))
    foreign = foreign_zones(seen.usage).withColumn("foreign", F.lit(True))
    arrivals = seen.arrivals.join(seen.workdays, "who", "left").join(F.broadcast(foreign), "zone", "left")
    came = _came(arrivals, alone & ~is_person_at_work)
    lonely = _lonely(seen.network_arrivals, alone)
    rows = seen.clients.join(lonely, ["who", "wide"], "left").join(came, ["who", "zone"], "left")
    rows = with_owners_since(
        rows.where(F.coalesce("wide_since", "zone_since").isNotNull()), seen.clients, "software", "client"
    )

    def is_new(name: str, came: str) -> Column:
        return F.col(f"owner_{name}_since") >= F.col(came)

    case = F.when(is_new("software", "wide_since") | is_new("client", "wide_since"), F.lit(ALONE)).when(
        is_new("software", "zone_since") & (is_new("client", "zone_since") | is_given(F.col("client"))), F.lit(ANEW)
    )

    def of_place(name: str) -> Column:
        return F.when(case == ALONE, F.col(f"wide_{name}")).otherwise(F.col(f"zone_{name}"))

    told = (case.alias("case"), of_place("counts").alias("counts"), of_place("since").alias("since"))
    return rows.select(*CLIENT, "by_token", *told).where(F.col("case").isNotNull()).distinct()


def with_owners_since(rows: DataFrame, clients: DataFrame, *names: str) -> DataFrame:
    """Add since when the owner has what some columns say, anywhere: `owner_software_since` for `software`."""
    for name in names:
        first = clients.groupBy("who", name).agg(F.min("first_seen").alias(f"owner_{name}_since"))
        rows = rows.join(first, ["who", name])
    return rows


def _lonely(arrivals: DataFrame, alone: Column) -> DataFrame:
    """Give the large networks in which an owner was the only principal, unless it was alone in another one before."""
    counts = F.format_string(
        "%d other principals came to %s; the owner was in %d other networks since %s",
        F.col("others_before") + F.col("others_along"),
        "wide",
        "owner_before",
        as_text(F.col("owner_since")),
    )
    places = first_arrivals(arrivals, alone & (F.col("others_before") == 0))
    return places.select("who", "wide", F.col("since").alias("wide_since"), counts.alias("wide_counts"))


def _came(arrivals: DataFrame, alone: Column) -> DataFrame:
    """Give the zones to which an owner came late and without others, unless it came to another one so before."""
    counts = F.format_string(
        "%d other principals moved to %s on that day; the owner was in %d other zones since %s",
        "others_moved",
        "zone",
        "owner_before",
        as_text(F.col("owner_since")),
    )
    places = first_arrivals(arrivals, alone)
    return places.select("who", "zone", F.col("since").alias("zone_since"), counts.alias("zone_counts"))
