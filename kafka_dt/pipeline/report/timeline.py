"""The time that the plots show, cut into equal steps.

    timeline = Timeline.over(first, last)
    rows.withColumn("step", timeline.step_of(F.col("time")))

There are at most `MOST_STEPS`, whatever the table covers: an hour of one day, a week of three years. They begin at
round instants (UTC), so that two reports of one table agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column

MOST_STEPS: Final = 200
_HOURS: Final = (1, 2, 3, 6, 12, 24, 48, 7 * 24, 14 * 24, 28 * 24)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


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
        start = first - (first - _EPOCH) % step
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
        begun, step = (self.start - _EPOCH) // _MICROSECOND, self.step // _MICROSECOND
        return F.timestamp_micros(number.cast("long") * F.lit(step) + F.lit(begun))

    def _distance(self, instant: Column) -> Column:
        begun = (self.start - _EPOCH) // _MICROSECOND
        return (F.unix_micros(instant) - F.lit(begun)) / F.lit(self.step // _MICROSECOND)
