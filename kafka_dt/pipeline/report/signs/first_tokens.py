"""The first tokens that owners make themselves, made where they never were.

    made = first_tokens(seen, made, known_for)          # of services that have worked without tokens
    made = first_own_tokens(seen, made, known_for)      # of owners whose tokens others make, over the Internet

People try tokens, at home and on trips. A service that begins with them does so where it has worked for a day
(`peers.SETTLED`), or where it moves together with others.

A hub makes the tokens of people who work in it, so they need no tokens of their own. Who has phished the password of
one of them does: the thief logs in over the Internet, and makes a token on that day.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import is_public, ok
from kafka_dt.pipeline.report.peers import SETTLED
from kafka_dt.pipeline.report.signs.made_once import requesters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_CLOCKS: Final = timedelta(minutes=5)
"""A token's time of issue may be that of another node's clock."""
_MADE_BY_OTHERS: Final = 3
"""Tokens that others made before: the owner needs none of its own."""
MOVES: Final = 2
"""Others that came to a place on the same day from where the owner was: a cluster moves."""


def first_tokens(seen: Observed, made: DataFrame, known_for: timedelta) -> DataFrame:
    """Give the first tokens of owners that logged in without any on many days, made in zones that are new to them.

    Owners that work by day are people, and left out.

    Args:
        seen: what the report has computed.
        made: `owner`, `requester`, `token_id`, `address` and `first_seen` of each token that was created.
        known_for: how long an owner has to be known, and on how many days it logs in before.

    Returns:
        Those rows of `made`, with `zone`, and since when the owner is known (`known_since`).
    """
    begins = seen.lives.groupBy("owner").agg(F.min("created_at").alias("since"))
    came = seen.clients.groupBy(F.col("who").alias("owner"), "zone").agg(F.min("first_seen").alias("came"))
    without = seen.clients.where(~F.col("by_token")).groupBy(F.col("who").alias("owner"))
    known = begins.join(without.agg(F.min("first_seen").alias("known_since")), "owner")
    late = known.where(F.col("known_since") + F.lit(known_for) < F.col("since"))
    services = late.join(seen.workdays.select(F.col("who").alias("owner")), "owner", "left_anti")
    logins = seen.deeds.where(ok(EventType.LOGIN)).select(F.col("principal").alias("owner"), "date", "last_seen")
    days = logins.join(services, "owner").where(F.col("last_seen") < F.col("since")).groupBy("owner")
    busy = days.agg(F.count_distinct("date").alias("days")).where(F.col("days") >= known_for.days)
    services = services.join(busy.select("owner"), "owner")
    placed = seen.work("first_tokens", _made_first(seen, made, seen.work("services", services)))
    at_home = placed.join(came, ["owner", "zone"]).where(F.col("came") + F.lit(SETTLED) < F.col("first_seen"))
    moved = seen.arrivals.where(F.col("others_moved") >= MOVES).select(F.col("who").alias("owner"), "zone")
    elsewhere = placed.join(at_home.select("owner", "zone").distinct(), ["owner", "zone"], "left_anti")
    return elsewhere.join(moved, ["owner", "zone"], "left_anti")


def first_own_tokens(seen: Observed, made: DataFrame, known_for: timedelta) -> DataFrame:
    """Give the first tokens that owners make themselves, in a network of the Internet to which they have just come.

    Args:
        seen: what the report has computed.
        made: as for `first_tokens`.
        known_for: how long the owner has used tokens of others before.

    Returns:
        Those rows of `made`, with `zone`, and since when the owner uses tokens (`known_since`).
    """
    begins = requesters(seen.lives).where(F.col("owner") == F.col("requester")).select("owner", "since")
    by_token = seen.clients.where("by_token").groupBy(F.col("who").alias("owner"))
    known = begins.join(by_token.agg(F.min("first_seen").alias("known_since")), "owner")
    late = known.where(F.col("known_since") + F.lit(known_for) < F.col("since"))
    by_others = seen.lives.where(F.col("owner") != F.col("requester")).select("owner", "created_at")
    before = by_others.join(late, "owner").where(F.col("created_at") < F.col("since")).groupBy("owner").count()
    served = late.join(before.where(F.col("count") >= _MADE_BY_OTHERS).drop("count"), "owner")
    placed = _made_first(seen, made, seen.work("served_owners", served))
    came = seen.network_arrivals.select(F.col("who").alias("owner"), "wide", F.col("since").alias("came"))
    soon = F.col("came") + F.lit(SETTLED) >= F.col("first_seen")
    return placed.where(is_public(F.col("wide"))).join(came, ["owner", "wide"]).where(soon).drop("came")


def _made_first(seen: Observed, made: DataFrame, owners: DataFrame) -> DataFrame:
    """Give the tokens that some owners made themselves, the first of each (`since`), with the zones."""
    own = made.where(F.col("owner") == F.col("requester")).join(owners, "owner")
    apart = F.abs(F.unix_seconds("first_seen") - F.unix_seconds("since"))
    return seen.zones.of(own.where(apart <= _CLOCKS.total_seconds()))
