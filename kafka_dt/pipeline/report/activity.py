"""How much of what: logins by mechanism, refusals by reason, both over time.

    counted = activity(events, timeline)            # the one pass over the events
    logins_by_mechanism(counted)
    refusals_by_reason(counted)

The result is small: steps of the timeline times types, outcomes, mechanisms and reasons. All of these are closed sets
but for the mechanism that a client asks for and does not get; that one is counted under one name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, Outcome, RefusalReason
from kafka_dt.pipeline.report.conditions import of_type, went_well

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.timeline import Timeline

NOT_OFFERED: Final = "(not offered)"
NOT_SAID: Final = "(not said)"
BY_TOKEN: Final = " by token"  # noqa: S105 - the end of a name


def activity(events: DataFrame, timeline: Timeline) -> DataFrame:
    """Count the events of each step by type, outcome, mechanism and reason."""
    not_offered = F.col("reason") == RefusalReason.UNSUPPORTED_MECHANISM.value
    return (
        events.select(
            timeline.step_of(F.col("time")).alias("step"),
            "type",
            "outcome",
            "reason",
            F.when(not_offered, F.lit(NOT_OFFERED)).otherwise(F.col("mechanism")).alias("mechanism"),
            F.coalesce(F.col("by_token"), F.lit(False)).alias("by_token"),
        )
        .groupBy("step", "type", "outcome", "reason", "mechanism", "by_token")
        .agg(F.count("*").alias("events"))
    )


def logins_by_mechanism(counted: DataFrame) -> DataFrame:
    """Count the successful logins of each step: `series` (the mechanism, and whether by a token), `step`, `events`."""
    mechanism = F.coalesce("mechanism", F.lit(NOT_SAID))
    name = F.when(F.col("by_token"), F.concat(mechanism, F.lit(BY_TOKEN))).otherwise(mechanism)
    return _summed(counted.where(of_type(EventType.LOGIN) & went_well()), name)


def refusals_by_reason(counted: DataFrame) -> DataFrame:
    """Count what was refused in each step: `series` (the reason), `step`, `events`."""
    refused = counted.where(F.col("outcome") == Outcome.REFUSED.value)
    return _summed(refused, F.coalesce("reason", F.lit(NOT_SAID)))


def by_type(counted: DataFrame) -> DataFrame:
    """Count all events by type and outcome: `type`, `outcome`, `events`."""
    return counted.groupBy("type", "outcome").agg(F.sum("events").alias("events"))


def _summed(counted: DataFrame, name: Column) -> DataFrame:
    return counted.groupBy(name.alias("series"), "step").agg(F.sum("events").alias("events"))
