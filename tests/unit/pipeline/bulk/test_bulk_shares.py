"""How work is shared out: no lane idle, no partition too long, and a rate that is kept by few."""

from __future__ import annotations

from math import ceil, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.pipeline.bulk.jobs import (
    FEWEST_A_PARTITION,
    SECONDS_A_PARTITION,
    TOKENS_A_PARTITION,
    share_out,
)


@pytest.mark.parametrize(
    ("tokens", "at_once", "rate", "shares"),
    [
        (1_000_000, 8, inf, (8, TOKENS_A_PARTITION)),
        (1_000_000, 8, 2_000, (8, 2_500)),
        (4_000, 8, inf, (8, 500)),
        (150, 8, inf, (2, FEWEST_A_PARTITION)),
        (0, 8, inf, (1, FEWEST_A_PARTITION)),
        # Fifty a second, as beside brokers, are work for five and not for two hundred.
        (1_000_000, 200, 50, (5, FEWEST_A_PARTITION)),
        (1_000_000, 200, 0.1, (1, FEWEST_A_PARTITION)),
    ],
)
def test_lanes_and_partitions_suit_tokens_and_rate(
    tokens: int, at_once: int, rate: float, shares: tuple[int, int]
) -> None:
    assert share_out(tokens, at_once=at_once, changes_a_second=rate) == shares


def test_a_size_that_is_asked_for_is_taken() -> None:
    assert share_out(100, at_once=4, tokens_a_partition=30) == (4, 30)
    assert share_out(100, at_once=4, changes_a_second=20, tokens_a_partition=30) == (2, 30)
    assert share_out(100, at_once=4, tokens_a_partition=70) == (2, 70)


@given(
    st.integers(1, 10_000_000),
    st.integers(1, 1_000),
    st.floats(FEWEST_A_PARTITION / SECONDS_A_PARTITION, 1e6),
)
def test_no_partition_takes_longer_than_it_should_at_its_share_of_the_rate(
    tokens: int, at_once: int, rate: float
) -> None:
    lanes, size = share_out(tokens, at_once=at_once, changes_a_second=rate)
    assert 1 <= lanes <= min(at_once, ceil(tokens / size))
    assert size / (rate / lanes) <= SECONDS_A_PARTITION * 1.000_001
