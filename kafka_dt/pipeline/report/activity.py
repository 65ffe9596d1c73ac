"""How many events of what, over time: logins by mechanism, refusals by reason and everything else come from it.

    activity(events, timeline)      # number, instant, type, outcome, reason, mechanism, by_token, events

The result is small: steps of the timeline times types, outcomes, mechanisms and reasons. All of these are closed sets
but for the mechanism that a client asks for and does not get; that one is counted under one name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import RefusalReason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.timeline import Timeline

NOT_OFFERED: Final = "(not offered)"


def activity(events: DataFrame, timeline: Timeline) -> DataFrame:
    """Count the events of each step by type, outcome, mechanism and reason.

    Args:
        events: of the table, up to the instant of the report.
        timeline: the steps; an event belongs to the one in which it is.
    """
    not_offered = F.col("reason") == RefusalReason.UNSUPPORTED_MECHANISM.value
    counted = (
        events.select(
            timeline.step_of(F.col("time")).alias("number"),
            "type",
            "outcome",
            "reason",
            F.when(not_offered, F.lit(NOT_OFFERED)).otherwise(F.col("mechanism")).alias("mechanism"),
            F.coalesce(F.col("by_token"), F.lit(False)).alias("by_token"),
        )
        .groupBy("number", "type", "outcome", "reason", "mechanism", "by_token")
        .agg(F.count("*").alias("events"))
    )
    return counted.withColumn("instant", timeline.instant_of(F.col("number")))
