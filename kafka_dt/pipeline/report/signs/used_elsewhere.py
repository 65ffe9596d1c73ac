"""Tokens of a program that are made on one day, by a new requester or as its first ones, and used where it never was.

    made = used_elsewhere(seen, made, thresholds)

Who takes over a program goes on with it, and a program that begins with tokens goes on, too. Who helps its team uses
the token where the program is. The rule leaves out

- owners that work by day, or with fewer logins (`_LOGINS`) than show that: hubs start people's notebooks anywhere;
- requesters that begin with several owners on that day: a scheduler is new;
- owners that come to the network together with others, and stay for longer than a day: a cluster moves;
- owners that are in the network for longer than `_STAYS`: they work there now, with one token that they renew;
- tokens that operators make at work (`operators_tokens.operators_tokens`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import UNKNOWN, distinct_over, of_first
from kafka_dt.pipeline.report.signs.first_tokens import MOVES
from kafka_dt.pipeline.report.signs.made_once import ONCE, is_made_once, requesters

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.new_requester import RequesterThresholds
    from kafka_dt.pipeline.report.signs.sign import Observed

_OWNERS: Final = 3
"""A new scheduler begins with so many owners on a day."""
_STAYS: Final = timedelta(days=3)
"""A weekend is two days long."""
_LOGINS: Final = 24
"""Who makes so many and does not work by day is a program."""


def used_elsewhere(seen: Observed, made: DataFrame, thresholds: RequesterThresholds) -> DataFrame:
    """Give such tokens.

    Args:
        seen: what the report has computed.
        made: `owner`, `requester` and `token_id` of each token that was created.
        thresholds: of the sign.

    Returns:
        Those rows of `made`, with the `address`, the `software` and the `zone` of the first use there, when the
        requester began (`since`), and whether the owner had no token before (`first`).
    """
    counts = {
        "owners": distinct_over("owner", "requester", F.to_date("since")),
        "first": F.min("since").over(Window.partitionBy("owner")) == F.col("since"),
    }
    few = requesters(seen.lives).withColumns(counts).where(F.col("owners") < _OWNERS)
    once = few.where(F.col("all_created") & is_made_once())
    known = seen.network_arrivals.groupBy(F.col("who").alias("owner")).agg(
        F.min("since").alias("known_since"), F.sum("logins").alias("logins")
    )
    programs = known.where(F.col("logins") >= _LOGINS).drop("logins")
    programs = programs.join(seen.workdays.select(F.col("who").alias("owner")), "owner", "left_anti")
    new = once.join(programs, "owner").where(F.col("known_since") + F.lit(thresholds.without_tokens) < F.col("since"))
    tokens = made.join(new.select("owner", "requester", "since", "first"), ["owner", "requester"])
    tokens = seen.work("for_programs", tokens.join(seen.operators_tokens, "token_id", "left_anti"))
    moves = (F.col("others_moved") >= MOVES) & (F.col("until") > F.col("since") + F.lit(ONCE))
    stays = F.col("until") > F.col("since") + F.lit(_STAYS)
    came = seen.network_arrivals.where(~F.coalesce(moves, F.lit(False)) & ~stays)
    came = came.select("who", "wide", F.col("since").alias("came"))
    uses = seen.usage.where(F.col("address") != UNKNOWN).join(tokens.select("token_id"), "token_id", "left_semi")
    used = (
        uses.join(came, ["who", "wide"])
        .where(F.col("first_seen") <= F.col("came"))
        .groupBy("token_id")
        .agg(
            of_first("address", "first_seen").alias("address"),
            of_first("software", "first_seen", "address").alias("software"),
            of_first("zone", "first_seen", "address").alias("zone"),
        )
    )
    return tokens.drop("address", "software").join(used, "token_id")
