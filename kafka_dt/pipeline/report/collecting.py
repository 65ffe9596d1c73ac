"""From small DataFrames to the values of `contents.py`.

Everything that is collected here was aggregated or limited before. Instants travel as milliseconds: a timestamp would
arrive in the time zone of this machine.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import TimestampType

from kafka_dt.pipeline.report.contents import (
    Activity,
    Blast,
    Hop,
    Listing,
    ReachableLogin,
    Reached,
    ReachedCount,
    Series,
    TokenRow,
)
from kafka_dt.pipeline.report.series import OTHER, TOP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from kafka_dt.pipeline.report.blast import Start
    from kafka_dt.pipeline.report.timeline import Timeline

ROWS: Final = 200
"""How many rows of a list are brought to the driver."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TOKEN_COLUMNS: Final = (
    "token_id",
    "owner",
    "requester",
    "renewers",
    "created_at",
    "ended_at",
    "max_time",
    "last_login",
    "logins",
    "renewals",
)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Collect a small DataFrame; instants become datetimes in UTC."""
    instants = {each.name for each in frame.schema if isinstance(each.dataType, TimestampType)}
    columns = [F.unix_millis(name).alias(name) if name in instants else F.col(name) for name in frame.columns]
    return [
        {name: _instant(value) if name in instants else value for name, value in row.asDict(recursive=True).items()}
        for row in frame.select(*columns).collect()
    ]


def alive_series(counted: DataFrame, timeline: Timeline) -> Series:
    """Collect `alive.alive_over_time`."""
    return _series(rows_of(counted), "instant", "tokens", timeline, timeline.steps + 1)


def activity_series(counted: DataFrame, timeline: Timeline) -> Series:
    """Collect `activity.logins_by_mechanism` or `activity.refusals_by_reason`; an instant is the start of its step."""
    totals = counted.groupBy("series").agg(F.sum("events").alias("all"))
    top = totals.orderBy(F.desc("all"), "series").limit(TOP).select("series", F.lit(True).alias("top"))
    named = counted.join(F.broadcast(top), "series", "left").select(
        F.when(F.col("top"), F.col("series")).otherwise(F.lit(OTHER)).alias("series"), "step", "events"
    )
    summed = named.groupBy("series", "step").agg(F.sum("events").alias("events"))
    return _series(rows_of(summed), "step", "events", timeline, timeline.steps)


def activities(counted: DataFrame) -> tuple[Activity, ...]:
    """Collect `activity.by_type`."""
    found = [Activity(row["type"], row["outcome"], row["events"]) for row in rows_of(counted)]
    return tuple(sorted(found, key=lambda each: (each.type, each.outcome)))


def listing(tokens: DataFrame, *order: Column) -> Listing:
    """Collect the first rows of a list of tokens, how many there are, and whose they are."""
    more = [name for name in ("renewable", "lived") if name in tokens.columns]
    first = rows_of(tokens.select(*_TOKEN_COLUMNS, *more).orderBy(*order, "token_id").limit(ROWS))
    counted = tokens.groupBy("owner").agg(F.count("*").alias("tokens"))
    owners = rows_of(counted.orderBy(F.desc("tokens"), "owner").limit(TOP))
    total = tokens.count()
    return Listing(
        total,
        tuple(TokenRow(**{**row, "renewers": tuple(row["renewers"])}) for row in first),
        tuple((row["owner"] or "", row["tokens"]) for row in owners),
    )


def blast(radius: DataFrame, logins: DataFrame, start: Start, steps: int) -> Blast:
    """Collect `blast.blast_radius` and `blast.reachable_logins`."""
    counts = radius.groupBy("step", "type", "exposed").agg(F.count("*").alias("count"))
    nearest = radius.orderBy(F.desc("exposed"), "step", "type", "node").limit(ROWS)
    latest = logins.orderBy(F.desc("last_seen"), "address", "token_id").limit(ROWS)
    total = logins.agg(F.coalesce(F.sum("logins"), F.lit(0)).alias("total"))
    return Blast(
        type=start.type.value,
        start=start.node,
        steps=steps,
        counts=tuple(
            ReachedCount(**row) for row in sorted(rows_of(counts), key=lambda row: (row["step"], row["type"]))
        ),
        reached=tuple(_reached(row) for row in rows_of(nearest)),
        logins=tuple(ReachableLogin(**row) for row in rows_of(latest)),
        login_total=rows_of(total)[0]["total"],
    )


def _reached(row: dict[str, Any]) -> Reached:
    return Reached(**{**row, "path": tuple(Hop(**hop) for hop in row["path"])})


def _series(rows: Sequence[dict[str, Any]], at: str, number: str, timeline: Timeline, length: int) -> Series:
    values: dict[str, list[int]] = {}
    for row in rows:
        # An event in the very instant of the timeline's end belongs to its last step.
        values.setdefault(row["series"], [0] * length)[min(row[at], length - 1)] += row[number]
    by_size = sorted(values, key=lambda name: (name == OTHER, -sum(values[name]), name))
    return Series(tuple(timeline.instants[:length]), {name: tuple(values[name]) for name in by_size})


def _instant(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else _EPOCH + timedelta(milliseconds=milliseconds)
