"""The first token of a service that has worked without tokens, made where the service never was.

    made = first_tokens(seen, made, known_for)

People try tokens, at home and on trips. A service that begins with them does so where it has worked for a day
(`peers.SETTLED`), or where it moves together with others.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import ok
from kafka_dt.pipeline.report.peers import SETTLED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.sign import Observed

_CLOCKS: Final = timedelta(minutes=5)
"""A token's time of issue may be that of another node's clock."""
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
    own = made.where(F.col("owner") == F.col("requester")).join(seen.work("services", services), "owner")
    first = own.where(F.abs(F.unix_seconds("first_seen") - F.unix_seconds("since")) <= _CLOCKS.total_seconds())
    placed = seen.work("first_tokens", seen.zones.of(first))
    at_home = placed.join(came, ["owner", "zone"]).where(F.col("came") + F.lit(SETTLED) < F.col("first_seen"))
    moved = seen.arrivals.where(F.col("others_moved") >= MOVES).select(F.col("who").alias("owner"), "zone")
    elsewhere = placed.join(at_home.select("owner", "zone").distinct(), ["owner", "zone"], "left_anti")
    return elsewhere.join(moved, ["owner", "zone"], "left_anti")
