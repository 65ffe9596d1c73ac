"""Tokens that an operator should look at: about to end and in use, never used, past half of their longest life.

    attention(lives, at, lines)     # the columns of lives, and what the lists add

A token may be in several lists, and has a row in each.

Source: KIP-48, "Token Expiry and Renewal"
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.lives import alive_at, known_end

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.contents import Lines

_HALF: Final = 0.5
_FOREVER: Final = 10**18
"""Later than any instant in microseconds: what is subtracted from it comes last."""


class TokenList(StrEnum):
    """The lists."""

    EXPIRING_IN_USE = "expiring_in_use"
    """They end soon although clients still log in with them; the first to end come first."""
    NEVER_USED = "never_used"
    """No client ever logged in with them: the oldest that live, then those that have ended, the last one first. Tokens
    older than the table are left out, because their first logins are not in it."""
    PAST_HALF = "past_half"
    """Closer to the end that no renewal moves than to their beginning; the closest first."""


def attention(lives: DataFrame, at: datetime, lines: Lines) -> DataFrame:
    """Find the tokens of all lists.

    Args:
        lives: as `lives.token_lives` makes them.
        at: the instant of the report.
        lines: what "soon" and "long" mean.

    Returns:
        their rows with `list`, `urgency` (in a list the smallest comes first), `alive`, `renewable` (whether a renewal
        could help; else a new token has to be made) and `lived` (the share of the longest life that is over).
    """
    instant = F.lit(at)
    soon = F.col("ended_at") <= instant + F.lit(lines.expiring_within)
    in_use = F.col("last_login") > instant - F.lit(lines.used_within)
    waited = F.col("created_at") <= instant - F.lit(lines.unused_for)
    unused = F.col("created_known") & (F.col("logins") == 0) & (F.col("created_at") <= instant)
    ended_after_all = F.lit(_FOREVER) - F.unix_micros(known_end())
    living_first = F.when(F.col("alive"), F.unix_micros("created_at")).otherwise(ended_after_all)
    whole = F.unix_micros("max_time") - F.unix_micros("created_at")
    lived = (F.unix_micros(instant) - F.unix_micros("created_at")) / whole
    rows = lives.withColumns(
        {
            "alive": alive_at(at),
            "renewable": F.coalesce(F.col("max_time") > F.col("ended_at"), F.lit(True)),
            # Of a token older than the table it is not known when it began.
            "lived": F.when(F.col("created_known") & (whole > 0), lived),
        }
    )
    entries = F.array(
        _entry(F.col("alive") & soon & in_use, TokenList.EXPIRING_IN_USE, F.unix_micros("ended_at")),
        _entry(unused & (waited | ~F.col("alive")), TokenList.NEVER_USED, living_first),
        _entry(F.col("alive") & (F.col("lived") >= _HALF), TokenList.PAST_HALF, -F.col("lived")),
    )
    listed = F.explode(F.filter(entries, lambda entry: entry.isNotNull())).alias("entry")
    return rows.select(*rows.columns, listed).select("entry.list", "entry.urgency", *rows.columns)


def _entry(condition: Column, name: TokenList, urgency: Column) -> Column:
    return F.when(condition, F.struct(F.lit(name.value).alias("list"), urgency.cast("double").alias("urgency")))
