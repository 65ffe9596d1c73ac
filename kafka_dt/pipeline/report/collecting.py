"""From small DataFrames to the values of `contents.py`.

Everything that is collected here was aggregated or limited before. Instants travel as milliseconds: a timestamp would
arrive in the time zone of this machine.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import TimestampType

from kafka_dt.audit import EventType, Outcome
from kafka_dt.pipeline.report.attention import TokenList
from kafka_dt.pipeline.report.contents import (
    OTHER,
    TOP,
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
from kafka_dt.pipeline.report.timeline import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from kafka_dt.pipeline.report.blast import Start
    from kafka_dt.pipeline.report.timeline import Timeline

ROWS: Final = 200
"""How many rows of a list are brought to the driver."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_SAID: Final = "(not said)"
_BY_TOKEN: Final = " by token"  # noqa: S105 - the end of a name
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
    "renewable",
    "alive",
    "lived",
)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """Collect a small DataFrame; instants become datetimes in UTC."""
    instants = {each.name for each in frame.schema if isinstance(each.dataType, TimestampType)}
    columns = [F.unix_millis(name).alias(name) if name in instants else F.col(name) for name in frame.columns]
    return [
        {name: _instant(value) if name in instants else value for name, value in row.asDict(recursive=True).items()}
        for row in frame.select(*columns).collect()
    ]


def alive_series(counted: DataFrame, timeline: Timeline) -> Mapping[str, Series]:
    """Collect `timeline.alive_over_time`: the series of each role."""
    length = timeline.steps + 1
    changed: dict[str, dict[str, dict[int, int]]] = {role.value: {} for role in Role}
    for row in rows_of(counted.select("role", "series", "number", "tokens")):
        changed[row["role"]].setdefault(row["series"], {})[row["number"]] = row["tokens"]
    return {
        role: _series({name: _filled(numbers, length) for name, numbers in by_name.items()}, timeline, length)
        for role, by_name in changed.items()
    }


class Counted:
    """What `timeline.activity` has counted.

    Args:
        counted: its rows.
        timeline: theirs.
    """

    def __init__(self, counted: DataFrame, timeline: Timeline) -> None:
        self._rows = rows_of(counted.drop("instant"))
        self._timeline = timeline

    def by_type(self) -> tuple[Activity, ...]:
        """Count all events by type and outcome."""
        totals: Counter[tuple[str, str]] = Counter()
        for row in self._rows:
            totals[row["type"], row["outcome"]] += row["events"]
        return tuple(Activity(type_, outcome, events) for (type_, outcome), events in sorted(totals.items()))

    def logins_by_mechanism(self) -> Series:
        """Count the successful logins of each step, with a token and without."""

        def name(row: Mapping[str, Any]) -> str:
            return (row["mechanism"] or _NOT_SAID) + (_BY_TOKEN if row["by_token"] else "")

        logins = [row for row in self._rows if (row["type"], row["outcome"]) == (EventType.LOGIN, Outcome.OK)]
        return self._over_time(logins, name)

    def refusals_by_reason(self) -> Series:
        """Count what was refused in each step, logins and requests."""
        refused = [row for row in self._rows if row["outcome"] == Outcome.REFUSED]
        return self._over_time(refused, lambda row: row["reason"] or _NOT_SAID)

    def silences(self) -> tuple[tuple[datetime, datetime], ...]:
        """Find the times between events, in whole steps, that have none."""
        return self._timeline.silences({row["number"] for row in self._rows})

    def _over_time(self, rows: Iterable[Mapping[str, Any]], name: Callable[[Mapping[str, Any]], str]) -> Series:
        length = self._timeline.steps
        values: dict[str, list[int]] = {}
        for row in rows:
            # An event in the very instant of the timeline's end belongs to its last step.
            values.setdefault(name(row), [0] * length)[min(row["number"], length - 1)] += row["events"]
        rest = sorted(values, key=lambda each: -sum(values[each]))[TOP:]
        if rest:
            values[OTHER] = [sum(column) for column in zip(*(values.pop(each) for each in rest), strict=True)]
        return _series(values, self._timeline, length)


def listings(attention: DataFrame) -> Mapping[str, Listing]:
    """Collect `attention.attention`: of each list the first rows, how many there are, and whose they are."""
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


def blast(radius: DataFrame, logins: DataFrame, start: Start, steps: int) -> Blast:
    """Collect `blast.blast_radius` and `blast.reachable_logins`."""
    ended = ~F.coalesce("alive", F.lit(True))
    counts = radius.groupBy("step", "type", "exposed").agg(
        F.count("*").alias("count"), F.count(F.when(ended, 1)).alias("ended")
    )
    nearest = radius.orderBy(F.desc("exposed"), ended, "step", "type", "node").limit(ROWS)
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


def _listing(name: str, first: Sequence[dict[str, Any]], owners: Sequence[dict[str, Any]]) -> Listing:
    rows = sorted((row for row in first if row["list"] == name), key=lambda row: row["rank"])
    counts = sorted((row for row in owners if row["list"] == name), key=lambda row: row["rank"])
    tokens = [{column: row[column] for column in _TOKEN_COLUMNS} for row in rows]
    return Listing(
        counts[0]["total"] if counts else 0,
        tuple(TokenRow(**{**token, "renewers": tuple(token["renewers"])}) for token in tokens),
        tuple((row["owner"] or "", row["tokens"]) for row in counts),
    )


def _filled(numbers: Mapping[int, int], length: int) -> list[int]:
    """Repeat each number until the next one."""
    filled, last = [], 0
    for place in range(length):
        last = numbers.get(place, last)
        filled.append(last)
    return filled


def _series(values: Mapping[str, Sequence[int]], timeline: Timeline, length: int) -> Series:
    by_size = sorted(values, key=lambda name: (name == OTHER, -sum(values[name]), name))
    return Series(tuple(timeline.instants[:length]), {name: tuple(values[name]) for name in by_size})


def _instant(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else _EPOCH + timedelta(milliseconds=milliseconds)
