"""Tokens that an operator should look at: about to end and in use, never used, past half of their longest life.

    listings(attention(lives, at, lines))["never_used"]

A token may be in several lists, and has a row in each.

Source: KIP-48, "Token Expiry and Renewal"
"""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.report.contents import ROWS, TOP, Listing, TokenRow
from kafka_dt.pipeline.report.expressions import rows_of
from kafka_dt.pipeline.report.lives import alive_at, known_end

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.contents import Lines

_TOKEN_COLUMNS: Final = tuple(each.name for each in fields(TokenRow))

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
    """Find the tokens of all lists at an instant.

    Returns their rows with `list`, `urgency` (in a list the smallest comes first), `alive`, `renewable` (whether a
    renewal could help; else a new token has to be made) and `lived` (the share of the longest life that is over).
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


def listings(attention: DataFrame) -> Mapping[str, Listing]:
    """Collect the rows of `attention`: of each list the first ones, how many there are, and whose they are."""
    in_list = Window.partitionBy("list")
    counts = attention.groupBy("list", "owner").agg(F.count("*").alias("tokens"))
    owners = rows_of(
        counts.withColumns(
            {
                "total": F.sum("tokens").over(in_list),
                "rank": F.row_number().over(in_list.orderBy(F.desc("tokens"), "owner")),
            }
        ).where(F.col("rank") <= TOP)
    )
    first = rows_of(
        attention.withColumn("rank", F.row_number().over(in_list.orderBy("urgency", "token_id")))
        .where(F.col("rank") <= ROWS)
        .select("list", "rank", *_TOKEN_COLUMNS)
    )
    return {name.value: _listing(name.value, first, owners) for name in TokenList}


def _entry(condition: Column, name: TokenList, urgency: Column) -> Column:
    return F.when(condition, F.struct(F.lit(name.value).alias("list"), urgency.cast("double").alias("urgency")))


def _listing(name: str, first: Sequence[dict[str, Any]], owners: Sequence[dict[str, Any]]) -> Listing:
    rows = sorted((row for row in first if row["list"] == name), key=lambda row: row["rank"])
    counts = sorted((row for row in owners if row["list"] == name), key=lambda row: row["rank"])
    tokens = [{column: row[column] for column in _TOKEN_COLUMNS} for row in rows]
    return Listing(
        counts[0]["total"] if counts else 0,
        tuple(TokenRow(**{**token, "renewers": tuple(token["renewers"])}) for token in tokens),
        tuple((row["owner"] or "", row["tokens"]) for row in counts),
    )
