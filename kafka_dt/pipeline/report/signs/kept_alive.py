"""Tokens that are renewed again and again, of owners whose tokens are not renewed.

    renewers = with_kept_alive(renewers, lives, thresholds)     # `kept`

Such an owner gets a new token for each run, and lets it end. A thief keeps the one that it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.signs.foreign_renewal import RenewalThresholds

WITHOUT_USE: Final = "kept without use"


def with_kept_alive(renewers: DataFrame, lives: DataFrame, thresholds: RenewalThresholds) -> DataFrame:
    """Add to each renewer of a token whether, and how, it keeps the token alive; and the token's requester.

    Args:
        renewers: one row for each token and principal that renewed it, with `owner`, `zone`, `renewals`, `first_seen`,
            `last_seen`, and how often and since when it renewed after the last use (`idle_renewals`, `idle_since`).
        lives: the life of each token, as `lives.token_lives` makes it.
        thresholds: of the sign.

    Returns:
        The rows with `requester`, and `kept`: the name of the case, or null.
    """
    rows = _with_others_kept(renewers, thresholds).join(_earlier_tokens(lives), "token_id")
    case = (
        F.when(_kept_alive(thresholds), F.lit("kept alive"))
        .when(_kept_by_owner(thresholds), F.lit("kept alive by its owner"))
        .when(_kept_without_use(thresholds), F.lit(WITHOUT_USE))
    )
    return rows.withColumn("kept", case)


def _kept_alive(thresholds: RenewalThresholds) -> Column:
    """Whether another principal renews, again and again, a token of an owner whose other tokens are not renewed."""
    others = (F.col("principal") != F.col("owner")) & (F.col("principal") != F.col("requester"))
    a_service = F.col("kept_for") > thresholds.kept_owners
    return (F.col("renewals") >= thresholds.kept_renewals) & others & _never_renewed(thresholds) & ~a_service


def _kept_by_owner(thresholds: RenewalThresholds) -> Column:
    """Whether the owner renews a token again and again, of which hardly any was renewed before."""
    often = (F.col("renewals") >= thresholds.kept_renewals) & (
        F.col("first_seen") + F.expr("INTERVAL 1 DAY") <= F.col("last_seen")
    )
    many = F.col("earlier") >= thresholds.kept_by_owner
    return often & (F.col("principal") == F.col("owner")) & many & _never_renewed(thresholds)


def _kept_without_use(thresholds: RenewalThresholds) -> Column:
    """Whether a token is renewed again and again after its last use, of an owner whose tokens are not renewed."""
    others = F.col("principal") != F.col("owner")
    often = (F.col("idle_renewals") >= thresholds.kept_renewals) & (
        F.col("idle_since") + F.expr("INTERVAL 1 DAY") <= F.col("last_seen")
    )
    a_service = F.col("kept_idle_for") > thresholds.kept_owners
    return often & others & _never_renewed(thresholds) & ~a_service


def _never_renewed(thresholds: RenewalThresholds) -> Column:
    """Whether hardly any of the tokens that the owner had before was renewed."""
    return (
        (F.col("earlier") >= thresholds.kept_tokens)
        & (F.col("earlier_since") + F.lit(thresholds.kept_history) < F.col("first_seen"))
        & (F.col("earlier_renewed") <= F.col("earlier") * F.lit(thresholds.kept_share))
    )


def _earlier_tokens(lives: DataFrame) -> DataFrame:
    """Tell of each token how many its owner had before, since when, and how many of these were renewed."""
    before = Window.partitionBy("owner").orderBy("created_at").rowsBetween(Window.unboundedPreceding, -1)
    return lives.select(
        "token_id",
        "requester",
        F.count("*").over(before).alias("earlier"),
        F.min("created_at").over(before).alias("earlier_since"),
        F.count(F.when(F.col("renewals") > 0, 1)).over(before).alias("earlier_renewed"),
    )


def _with_others_kept(renewers: DataFrame, thresholds: RenewalThresholds) -> DataFrame:
    """Add for how many owners a principal renews a token as often, from the same zone."""
    often, idle = (
        F.when(F.col(name) >= thresholds.kept_renewals, F.col("owner")) for name in ("renewals", "idle_renewals")
    )
    kept = renewers.groupBy("principal", "zone").agg(
        F.count_distinct(often).alias("kept_for"), F.count_distinct(idle).alias("kept_idle_for")
    )
    return renewers.join(kept, ["principal", "zone"])
