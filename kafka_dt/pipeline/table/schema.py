"""What an audit event is in Spark: made of the fields of `AuditEvent`, so that the two cannot differ.

    LINE_SCHEMA        an event as its JSON says it: instants are milliseconds, BIGINT
    EVENT_SCHEMA       an event as the table has it: instants are TIMESTAMP; `date` is the day of `time` in UTC, and
                       `cluster_id` names the cluster of the node that wrote it
    QUARANTINE_SCHEMA  what could not become an event, and why

Days and instants never depend on the time zone of a session: `instant` and `day` compute with milliseconds.

Limits: types of fields are text, BIGINT, BOOLEAN and lists of text; a field of another type fails the import.

Source: kafka_dt/audit/event.py; Spark SQL, "Data Types".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafka_dt.audit.event import AuditEvent, notes

DAY_MS: Final = 86_400_000


_HINTS: Final[Mapping[str, Any]] = get_type_hints(AuditEvent)


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) in {Union, UnionType}


def _type_of(name: str) -> DataType:
    """Give the type of Spark for the type of a field, with None or without."""
    hint = _HINTS[name]
    if _is_optional(hint):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    if get_origin(hint) in {tuple, list} and get_args(hint)[0] is str:
        return ArrayType(StringType())
    if hint is bool:
        return BooleanType()
    if hint is int:
        return LongType()
    if isinstance(hint, type) and issubclass(hint, str):
        return StringType()
    raise TypeError(f"{name}: Spark's schema has no type for {hint}")


INSTANTS: Final = tuple(name for name, note in notes().items() if note.timestamp)
"""The fields that are instants: `time`, `issue_time`, ..."""

DATE: Final = "date"
"""The day of the event, in UTC."""
CLUSTER_ID: Final = "cluster_id"
"""Names the cluster that the event is from; ids of events are unique within it."""

REQUIRED: Final = tuple(name for name in notes() if not _is_optional(_HINTS[name]))
"""The fields that every event has."""

LINE_SCHEMA: Final = StructType([StructField(name, _type_of(name)) for name in notes()])
"""An event as it stands in a line of JSON."""

EVENT_SCHEMA: Final = StructType(
    [
        *(StructField(each.name, TimestampType() if each.name in INSTANTS else each.dataType) for each in LINE_SCHEMA),
        StructField(DATE, DateType()),
        StructField(CLUSTER_ID, StringType()),
    ]
)
"""An event as it stands in the table."""


class Reason(StrEnum):
    """Why a line is in quarantine."""

    NOT_TEXT = "not_text"
    """Its bytes are no UTF-8."""
    NOT_JSON = "not_json"
    """It is not one JSON object; an empty line is none either."""
    UNKNOWN_VERSION = "unknown_version"
    """Its `version` is one that this release does not know."""
    WRONG_FIELD = "wrong_field"
    """A field has a value that it cannot have: of another type than the schema says, an empty id, or no port."""
    MISSING_FIELD = "missing_field"
    """A field that every event has is not there."""
    UNKNOWN_TYPE = "unknown_type"
    """Its `type` or its `outcome` is none that this release knows."""
    IMPOSSIBLE_TIME = "impossible_time"
    """Its `time`, or another instant, is before 1970 or after 9999."""
    FROM_THE_FUTURE = "from_the_future"
    """Its `time` is further ahead of this machine's clock than allowed."""
    LATE = "late"
    """Its `time` is further behind the newest event of the table than allowed."""


QUARANTINE_SCHEMA: Final = StructType(
    [
        StructField("reason", StringType()),
        StructField("fields", ArrayType(StringType())),
        StructField("source", StringType()),
        StructField("source_partition", IntegerType()),
        StructField("source_offset", LongType()),
        StructField("time", TimestampType()),
        StructField("ingest_time", TimestampType()),
        StructField("raw", StringType()),
        StructField(CLUSTER_ID, StringType()),
    ]
)
"""A line in quarantine.

`reason` is one of Reason, `fields` names the fields that are concerned; `source` is the path of the file, or the topic
with `source_partition` and `source_offset`; `time` is the event's own where it has one; `raw` is the line; `cluster_id`
names the cluster of its source.
"""


def instant(milliseconds: Column) -> Column:
    """Give the TIMESTAMP of milliseconds since 1970."""
    return F.timestamp_millis(milliseconds)


def day(milliseconds: Column) -> Column:
    """Give the day of milliseconds since 1970, in UTC."""
    return F.date_from_unix_date(F.floor(milliseconds / F.lit(DAY_MS)).cast("int"))


def completed(rows: DataFrame, schema: StructType) -> DataFrame:
    """Add the columns of a schema that rows lack, as nulls."""
    columns = set(rows.columns)  # each question for them is a call to the engine
    missing = [each for each in schema if each.name not in columns]
    return rows.select("*", *(F.lit(None).cast(each.dataType).alias(each.name) for each in missing))
