"""Tokens that somebody should look at: about to end and in use, never used, past half of their longest life.

Each function gives the rows of `lives` that it is about, with what it adds; who shows them sorts and cuts them.

Source: KIP-48, "Token Expiry and Renewal"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.lives import alive_at, known_end

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from pyspark.sql import DataFrame


def expiring_in_use(lives: DataFrame, at: datetime, within: timedelta, used_within: timedelta) -> DataFrame:
    """Find living tokens that end soon though somebody still logs in with them.

    Args:
        lives: as `lives.token_lives` makes them.
        at: the instant of the report.
        within: what "soon" is.
        used_within: how long ago the last login may be.

    Returns:
        their rows with `renewable`: whether a renewal could help; else a new token has to be made.
    """
    instant = F.lit(at)
    soon = known_end() <= instant + F.lit(within)
    in_use = F.col("last_login") > instant - F.lit(used_within)
    renewable = F.coalesce(F.col("max_time") > F.col("ended_at"), F.lit(True))
    told = F.col("ended_at").isNotNull()
    return lives.where(alive_at(at) & told & soon & in_use).withColumn("renewable", renewable)


def never_used(lives: DataFrame, at: datetime, older_than: timedelta) -> DataFrame:
    """Find living tokens with which nobody ever logged in; of tokens older than the table nobody knows.

    Args:
        lives: as `lives.token_lives` makes them.
        at: the instant of the report.
        older_than: how long a token may wait for its first login.
    """
    waited = F.col("created_at") <= F.lit(at) - F.lit(older_than)
    return lives.where(alive_at(at) & F.col("created_known") & (F.col("logins") == 0) & waited)


def past_half(lives: DataFrame, at: datetime) -> DataFrame:
    """Find living tokens that are closer to the end that no renewal moves than to their beginning.

    Returns:
        their rows with `lived`: the share of the longest life that is over, 0.5 to 1.
    """
    instant = F.lit(at)
    whole = F.unix_micros("max_time") - F.unix_micros("created_at")
    lived = (F.unix_micros(instant) - F.unix_micros("created_at")) / whole
    # Of a token older than the table it is not known when it began.
    rows = lives.where(alive_at(at) & F.col("created_known")).withColumn("lived", lived)
    return rows.where(F.col("lived") >= F.lit(0.5))
