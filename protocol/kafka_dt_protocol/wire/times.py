"""Milliseconds on the wire <-> the datetimes and timedeltas of kio's entities.

Kafka sends instants and durations as 64-bit milliseconds; Python's types hold less. What does not fit saturates: an
expiry in the year 300,000,000 is the end of the year 9999. Everything between is exact to the millisecond, because no
float is involved. -1, Kafka's "none", is an instant like any other.

Source: Kafka's message schemas (fields ...TimestampMs, ...PeriodMs, ThrottleTimeMs); kio.static.primitive.
"""

from datetime import UTC, datetime, timedelta
from typing import Final, cast

from kio.static.primitive import TZAware, i32Timedelta, i64Timedelta

NO_THROTTLE: Final = i32Timedelta.parse(timedelta(0))
"""The throttle time of every answer: there are no quotas."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_MIN_TIMESTAMP: Final = datetime.min.replace(tzinfo=UTC)
_MAX_TIMESTAMP: Final = datetime.max.replace(microsecond=999_000, tzinfo=UTC)
_MIN_TIMESTAMP_MS: Final = (_MIN_TIMESTAMP - _EPOCH) // _MILLISECOND
_MAX_TIMESTAMP_MS: Final = (_MAX_TIMESTAMP - _EPOCH) // _MILLISECOND
_MIN_DURATION_MS: Final = timedelta.min // _MILLISECOND
_MAX_DURATION_MS: Final = timedelta.max // _MILLISECOND


def to_timestamp(timestamp_ms: int) -> TZAware:
    """Make the datetime of milliseconds since 1970-01-01 UTC; kio's TZAware is a name for type checkers only."""
    if timestamp_ms >= _MAX_TIMESTAMP_MS:
        return cast("TZAware", _MAX_TIMESTAMP)
    if timestamp_ms <= _MIN_TIMESTAMP_MS:
        return cast("TZAware", _MIN_TIMESTAMP)
    return cast("TZAware", _EPOCH + timedelta(milliseconds=timestamp_ms))


def from_timestamp(timestamp: datetime) -> int:
    """Give an instant as milliseconds since 1970-01-01 UTC; what is below a millisecond is dropped."""
    return (timestamp - _EPOCH) // _MILLISECOND


def to_duration(duration_ms: int) -> i64Timedelta:
    """Make the timedelta of milliseconds, also negative ones; kio's i64Timedelta is a name for type checkers."""
    if duration_ms > _MAX_DURATION_MS:
        return cast("i64Timedelta", timedelta.max)
    if duration_ms < _MIN_DURATION_MS:
        return cast("i64Timedelta", timedelta.min)
    return cast("i64Timedelta", timedelta(milliseconds=duration_ms))


def from_duration(duration: timedelta) -> int:
    """Give a duration in milliseconds; what is below a millisecond is dropped."""
    return duration // _MILLISECOND
