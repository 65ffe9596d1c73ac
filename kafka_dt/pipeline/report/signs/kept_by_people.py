"""People who keep a token of their own alive, where hardly any of their colleagues does so.

    tokens = kept_by_people(renewers, seen, thresholds)

People make a token in the morning and forget it. So if one is renewed on two days, its owner may not be who does it:
a thief has the owner's password and keeps a token of its own.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType
from kafka_dt.pipeline.report.expressions import ok
from kafka_dt.pipeline.report.signs.machines import with_at_home

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.signs.foreign_renewal import RenewalThresholds
    from kafka_dt.pipeline.report.signs.sign import Observed

_APART: Final = timedelta(hours=20)
"""The renewals of two nights, or of two mornings, are not less apart."""


def kept_by_people(renewers: DataFrame, seen: Observed, thresholds: RenewalThresholds) -> DataFrame:
    """Find tokens that an owner that works by day has made away from home and keeps alive, as few others do.

    Args:
        renewers: one row for each token and principal that renewed it, with `owner`, `renewals`, `first_seen`,
            `last_seen` and `at_home`. It is read several times, so it should have been written.
        seen: what the report has computed.
        thresholds: of the sign.

    Returns:
        Their `token_id` and `principal`, with `kept_by_person`, which is true.
    """
    people = seen.workdays.select(F.col("who").alias("owner"))
    made = seen.lives.where(F.col("requester") == F.col("owner")).join(people, "owner", "left_semi")
    makes_since = F.min("created_at").over(Window.partitionBy("owner"))
    made = made.select("token_id", "owner", makes_since.alias("makes_since")).withColumn("principal", F.col("owner"))
    is_kept = (
        (F.col("renewals") >= thresholds.kept_by_person)
        & (F.col("first_seen") + F.lit(_APART) <= F.col("last_seen"))
        & (F.to_date("first_seen") < F.to_date("last_seen"))
        & (F.col("makes_since") + F.lit(thresholds.kept_history) < F.col("first_seen"))
    )
    kept = seen.work("kept", renewers.join(made, ["token_id", "owner", "principal"]).where(is_kept))
    keepers = kept.agg(F.count_distinct("owner").alias("keepers"))
    company = made.agg(F.count_distinct("owner").alias("makers")).crossJoin(keepers)
    few = (F.col("makers") >= thresholds.makers) & (F.col("keepers") <= F.col("makers") * thresholds.keepers_share)
    strange = kept.where(~F.col("at_home")).join(_made_away(seen, thresholds), ["token_id", "principal"], "left_semi")
    found = strange.crossJoin(F.broadcast(company.where(few)))
    return found.select("token_id", "principal", F.lit(True).alias("kept_by_person"))


def _made_away(seen: Observed, thresholds: RenewalThresholds) -> DataFrame:
    """Give the tokens (`token_id`, `principal`) that principals have made where they had not logged in a day before."""
    made = seen.deeds.where(ok(EventType.TOKEN_CREATED)).select(
        *("principal", "address", "software", "token_id"), F.col("first_seen").alias("made")
    )
    placed = with_at_home(made, seen, "made", thresholds.renewed_at_home)
    return placed.where(~F.col("at_home")).select("token_id", "principal")
