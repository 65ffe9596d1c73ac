from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.pipeline.report.timeline import MOST_STEPS, Timeline

INSTANTS = st.datetimes(
    datetime(1990, 1, 1),  # noqa: DTZ001 - the zone is given beside it
    datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
BEGIN = datetime(2026, 3, 2, 5, 30, tzinfo=UTC)


@given(first=INSTANTS, second=INSTANTS)
def test_any_time_is_covered_by_a_bounded_number_of_steps(first: datetime, second: datetime) -> None:
    first, last = sorted((first, second))
    timeline = Timeline.over(first, last)
    assert timeline.instants[0] <= first
    assert timeline.instants[-1] >= last
    assert first - timeline.instants[0] < timeline.step
    assert len(timeline.instants) == timeline.steps + 1 <= MOST_STEPS + 2


@given(first=INSTANTS, span=st.timedeltas(timedelta(0), timedelta(days=60)))
def test_steps_begin_at_round_instants(first: datetime, span: timedelta) -> None:
    timeline = Timeline.over(first, first + span)
    assert (timeline.start - datetime(1970, 1, 1, tzinfo=UTC)) % timeline.step == timedelta(0)


def test_a_day_has_hours_and_a_month_quarters_of_days() -> None:
    assert Timeline.over(BEGIN, BEGIN + timedelta(days=1)).step == timedelta(hours=1)
    assert Timeline.over(BEGIN, BEGIN + timedelta(days=30)).step == timedelta(hours=6)


def test_one_instant_is_a_step_as_well() -> None:
    assert Timeline.over(BEGIN, BEGIN).steps == 1


def test_silences_are_the_steps_between_those_with_events() -> None:
    hours = [datetime(2026, 3, 1, hour, tzinfo=UTC) for hour in range(24)]
    timeline = Timeline.over(hours[0], hours[20])
    assert timeline.silences([9, 2, 3, 5]) == ((hours[4], hours[5]), (hours[6], hours[9]))
    assert timeline.silences([4]) == timeline.silences([]) == ()
