"""Tokens alive over time, by owner, requester and renewer.

    alive_over_time(lives, timeline)    # role, series, instant, tokens

A token counts at each instant of the timeline at which it lives; one that is made and ended between two of them counts
at none. Each token adds one where its life begins and takes one away where it ends, and the sums of that are added up:
the work is one pass over the tokens, not one for each instant.

A token with three renewers counts once for each of them. The names with the most living tokens, over all instants, have
a series of their own, all others are one: a cluster may have a million owners, the result has a few rows an instant.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.contents import OTHER, TOP
from kafka_dt.pipeline.report.lives import known_end

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.timeline import Timeline

NOBODY: Final = "(nobody)"
"""Where there is none, as of a token without renewers."""


class Role(StrEnum):
    """Whose tokens they are."""

    OWNER = "owner"
    REQUESTER = "requester"
    RENEWER = "renewer"


def alive_over_time(lives: DataFrame, timeline: Timeline, top: int = TOP) -> DataFrame:
    """Count the living tokens of each name.

    Args:
        lives: as `lives.token_lives` makes them.
        timeline: the instants.
        top: how many names of each role have a series of their own.

    Returns:
        `role`, `series`, `number` (of the instant), `instant`, `tokens`: a row where a number changes; it holds until
        the next one.
    """
    named = lives.select(
        F.explode(_names()).alias("named"),
        timeline.instant_from(F.col("created_at")).alias("begin"),
        timeline.instant_from(known_end()).alias("end"),
    ).select("named.role", "named.name", "begin", "end")
    counted_at = F.least("end", F.lit(timeline.steps + 1)) - F.col("begin")
    by_count = Window.partitionBy("role").orderBy(F.desc("all"), "name")
    most = (
        named.groupBy("role", "name")
        .agg(F.sum(F.greatest(counted_at, F.lit(0))).alias("all"))
        .withColumn("rank", F.row_number().over(by_count))
        .where(F.col("rank") <= top)
        .select("role", "name", F.col("name").alias("series"))
    )
    changes = (
        named.join(F.broadcast(most), ["role", "name"], "left")
        .select("role", F.coalesce("series", F.lit(OTHER)).alias("series"), F.explode(_changes()).alias("change"))
        .where(F.col("change.number") <= timeline.steps)
        .groupBy("role", "series", "change.number")
        .agg(F.sum("change.by").alias("by"))
    )
    so_far = Window.partitionBy("role", "series").orderBy("number")
    return changes.select(
        "role",
        "series",
        "number",
        timeline.instant_of(F.col("number")).alias("instant"),
        F.sum("by").over(so_far).alias("tokens"),
    )


def _names() -> Column:
    """Give all names of a token with their roles."""
    no_renewer = F.array(F.lit(NOBODY))
    renewers = F.when(F.size("renewers") > 0, F.array_distinct("renewers")).otherwise(no_renewer)
    single = [_named(role, F.coalesce(role.value, F.lit(NOBODY))) for role in (Role.OWNER, Role.REQUESTER)]
    return F.concat(F.array(*single), F.transform(renewers, lambda name: _named(Role.RENEWER, name)))


def _named(role: Role, name: Column) -> Column:
    return F.struct(F.lit(role.value).alias("role"), name.alias("name"))


def _changes() -> Column:
    """Give what a token changes: one more where it begins, one less where it ends."""
    ends = (("begin", 1), ("end", -1))
    return F.array(*(F.struct(F.col(name).alias("number"), F.lit(by).alias("by")) for name, by in ends))
