"""Tokens that a service renews from a network from which it renews hardly any.

    tokens = renewed_elsewhere(renewals, thresholds)

A service that renews tokens for many runs in one place, or in a few. A thief with its keytab renews a few tokens from
another one, and the service goes on where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.expressions import UNKNOWN, distinct_over, first_and_last

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.foreign_renewal import RenewalThresholds


def renewed_elsewhere(renewals: DataFrame, thresholds: RenewalThresholds) -> DataFrame:
    """Find such tokens.

    Args:
        renewals: `token_id`, `owner`, `principal`, `time`, `address`, `zone` and `wide` of each renewal, and whether it
            was refused (`mismatch`).
        thresholds: of the sign.

    Returns:
        Their `token_id` and `principal`, and `elsewhere`: the `address`, `first_seen`, `last_seen` and number
        (`renewals`) of the renewals there.
    """
    of_others = ~F.coalesce("mismatch", F.lit(False)) & (F.col("principal") != F.col("owner"))
    known = renewals.where(of_others & (F.col("address") != UNKNOWN))
    of_principal, in_network = Window.partitionBy("principal"), Window.partitionBy("principal", "wide")
    counted = known.select(
        *("token_id", "principal", "address", "time"),
        distinct_over("token_id", "principal").alias("tokens"),
        F.greatest(*(distinct_over("token_id", "principal", each) for each in ("wide", "zone"))).alias("there"),
        (F.max("time").over(of_principal) > F.max("time").over(in_network)).alias("goes_on"),
    )
    few = F.greatest(F.lit(thresholds.elsewhere_few), F.col("tokens") * F.lit(thresholds.elsewhere_share))
    is_strange = (F.col("tokens") >= thresholds.elsewhere_tokens) & (F.col("there") <= few) & F.col("goes_on")
    tokens = (
        counted.where(is_strange)
        .groupBy("token_id", "principal")
        .agg(*first_and_last("time", "time"), F.count("*").alias("renewals"), F.min("address").alias("address"))
    )
    there = F.struct("address", "first_seen", "last_seen", "renewals").alias("elsewhere")
    return tokens.select("token_id", "principal", there)
