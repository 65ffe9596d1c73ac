"""What happened over time, in equal steps: events by type, and living tokens by owner, requester and renewer.

    Counted(activity(events, timeline), timeline).logins_by_mechanism()
    alive_series(alive_over_time(lives, timeline), timeline)

There are at most `MOST_STEPS` steps, whatever the table covers. They begin at round instants (UTC), so that two reports
of one table agree. The mechanism that a client asks for and does not get is counted under one name, because clients
choose it.

A token counts at each instant of the timeline at which it lives. It adds one where its life begins and takes one away
where it ends, and these are summed up: one pass over the tokens, not one for each instant. A token with three renewers
counts once for each of them. The names with the most living tokens have a series of their own, all others are one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.audit import EventType, Outcome, RefusalReason
from kafka_dt.pipeline.report.contents import OTHER, TOP, Activity, Series
from kafka_dt.pipeline.report.expressions import EPOCH, rows_of
from kafka_dt.pipeline.report.lives import known_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

MOST_STEPS: Final = 200
_HOURS: Final = (1, 2, 3, 6, 12, 24, 48, 7 * 24, 14 * 24, 28 * 24)
_MICROSECOND: Final = timedelta(microseconds=1)
_NOT_SAID: Final = "(not said)"
_BY_TOKEN: Final = " by token"  # noqa: S105 - the end of a name
NOT_OFFERED: Final = "(not offered)"
NOBODY: Final = "(none)"
"""The name where a token has none, as a token without renewers."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Instants at equal distances."""

    start: datetime
    """The first one."""
    step: timedelta
    """Their distance."""
    steps: int
    """How many distances there are; there is an instant more."""

    @classmethod
    def over(cls, first: datetime, last: datetime) -> Timeline:
        """Cut the time between two instants into steps of a round length."""
        span = max(last - first, timedelta(0))
        step = next(
            (step for hours in _HOURS if (step := timedelta(hours=hours)) * (MOST_STEPS - 1) >= span),
            timedelta(days=28 * -(-span // (timedelta(days=28) * (MOST_STEPS - 1)))),
        )
        start = first - (first - EPOCH) % step
        return cls(start, step, max(-(-(last - start) // step), 1))

    @property
    def instants(self) -> list[datetime]:
        """All instants, the first and the last included."""
        return [self.start + self.step * number for number in range(self.steps + 1)]

    def silences(self, heard: Iterable[int]) -> tuple[tuple[datetime, datetime], ...]:
        """Give the times between steps, from one instant to another, given the numbers of the steps with events."""
        numbers, instants = sorted(heard), self.instants
        return tuple(
            (instants[last + 1], instants[nearest]) for last, nearest in pairwise(numbers) if nearest > last + 1
        )

    def step_of(self, instant: Column) -> Column:
        """Give the number of the step in which an instant is; 0 is the first one."""
        return F.floor(self._distance(instant)).cast("int")

    def instant_from(self, instant: Column) -> Column:
        """Give the number of the first instant that is not before another one; 0 for what was before all."""
        return F.greatest(F.ceil(self._distance(instant)).cast("int"), F.lit(0))

    def instant_of(self, number: Column) -> Column:
        """Give the instant of a number."""
        begun, step = (self.start - EPOCH) // _MICROSECOND, self.step // _MICROSECOND
        return F.timestamp_micros(number.cast("long") * F.lit(step) + F.lit(begun))

    def _distance(self, instant: Column) -> Column:
        begun = (self.start - EPOCH) // _MICROSECOND
        return (F.unix_micros(instant) - F.lit(begun)) / F.lit(self.step // _MICROSECOND)


class Role(StrEnum):
    """What a principal is to a token."""

    OWNER = "owner"
    REQUESTER = "requester"
    RENEWER = "renewer"


def activity(events: DataFrame, timeline: Timeline) -> DataFrame:
    """Count the events of each step by type, outcome, mechanism and reason."""
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


class Counted:
    """The rows of `activity` on the driver."""

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


def alive_over_time(lives: DataFrame, timeline: Timeline, top: int = TOP) -> DataFrame:
    """Count the living tokens of each name; `top` names of each role have a series of their own.

    Returns `role`, `series`, `number` (of the instant), `instant`, `tokens`: a row where a number changes; it holds
    until the next one.
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


def alive_series(counted: DataFrame, timeline: Timeline) -> Mapping[str, Series]:
    """Collect the rows of `alive_over_time`: the series of each role."""
    length = timeline.steps + 1
    changed: dict[str, dict[str, dict[int, int]]] = {role.value: {} for role in Role}
    for row in rows_of(counted.select("role", "series", "number", "tokens")):
        changed[row["role"]].setdefault(row["series"], {})[row["number"]] = row["tokens"]
    return {
        role: _series({name: _filled(numbers, length) for name, numbers in by_name.items()}, timeline, length)
        for role, by_name in changed.items()
    }


def _names() -> Column:
    no_renewer = F.array(F.lit(NOBODY))
    renewers = F.when(F.size("renewers") > 0, F.array_distinct("renewers")).otherwise(no_renewer)
    single = [_named(role, F.col(role.value)) for role in (Role.OWNER, Role.REQUESTER)]
    return F.concat(F.array(*single), F.transform(renewers, lambda name: _named(Role.RENEWER, name)))


def _named(role: Role, name: Column) -> Column:
    return F.struct(F.lit(role.value).alias("role"), F.coalesce(name, F.lit(NOBODY)).alias("name"))


def _changes() -> Column:
    ends = (("begin", 1), ("end", -1))
    return F.array(*(F.struct(F.col(name).alias("number"), F.lit(by).alias("by")) for name, by in ends))


def _filled(numbers: Mapping[int, int], length: int) -> list[int]:
    filled, last = [], 0
    for place in range(length):
        last = numbers.get(place, last)
        filled.append(last)
    return filled


def _series(values: Mapping[str, Sequence[int]], timeline: Timeline, length: int) -> Series:
    by_size = sorted(values, key=lambda name: (name == OTHER, -sum(values[name]), name))
    return Series(tuple(timeline.instants[:length]), {name: tuple(values[name]) for name in by_size})
