"""Tokens alive over time, by owner, requester or renewer.

    alive_over_time(lives, Role.OWNER, timeline)    # series, instant, tokens

A token counts at each instant of the timeline at which it lives; one that is made and ended between two of them counts
at none. Each token adds one where its life begins and takes one away where it ends, and the sums of that are added up:
the work is one pass over the tokens, not one for each instant.

A token with three renewers counts once for each of them. The names with the most tokens have a series of their own,
all others are one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.lives import known_end
from kafka_dt.pipeline.report.series import NOBODY, TOP, with_top

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.timeline import Timeline


class Role(StrEnum):
    """Whose tokens they are."""

    OWNER = "owner"
    REQUESTER = "requester"
    RENEWER = "renewer"


def alive_over_time(lives: DataFrame, role: Role, timeline: Timeline, top: int = TOP) -> DataFrame:
    """Count the living tokens of each name at each instant.

    Args:
        lives: as `lives.token_lives` makes them.
        role: of the name.
        timeline: the instants.
        top: how many names have a series of their own.

    Returns:
        `series`, `instant` (its number), `tokens`: a row for each pair of a series and an instant.
    """
    named = with_top(_by_role(lives, role), "name", top)
    starts = named.select("series", timeline.instant_from(F.col("created_at")).alias("instant"), F.lit(1).alias("by"))
    ends = named.select("series", timeline.instant_from(known_end()).alias("instant"), F.lit(-1).alias("by"))
    changes = (
        starts.unionByName(ends)
        .where(F.col("instant") <= timeline.steps)
        .groupBy("series", "instant")
        .agg(F.sum("by").alias("by"))
    )
    instants = changes.sparkSession.range(timeline.steps + 1).select(F.col("id").cast("int").alias("instant"))
    every = F.broadcast(changes.select("series").distinct()).crossJoin(instants)
    so_far = Window.partitionBy("series").orderBy("instant").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return every.join(changes, ["series", "instant"], "left").select(
        "series", "instant", F.sum(F.coalesce("by", F.lit(0))).over(so_far).alias("tokens")
    )


def _by_role(lives: DataFrame, role: Role) -> DataFrame:
    renewer = F.explode(F.when(F.size("renewers") > 0, F.array_distinct("renewers")).otherwise(F.array(F.lit(NOBODY))))
    name = renewer if role is Role.RENEWER else F.coalesce(role.value, F.lit(NOBODY))
    return lives.select(name.alias("name"), "created_at", "ended_at", "last_login")
