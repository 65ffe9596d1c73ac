from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kafka_dt.pipeline.generator.owners import Work, population
from kafka_dt.pipeline.generator.scenario import DAY_MS, Scenario, ScenarioError, utc

START = datetime(2026, 9, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"start": START + timedelta(hours=1)}, "midnight in UTC"),
        ({"start": START.replace(tzinfo=timezone(timedelta(hours=2)))}, "midnight in UTC"),
        ({"start": START.replace(tzinfo=None)}, "midnight in UTC"),
        ({"days": 1}, "2 to 366 days"),
        ({"days": 367}, "2 to 366 days"),
        ({"owners": 3}, "at least 12 owners"),
        ({"nodes": 0}, "begin with 1"),
        ({"incidents": -1}, "begin with 1, incidents with 0"),
        ({"events": 100}, "100 events are too few for 3,000 tokens; 36,000 are enough"),
    ],
)
def test_numbers_that_do_not_go_together_are_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        Scenario(**{"start": START, **fields})  # type: ignore[arg-type]


def test_a_larger_scenario_has_more_of_everything() -> None:
    small, large = (Scenario.of_size(events, start=START) for events in (1_000_000, 10_000_000))
    assert (small.owners, small.tokens_a_day) == (125, 416)
    assert (large.owners, large.tokens_a_day) == (1250, 4166)


def test_days_are_counted_from_the_first_midnight() -> None:
    scenario = Scenario(start=START)
    assert utc(scenario.begin_ms(0)) == START
    assert scenario.begin_ms(-1) == scenario.start_ms - DAY_MS
    assert utc(scenario.end_ms) == START + timedelta(days=30)


def test_nobody_works_at_weekends() -> None:
    scenario = Scenario(start=START)
    assert [day for day in range(7) if not scenario.is_working_day(day)] == [5, 6]


def test_chance_is_the_same_for_the_same_names_and_another_for_others() -> None:
    scenario = Scenario(start=START)
    drawn = scenario.chance("owner", 3).random()
    assert scenario.chance("owner", 3).random() == drawn
    assert scenario.chance("owner", 4).random() != drawn
    assert Scenario(start=START, seed=2).chance("owner", 3).random() != drawn


def test_there_are_as_many_owners_as_asked_for_with_all_kinds_of_work_and_names_of_their_own() -> None:
    for owners in (12, 13, 50, 1250):
        found = population(Scenario(start=START, owners=owners))
        assert len(found) == owners
        assert {each.work for each in found} == set(Work)
        assert len({each.principal for each in found}) == owners
