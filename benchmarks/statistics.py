"""Medians with their spread, and ratios of what was measured in the same round.

Nothing here knows what is measured. A spread is the smallest and the largest value: with five rounds that says more
than a deviation would.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Spread:
    """A median, and the values farthest from it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Sum up at least one value."""
        return cls(statistics.median(values), min(values), max(values))


def ratios(numerators: Mapping[int, float], denominators: Mapping[int, float]) -> Spread | None:
    """Divide what was measured in the same round.

    Args:
        numerators: round -> value.
        denominators: round -> value; rounds with 0 are left out.

    Returns:
        The median of the ratios; None where no round has both.
    """
    both = [numerators[each] / denominators[each] for each in numerators if denominators.get(each)]
    return Spread.of(both) if both else None


def fitted(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Give the line that fits some points (x, y) best, by least squares: its value at 0 and its rise.

    Raises:
        statistics.StatisticsError: there are fewer than two points, or all have the same x.
    """
    line = statistics.linear_regression([x for x, _ in points], [y for _, y in points])
    return line.intercept, line.slope


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Give the rise of a line through the first and the last of some points (x, y)."""
    (first_x, first_y), (last_x, last_y) = points[0], points[-1]
    return (last_y - first_y) / (last_x - first_x)
