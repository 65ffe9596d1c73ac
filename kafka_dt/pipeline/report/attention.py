"""Tokens that an operator should look at: about to end and in use, never used, past half of their longest life.

    listings(attention(lives, at, lines))["never_used"]

A token may be in several lists, and has a row in each.

Most tokens that end soon are no trouble: their jobs are over, or their programs already have new ones. So two habits
tell whether a client will miss a token. Its own: clients that log in every few minutes, and did not for an hour, are
gone. And its owner's: if earlier tokens ended by age and hardly any of them was tried after its end, no client will try
this one.

Source: KIP-48, "Token Expiry and Renewal"
"""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
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
_SILENT: Final = 3
"""Times the usual time between two logins of a token after which its clients are gone."""
_SHORTEST_SILENCE: Final = timedelta(hours=1)
"""... or after this time, if it is longer: schedulers start jobs by the hour."""
_ENDED: Final = 3
"""Earlier tokens of an owner that show whether its clients miss them after their end."""
_MISSED: Final = 0.2
"""The share of them that were tried after their end, below which they do not."""
_FOREVER: Final = 10**18
"""Later than any instant in microseconds: what is subtracted from it comes last."""


class TokenList(StrEnum):
    """The lists."""

    EXPIRING_IN_USE = "expiring_in_use"
    """They end soon although clients still log in with them, and are likely to try again; the first to end come
    first."""
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
    idle = F.unix_micros(instant) - F.unix_micros("last_login")
    usual = (F.unix_micros("last_login") - F.unix_micros("first_login")) / F.greatest(F.col("logins") - 1, F.lit(1))
    silence = F.greatest(usual * _SILENT, F.lit(_SHORTEST_SILENCE // timedelta(microseconds=1)))
    in_use = (F.col("last_login") > instant - F.lit(lines.used_within)) & (idle <= silence)
    is_missed = (F.col("ended") < _ENDED) | (F.col("missed") >= F.col("ended") * _MISSED)
    waited = F.col("created_at") <= instant - F.lit(lines.unused_for)
    unused = F.col("created_known") & (F.col("logins") == 0) & (F.col("created_at") <= instant)
    ended_after_all = F.lit(_FOREVER) - F.unix_micros(known_end())
    living_first = F.when(F.col("alive"), F.unix_micros("created_at")).otherwise(ended_after_all)
    whole = F.unix_micros("max_time") - F.unix_micros("created_at")
    lived = (F.unix_micros(instant) - F.unix_micros("created_at")) / whole
    rows = lives.join(_habits(lives, at), "owner", "left").withColumns(
        {
            "alive": alive_at(at),
            "renewable": F.coalesce(F.col("max_time") > F.col("ended_at"), F.lit(True)),
            # Of a token older than the table it is not known when it began.
            "lived": F.when(F.col("created_known") & (whole > 0), lived),
        }
    )
    entries = F.array(
        _entry(
            F.col("alive") & soon & in_use & F.coalesce(is_missed, F.lit(True)),
            TokenList.EXPIRING_IN_USE,
            F.unix_micros("ended_at"),
        ),
        _entry(unused & (waited | ~F.col("alive")), TokenList.NEVER_USED, living_first),
        _entry(F.col("alive") & (F.col("lived") >= _HALF), TokenList.PAST_HALF, -F.col("lived")),
    )
    listed = F.explode(F.filter(entries, lambda entry: entry.isNotNull())).alias("entry")
    columns = [name for name in rows.columns if name not in {"ended", "missed"}]
    return rows.select(*columns, listed).select("entry.list", "entry.urgency", *columns)


def _habits(lives: DataFrame, at: datetime) -> DataFrame:
    """Tell how many tokens of each owner ended by age after some use, and how many of them were tried later."""
    ended = (F.col("ended_at") <= F.lit(at)) & F.col("revoked_at").isNull() & (F.col("logins") > 0)
    return (
        lives.where(ended & F.col("owner").isNotNull())
        .groupBy("owner")
        .agg(F.count("*").alias("ended"), F.count(F.when(F.col("last_attempt") > F.col("ended_at"), 1)).alias("missed"))
    )


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
