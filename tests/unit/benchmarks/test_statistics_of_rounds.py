from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.statistics import Spread, ratios, slope


def test_a_spread_is_the_median_with_the_farthest_values() -> None:
    assert Spread.of([3.0, 1.0, 10.0]) == Spread(3.0, 1.0, 10.0)


def test_the_median_of_an_even_number_lies_between_the_middle_ones() -> None:
    assert Spread.of([1.0, 2.0, 4.0, 100.0]).median == 3.0


@given(st.lists(st.floats(0, 1e9), min_size=1))
def test_no_median_lies_outside_its_spread(values: list[float]) -> None:
    spread = Spread.of(values)
    assert spread.low <= spread.median <= spread.high


def test_ratios_are_of_the_same_round() -> None:
    assert ratios({1: 10.0, 2: 40.0, 3: 30.0}, {3: 3.0, 1: 2.0, 2: 10.0}) == Spread(5.0, 4.0, 10.0)


def test_a_round_that_only_one_has_does_not_count() -> None:
    assert ratios({1: 10.0, 2: 40.0}, {2: 10.0, 3: 1.0}) == Spread(4.0, 4.0, 4.0)


@pytest.mark.parametrize("denominators", [{}, {1: 0.0}, {2: 1.0}])
def test_without_a_common_round_there_is_no_ratio(denominators: dict[int, float]) -> None:
    assert ratios({1: 10.0}, denominators) is None


def test_a_slope_joins_the_first_and_the_last_point() -> None:
    assert slope([(1_000, 500.0), (10_000, 99.0), (101_000, 10_500.0)]) == 0.1
