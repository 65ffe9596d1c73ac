"""Tokens that a scheduler creates once, for a service whose tokens others create before and afterwards.

    made = made_once(seen, made, thresholds)

A scheduler creates tokens for the same owners again and again. If it takes over a service, it goes on, or the others
stop. The rule leaves out

- people: one who starts jobs by hand opens a notebook once;
- requesters for which such tokens are found on as many days as they have owners that they serve for longer than a day,
  or on more, such as a login for emergencies;
- tokens that were used, and only in zones and with libraries with which the owner's tokens, or those of the requester's
  other owners, were used more than a day earlier: one scheduler runs the job of another one.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import distinct_over

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.new_requester import RequesterThresholds
    from kafka_dt.pipeline.report.signs.sign import Observed

ONCE: Final = timedelta(days=1)
"""A scheduler that goes on does so on the next day."""


def made_once(seen: Observed, made: DataFrame, thresholds: RequesterThresholds) -> DataFrame:
    """Give such tokens.

    Args:
        seen: what the report has computed.
        made: `owner`, `requester` and `token_id` of each token that was created.
        thresholds: of the sign.

    Returns:
        Those rows of `made`, with how many tokens of the owner others created before (`others_tokens`), since when
        (`others_since`), who creates them afterwards (`others`), and when the requester began (`since`).
    """
    pairs = requesters(seen.lives).where(F.col("owner") != F.col("requester"))
    is_once = is_made_once()
    again = pairs.where(~is_once).groupBy("requester").agg(F.count("*").alias("again"))
    schedulers = again.where(F.col("again") >= thresholds.scheduled)
    people = seen.workdays.select(F.col("who").alias("owner"))
    once = pairs.where(is_once & F.col("any_created")).join(schedulers, "requester").join(people, "owner", "left_anti")
    tokens = seen.lives.where("created_known").select("owner", "created_at", F.col("requester").alias("other"))
    before = F.col("created_at") < F.col("since")
    after = F.col("created_at") >= F.col("since") + F.lit(ONCE)
    judged = (
        once.join(tokens, "owner")
        .where(F.col("other") != F.col("requester"))
        .groupBy("owner", "requester", "since", "again")
        .agg(
            F.count(F.when(before, 1)).alias("others_tokens"),
            F.min("created_at").alias("others_since"),
            F.collect_set(F.when(after, F.col("other"))).alias("others"),
        )
    )
    known = (F.col("others_tokens") >= thresholds.renewer_tokens) & (
        F.col("others_since") + F.lit(thresholds.requester_history) < F.col("since")
    )
    days = distinct_over(F.to_date("since"), "requester")
    found = judged.where(known & (F.size("others") > 0)).withColumn("days", days)
    strange = found.where(F.col("days") < F.col("again")).drop("again", "days")
    rows = seen.work("made_once", made.join(strange, ["owner", "requester"]))
    return rows.join(_used_as_usual(rows, seen), "token_id", "left_anti")


def requesters(lives: DataFrame) -> DataFrame:
    """Tell for each owner and requester when the first and the last token was created (`since`, `until`).

    And whether the table has the creation of any of these tokens (`any_created`), and of all of them (`all_created`).
    """
    return lives.groupBy("owner", "requester").agg(
        F.min("created_at").alias("since"),
        F.max("created_at").alias("until"),
        F.max("created_known").alias("any_created"),
        F.min("created_known").alias("all_created"),
    )


def is_made_once() -> Column:
    """Whether the requester of a row of `requesters` creates tokens for the owner within one day only."""
    return F.col("until") < F.col("since") + F.lit(ONCE)


def _used_as_usual(rows: DataFrame, seen: Observed) -> DataFrame:
    """Give the tokens (`token_id`) that were used, and only as those of the owner or of the requester's others were."""
    use = ["token_id", "zone", "software"]
    used = rows.select("token_id", "owner", "requester", "since").join(seen.usage.select(use), "token_id")
    earlier = seen.usage.where(F.col("token_id").isNotNull()).select(
        *("zone", "software", "who", F.col("requester").alias("by"), F.col("first_seen").alias("used_since"))
    )
    of_owner = F.col("who") == F.col("owner")
    of_scheduler = (F.col("by") == F.col("requester")) & (F.col("who") != F.col("by"))
    a_day_before = F.col("used_since") + F.lit(ONCE) < F.col("since")
    known = used.join(earlier, ["zone", "software"]).where(a_day_before & (of_owner | of_scheduler))
    usual = known.select(*use, F.lit(True).alias("usual")).distinct()
    uses = used.select(use).distinct().join(usual, use, "left").groupBy("token_id")
    return (
        uses.agg(F.count("*").alias("uses"), F.count("usual").alias("usual")).where("uses = usual").select("token_id")
    )
