"""Lines to events: each line of text becomes a row of the table, or a row in quarantine with the reason.

    checked = check_lines(lines, Limits(now_ms=..., newest_ms=...))
    good_events(checked)          # as EVENT_SCHEMA
    quarantined_lines(checked)    # as QUARANTINE_SCHEMA

A line is good if it is one JSON object with the fields of `AuditEvent`, each of its own type, and with those that every
event has; null is as good as nothing. Names that are not known are left out: a new field does not change the version.

Spark's JSON reader alone would take more than that: it makes text of numbers and of objects, and reads no further than
the first value of a line, so that a second event on it would be lost. It is quick, though. So every line is read by it
once, and only a line with which something may be wrong is looked at again, field by field (`_suspicious`).

Limits: a name that is there twice counts as it is read last, and is quarantined if one of its values is wrong; of a
longer line quarantine has the first RAW_LENGTH characters.

Source: RFC 8259; Spark SQL, "JSON files", "Variant type".
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from kafka_dt.audit.event import VERSION, EventType, Outcome
from kafka_dt.pipeline.schema import (
    DATE,
    EVENT_SCHEMA,
    INSTANTS,
    LINE_SCHEMA,
    QUARANTINE_SCHEMA,
    REQUIRED,
    Reason,
    day,
    instant,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame

LINE: Final = "line"
SOURCE: Final = ("source", "source_partition", "source_offset")
"""The columns of lines: LINE, bytes, and where it is from."""
RAW_LENGTH: Final = 65_536

LAST_INSTANT_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""

_OPTIONS: Final = MappingProxyType(
    {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": "broken",
        "allowSingleQuotes": "false",
        "allowNonNumericNumbers": "false",
    }
)
_TYPES: Final[Mapping[type[DataType], tuple[str, ...]]] = MappingProxyType(
    {
        StringType: ("STRING",),
        LongType: ("BIGINT",),
        BooleanType: ("BOOLEAN",),
        ArrayType: ("ARRAY<STRING>", "ARRAY<VOID>", "ARRAY<>"),
    }
)
"""What a value of JSON is called whose type is right."""
_NULL: Final = "VOID"

_LISTS: Final = tuple(each.name for each in LINE_SCHEMA if isinstance(each.dataType, ArrayType))
_VARIANTS: Final = StructType([StructField(each.name, VariantType()) for each in LINE_SCHEMA])
_MADE_TEXT: Final = r"(?m)^(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|[{\[].*)$"
"""What Spark's text of a JSON value looks like that was no text."""
_SEPARATOR: Final = "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Between which instants events are good; milliseconds since 1970."""

    latest_ms: int
    """Beyond it they are from the future."""
    earliest_ms: int
    """Before it they are late; 0 = no event is."""


def check_lines(lines: DataFrame, limits: Limits) -> DataFrame:
    """Read lines.

    Args:
        lines: with the columns LINE and SOURCE.
        limits: what is too late and too early.

    Returns:
        SOURCE; `raw`; `event`, whose fields are LINE_SCHEMA's; `reason`, null if it is good; and `fields`.
    """
    # Each step is a projection of its own: within one Spark would compute again what is referred to more than once.
    read = lines.select(
        *SOURCE,
        F.is_valid_utf8(F.col(LINE).cast("string")).alias("is_text"),
        F.make_valid_utf8(F.col(LINE).cast("string")).alias("raw"),
    )
    parsed = read.withColumn("parsed", _wrapped_as(LINE_SCHEMA)).withColumn("event", F.col("parsed.event"))
    doubted = parsed.withColumn("suspicious", _suspicious())
    apart = doubted.withColumn("apart", F.when(F.col("suspicious"), _wrapped_as(_VARIANTS)["event"]))
    seen = apart.withColumn("closer", F.when(F.col("suspicious"), _looked_at()))
    checked = seen.withColumn("found", _finding(limits))
    return checked.select(*SOURCE, "raw", "event", F.col("found.reason"), F.col("found.fields"))


def good_events(checked: DataFrame) -> DataFrame:
    """Give the events of what `check_lines` has read."""
    good = checked.where(F.col("reason").isNull()).select("event.*")
    columns = {each.name: F.col(each.name) for each in LINE_SCHEMA}
    columns |= {name: instant(F.col(name)) for name in INSTANTS}
    columns[DATE] = day(F.col("time"))
    return good.select(*(columns[each.name].alias(each.name) for each in EVENT_SCHEMA))


def quarantined_lines(checked: DataFrame, now_ms: int) -> DataFrame:
    """Give what is not good of what `check_lines` has read.

    Args:
        checked: what it gave.
        now_ms: the time, which is kept with each line.
    """
    time = F.col("event.time")
    columns = {
        **{name: F.col(name) for name in ("reason", "fields", *SOURCE)},
        "time": instant(F.when(_is_instant(time), time)),
        "ingest_time": instant(F.lit(now_ms).cast("bigint")),
        "raw": F.substring("raw", 1, RAW_LENGTH),
    }
    bad = checked.where(F.col("reason").isNotNull())
    return bad.select(*(columns[each.name].cast(each.dataType).alias(each.name) for each in QUARANTINE_SCHEMA))


def _wrapped_as(schema: StructType) -> Column:
    """Read a line as the field of an object, with another field behind it: it is missing if the line has an end."""
    wrapper = StructType(
        [StructField("event", schema), StructField("end", LongType()), StructField("broken", StringType())]
    )
    return F.from_json(F.concat(F.lit('{"event":'), "raw", F.lit(',"end":1}')), wrapper, dict(_OPTIONS))


def _suspicious() -> Column:
    """Whether a line has to be looked at field by field: true for all that are wrong, and for few others."""
    texts = [f"event.{each.name}" for each in LINE_SCHEMA if isinstance(each.dataType, StringType)]
    return (
        F.col("parsed.broken").isNotNull()
        | F.col("parsed.end").isNull()
        | F.col("event").isNull()
        # More than one value on the line, or a field that is an object.
        | F.col("raw").rlike(r"\}\s*,")
        | F.concat_ws(_SEPARATOR, *texts, *(f"event.{name}" for name in _LISTS)).rlike(_MADE_TEXT)
        | _any(_has_null(name) for name in _LISTS)
    )


def _looked_at() -> Column:
    """Look at a line field by field: whether it is one JSON object, its version, and which fields have wrong types."""
    apart, raw = F.col("apart"), F.col("raw")
    # Each of the two lets something pass behind the first value, and what one does the other does not.
    single = F.json_array_length(F.concat(F.lit("["), raw, F.lit("]"))) == 1
    wrong = [F.when(~_has_type(apart[each.name], each.dataType), F.lit(each.name)) for each in LINE_SCHEMA]
    wrong += [F.when(_has_null(name), F.lit(name)) for name in _LISTS]
    version = apart["version"]
    return F.struct(
        (apart.isNotNull() & F.coalesce(single, F.lit(False)) & raw.rlike(r"^\s*\{")).alias("is_object"),
        F.when(_has_type(version, LongType()), F.try_variant_get(version, "$", "bigint")).alias("version"),
        F.array_compact(F.array(*wrong)).alias("wrong"),
    )


def _has_type(value: Column, wanted: DataType) -> Column:
    return value.isNull() | F.schema_of_variant(value).isin(*_TYPES[type(wanted)], _NULL)


def _has_null(name: str) -> Column:
    return F.exists(f"event.{name}", lambda item: item.isNull())


def _finding(limits: Limits) -> Column:
    """Say what is wrong with a line, the first thing of the order of Reason."""
    event, closer = F.col("event"), F.col("closer")
    version = F.coalesce(closer["version"], event["version"])
    missing = F.array_compact(F.array(*(F.when(event[name].isNull(), F.lit(name)) for name in REQUIRED)))
    impossible = F.array_compact(F.array(*(F.when(~_is_instant(event[name]), F.lit(name)) for name in INSTANTS)))
    unknown = F.array_compact(
        F.array(
            F.when(~event["type"].isin(*(each.value for each in EventType)), F.lit("type")),
            F.when(~event["outcome"].isin(*(each.value for each in Outcome)), F.lit("outcome")),
        )
    )
    broken = closer.isNotNull() & F.col("parsed.broken").isNotNull()
    return (
        _when(~F.col("is_text"), Reason.NOT_TEXT)
        .when(closer.isNotNull() & ~closer["is_object"], _found(Reason.NOT_JSON))
        .when(version.isNotNull() & (version != VERSION), _found(Reason.UNKNOWN_VERSION, _names("version")))
        .when((F.size(closer["wrong"]) > 0) | broken, _found(Reason.WRONG_FIELD, closer["wrong"]))
        .when(F.size(missing) > 0, _found(Reason.MISSING_FIELD, missing))
        .when(F.size(unknown) > 0, _found(Reason.UNKNOWN_TYPE, unknown))
        .when(F.size(impossible) > 0, _found(Reason.IMPOSSIBLE_TIME, impossible))
        .when(event["time"] > limits.latest_ms, _found(Reason.FROM_THE_FUTURE, _names("time")))
        .when(event["time"] < limits.earliest_ms, _found(Reason.LATE, _names("time")))
    )


def _when(condition: Column, reason: Reason) -> Column:
    return F.when(condition, _found(reason))


def _found(reason: Reason, fields: Column | None = None) -> Column:
    none = F.array().cast("array<string>")
    return F.struct(F.lit(reason.value).alias("reason"), (none if fields is None else fields).alias("fields"))


def _names(*names: str) -> Column:
    return F.array(*map(F.lit, names))


def _is_instant(milliseconds: Column) -> Column:
    return F.coalesce(milliseconds.between(0, LAST_INSTANT_MS), F.lit(True))


def _any(conditions: Iterable[Column]) -> Column:
    """Whether one of the conditions holds; what is unknown does not."""
    found = F.lit(False)
    for condition in conditions:
        found |= F.coalesce(condition, F.lit(False))
    return found
