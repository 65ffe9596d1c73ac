"""Uses of tokens that are unlike the histories of the token and of its owner's other tokens.

    judged = unlike_histories(seen, thresholds)     # uses, with `case`

What the cases mean is told in `stolen_token.py`, whose rule this is a part of.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import (
    UNKNOWN,
    nth,
    union,
)
from kafka_dt.pipeline.report.networks import ZoneKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.window import WindowSpec

    from kafka_dt.pipeline.report.signs.sign import Observed
    from kafka_dt.pipeline.report.signs.stolen_token import StolenTokenThresholds

ANOTHER_CLIENT: Final = "another client"
FOREIGN: Final = "in a foreign network"
ELSEWHERE: Final = "elsewhere"
ELSEWHERE_CHANGED: Final = "elsewhere, with another client"
OWNED: Final = ("zone", "software", "client")
"""Of what an owner's habits are known."""


def unlike_histories(seen: Observed, thresholds: StolenTokenThresholds) -> DataFrame:
    """Give the rows of the usage that are a sign by the token's history and its owner's, with the `case`."""
    histories = seen.work("histories", _histories(seen.usage, seen.lives, thresholds))
    rows = seen.work("varied", _with_history(seen.usage, histories, thresholds))
    return (
        _with_owners(rows, histories, seen, thresholds)
        .withColumn("case", _case(thresholds))
        .where(F.col("case").isNotNull())
    )


def _case(thresholds: StolenTokenThresholds) -> Column:
    overlap = F.lit(thresholds.overlap)
    zone_new, software_new, client_new = (~_usual(f"{part}_since") for part in OWNED)
    own_library = ~_new_to_owner("software") | (F.col("library_since") < F.col("came"))
    in_group = F.col("people").isNotNull()
    had_library = F.col("library_since") + F.lit(thresholds.history) < F.col("first_seen")
    moves = (F.col("others_moved") >= thresholds.move_together - 1) & (own_library | in_group)
    strange_zone = _new_to_owner("zone") & ~moves
    strange_client = _new_to_owner("software") | _new_to_owner("client")
    known_well = F.col("owner_tokens") >= thresholds.known_tokens
    many_networks = F.col("owner_networks") > F.col("owner_tokens") * F.lit(thresholds.networks_a_token)
    roams, stays = known_well & many_networks, known_well & ~many_networks

    zone_goes_on = F.col("usual_zone_until") >= F.col("zone_since") + overlap
    client_goes_on = F.col("usual_client_until") >= F.greatest("release_since", "address_since") + overlap
    other_release = ~software_new & ~_usual("release_since") & client_new

    elsewhere = zone_new & strange_zone & zone_goes_on
    names_itself = ~client_new & ~F.coalesce(_usual("named_since"), F.lit(False))
    other_library = software_new & ~names_itself & ~had_library
    another_client = ~_usual("address_since") & (other_library | other_release) & client_goes_on & ~in_group
    moved_and_changed = zone_new & strange_zone & (software_new | client_new)

    many_machines = F.col("parts") >= thresholds.parts
    one_there = many_machines & F.col("alone_there") & stays
    strange_there = _known_before("zone_since", thresholds) & strange_zone & (strange_client | one_there)
    one_with_client = many_machines & F.col("alone_with_client") & _new_to_owner("software") & _new_to_owner("client")
    strange_program = _known_before("software_since", thresholds) & one_with_client
    return (
        F.when(_new_to_owner("zone") & (F.col("zone_kind") == ZoneKind.FOREIGN.value), F.lit(FOREIGN))
        .when(elsewhere & (software_new | client_new), F.lit(ELSEWHERE_CHANGED))
        .when(elsewhere & ~roams, F.lit(ELSEWHERE))
        .when(another_client, F.lit(ANOTHER_CLIENT))
        .when(moved_and_changed, F.lit("moved and changed"))
        .when(strange_there | strange_program, F.lit("strange to its owner"))
    )


def _known_before(since: str, thresholds: StolenTokenThresholds) -> Column:
    """Whether the owner was known for long enough when something came."""
    return F.col("owner_since") + F.lit(thresholds.history) < F.col(since)


def _histories(usage: DataFrame, lives: DataFrame, thresholds: StolenTokenThresholds) -> DataFrame:
    """Make one row of each token with enough of a history: when it ends, and whether the uses differ in what counts."""
    share = (F.col("max_time") - F.col("created_at")) * F.lit(thresholds.history_of_life)
    length = F.least(F.lit(thresholds.history), F.greatest(F.lit(thresholds.shortest_history), share))
    tokens = lives.where(F.col("logins") > thresholds.history_logins).select(
        "token_id", (F.col("first_login") + length).alias("history_end")
    )
    # Every case needs another zone, library or release; another kind of client id says nothing alone.
    differs = reduce(or_, (F.min(name) != F.max(name) for name in ("zone", "software", "software_version")))
    return (
        usage.join(tokens, "token_id")
        .groupBy("token_id", "history_end")
        .agg(
            F.min("first_seen").alias("token_since"),
            F.sum(F.when(_usual("first_seen"), F.col("logins"))).alias("history_logins"),
            differs.alias("differs"),
        )
        .where(F.col("history_logins") >= thresholds.history_logins)
    )


def _with_history(usage: DataFrame, histories: DataFrame, thresholds: StolenTokenThresholds) -> DataFrame:
    """Add to each use by a token what was usual for the token; leave out tokens whose uses are all alike.

    That is since when the token is known for each part of the use (network, library, release, client, address) and for
    a library that its client names, until when its usual use went on, and on how many machines it began.
    """
    # Every window is over a token or a part of it, so the rows need to be divided once; and rows in the order of one
    # window are in the order of another one that has the first of its columns, so they need to be sorted four times.
    rows = usage.join(histories.where("differs"), "token_id").repartition("token_id")

    def over(*columns: str) -> WindowSpec:
        return Window.partitionBy("token_id", *columns)

    first = F.min("first_seen")
    named = F.min(F.when(F.col("software") != UNKNOWN, F.col("first_seen")))
    with_client, in_zone, of_token = over("client", "software"), over("zone"), over()
    rows = rows.withColumn("release_since", first.over(over("software", "software_version")))
    rows = rows.withColumn("software_since", F.min("release_since").over(over("software")))
    rows = rows.withColumn("address_since", first.over(over("address")))
    rows = rows.withColumn("alone_with_client", _same("address", with_client))
    rows = rows.withColumns({"client_since": first.over(over("client")), "named_since": named.over(over("client"))})
    rows = rows.withColumns({"zone_since": first.over(in_zone), "alone_there": _same("address", in_zone)})
    usual_client = _usual("software_since") & _usual("client_since")
    began = (F.col("first_seen") == F.col("address_since")) & (
        F.col("first_seen") <= F.col("token_since") + F.lit(thresholds.shortest_history)
    )
    return rows.withColumns(
        {
            "usual_zone_until": F.max(F.when(_usual("zone_since"), F.col("last_seen"))).over(of_token),
            "usual_client_until": F.max(F.when(usual_client, F.col("last_seen"))).over(of_token),
            "parts": F.count(F.when(began, 1)).over(of_token),
        }
    )


def _same(name: str, where: WindowSpec) -> Column:
    """Whether all rows of a window have the same value."""
    return F.min(name).over(where) == F.max(name).over(where)


def _with_owners(rows: DataFrame, histories: DataFrame, seen: Observed, thresholds: StolenTokenThresholds) -> DataFrame:
    """Add to each use what was usual for the owner: in all tokens' histories, without a token, and in known zones.

    That is since when the owner is known for the parts of the use, and how it lives: how many tokens it has in how many
    networks.
    """
    uses = seen.usage.join(rows.select("who").distinct(), "who", "left_semi")
    columns = ("who", "token_id", *OWNED, "first_seen")
    by_token = uses.join(histories, "token_id").where(_usual("first_seen"))
    known = uses.where(F.col("token_id").isNull()).select(*columns).unionByName(by_token.select(*columns))
    owners = known.groupBy("who").agg(
        F.min("first_seen").alias("owner_since"),
        F.count_distinct("token_id").alias("owner_tokens"),
        F.count_distinct("zone").alias("owner_networks"),
    )
    told = union(known, _told(uses, thresholds))
    habits = seen.work("habits", told.groupBy("who", *OWNED).agg(F.min("first_seen").alias("first_seen")))
    for name in OWNED:
        since = F.min("first_seen").alias(f"owner_{name}_since")
        rows = rows.join(habits.groupBy("who", name).agg(since), ["who", name], "left")
    moved = seen.arrivals.select("who", "zone", "people", "others_moved", F.col("since").alias("came"))
    # A library that came with an upgrade is in no token's history, but moves along.
    libraries = seen.clients.groupBy("who", "software").agg(F.min("first_seen").alias("library_since"))
    rows = rows.join(moved, ["who", "zone"], "left").join(libraries, ["who", "software"])
    return rows.join(owners, "who", "left")


def _told(uses: DataFrame, thresholds: StolenTokenThresholds) -> DataFrame:
    """Give the zones of owners in which `told_tokens` of their tokens were used, a `history` after that."""
    tokens = uses.where(F.col("token_id").isNotNull()).groupBy("who", "zone", "token_id")
    told_since = nth("first_seen", thresholds.told_tokens) + F.lit(thresholds.history)
    each = tokens.agg(F.min("first_seen").alias("first_seen")).groupBy("who", "zone")
    return each.agg(told_since.alias("first_seen")).where(F.col("first_seen").isNotNull())


def _usual(since: str) -> Column:
    """Whether something began within the token's history."""
    return F.col(since) <= F.col("history_end")


def _new_to_owner(name: str) -> Column:
    """Whether something came with the token that its owner was not known for, and not with its first login."""
    known, since = F.col(f"owner_{name}_since"), F.col(f"{name}_since")
    return (known.isNull() | (known >= since)) & (since > F.col("token_since"))
