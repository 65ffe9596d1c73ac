"""Rates are kept, by one run and by several that share them."""

from __future__ import annotations

import time

import pytest

from kafka_dt.bulk.pace import WHOLE, Portion, WriteTurns


async def test_every_turn_comes_after_what_it_costs() -> None:
    turns, begun_s = WriteTurns(), time.monotonic()
    for number in range(1, 4):
        await turns.take(0.05)
        assert time.monotonic() - begun_s >= 0.05 * number - 0.001


async def test_time_in_which_nobody_asked_is_not_made_up_for() -> None:
    turns = WriteTurns()
    turns.next_s = time.monotonic() - 100
    begun_s = time.monotonic()
    await turns.take(0.05)
    assert time.monotonic() - begun_s >= 0.049


@pytest.mark.parametrize(
    ("portion", "rate", "batch"),
    [
        (WHOLE, None, 64),
        (Portion(runs=4), None, 64),
        (Portion(changes_a_second=1_000), 1_000, 64),
        (Portion(runs=4, changes_a_second=100), 25, 25),
        (Portion(runs=40, changes_a_second=10), 0.25, 1),
    ],
)
def test_runs_share_a_rate_and_change_no_more_together_than_a_seconds_worth(
    portion: Portion, rate: float | None, batch: int
) -> None:
    assert (portion.own_changes_a_second, portion.batch(64)) == (rate, batch)
