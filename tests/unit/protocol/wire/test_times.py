from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt_protocol.wire.times import NO_THROTTLE, from_duration, from_timestamp, to_duration, to_timestamp

FIRST_MS = -62135596800000
LAST_MS = 253402300799999
INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.integers(FIRST_MS, LAST_MS))
def test_an_instant_keeps_its_millisecond(timestamp_ms: int) -> None:
    assert from_timestamp(to_timestamp(timestamp_ms)) == timestamp_ms


@given(INT64)
def test_any_instant_of_the_wire_becomes_the_nearest_that_a_datetime_holds(timestamp_ms: int) -> None:
    assert from_timestamp(to_timestamp(timestamp_ms)) == max(FIRST_MS, min(LAST_MS, timestamp_ms))


@given(st.integers(-999999999 * 86400000, 999999999 * 86400000))
def test_a_duration_keeps_its_millisecond(duration_ms: int) -> None:
    assert from_duration(to_duration(duration_ms)) == duration_ms


@given(INT64)
def test_any_duration_of_the_wire_becomes_a_timedelta_of_the_same_sign(duration_ms: int) -> None:
    duration = to_duration(duration_ms)
    assert (duration < timedelta(0)) == (duration_ms < 0)
    assert timedelta.min <= duration <= timedelta.max


def test_durations_beyond_a_timedelta_saturate() -> None:
    assert to_duration(2**63 - 1) == timedelta.max
    assert to_duration(-(2**63)) == timedelta.min


@pytest.mark.parametrize(
    ("timestamp_ms", "instant"),
    [
        (-1, datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1732175201234, datetime(2024, 11, 21, 7, 46, 41, 234000, tzinfo=UTC)),
        (LAST_MS, datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        (LAST_MS + 1, datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
    ],
)
def test_known_instants(timestamp_ms: int, instant: datetime) -> None:
    assert to_timestamp(timestamp_ms) == instant


def test_an_instant_of_another_zone_is_counted_in_utc() -> None:
    assert from_timestamp(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0


def test_nothing_is_throttled() -> None:
    assert timedelta(0) == NO_THROTTLE
