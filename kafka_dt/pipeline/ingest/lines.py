"""Lines to events: each line of text becomes a row of the table, or a row in quarantine with the reason.

    checked = check_lines(lines, LineLimits(latest_ms=..., earliest_ms=...))
    good_events(checked, cluster_id)                  # as EVENT_SCHEMA
    quarantined_lines(checked, cluster_id, now_ms)    # as QUARANTINE_SCHEMA

A line is good if it is one JSON object with the fields of `AuditEvent`, each of its own type, and with those that every
event has; null is as good as nothing. Names that are not known are left out: a new field does not change the version.

Spark's JSON reader is quick but takes more than a line may be: it makes text of numbers and of objects, and reads no
further than the first value of a line. So it reads every line once (`as_event`), and only a line with which something
may be wrong (`is_suspicious`) again, with values of any type (`as_any_values`), field by field (`wrong_fields`).
`finding` says what that amounts to. The columns refer to each other by name. What has many parts is written as SQL,
because each part of a column would be several calls of Spark's JVM, for each batch.

Limits: a name that is there twice counts as it is read last, and is quarantined if one of its values is wrong; of a
longer line quarantine has the first RAW_LENGTH characters.

Source: kafka_dt/audit/event.py; RFC 8259; Spark SQL, "JSON files", "Variant type".
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
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from kafka_dt.audit.event import VERSION, EventType, Outcome
from kafka_dt.pipeline.table.schema import (
    CLUSTER_ID,
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
_ANY_VALUES: Final = MapType(StringType(), VariantType())
_MADE_TEXT: Final = r"(?m)^(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|[{\[].*)$"
"""What Spark's text of a JSON value looks like that was no text."""
_LISTS: Final = tuple(each.name for each in LINE_SCHEMA if isinstance(each.dataType, ArrayType))
_IMPOSSIBLE: Final[Mapping[str, str]] = MappingProxyType(
    {"id": "event.id = ''", "client_port": "event.client_port NOT BETWEEN 0 AND 65535"}
)
"""Fields whose type is right and whose value no node writes, and when that is so."""
_IS_INSTANT: Final = f"coalesce({{}} BETWEEN 0 AND {LAST_INSTANT_MS}, true)"
_NO_NAMES: Final = "cast(array() AS array<string>)"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineLimits:
    """Between which instants events are good; milliseconds since 1970."""

    latest_ms: int
    """Beyond it they are from the future."""
    earliest_ms: int
    """Before it they are late; 0 = no event is."""


def check_lines(lines: DataFrame, limits: LineLimits) -> DataFrame:
    """Read lines, whose columns are LINE and SOURCE.

    Returns SOURCE; `raw`; `event`, whose fields are LINE_SCHEMA's; `reason`, null if it is good; and `fields`.
    """
    # Each step is a projection of its own: within one Spark would compute again what is referred to more than once.
    # The limits come last, because all but the last projection is compiled once and not for each batch.
    read = lines.select(
        *SOURCE,
        F.is_valid_utf8(F.col(LINE).cast("string")).alias("is_text"),
        F.make_valid_utf8(F.col(LINE).cast("string")).alias("raw"),
    )
    parsed = read.select("*", as_event().alias("parsed")).select(*SOURCE, "is_text", "raw", "parsed.*")
    doubted = parsed.select("*", is_suspicious().alias("suspicious"))
    closer = doubted.select("*", F.when(F.col("suspicious"), as_any_values()).alias("closer"))
    checked = closer.select("*", F.when(F.col("suspicious"), wrong_fields()).alias("wrong"))
    judged = checked.select(*SOURCE, "raw", "event", finding().alias("finding"))
    limited = judged.select(
        *SOURCE,
        "raw",
        "event",
        F.coalesce("finding", out_of_limits(limits.earliest_ms, limits.latest_ms)).alias("finding"),
    )
    return limited.select(*SOURCE, "raw", "event", "finding.reason", "finding.fields")


def good_events(checked: DataFrame, cluster_id: str) -> DataFrame:
    """Give the events of what `check_lines` has read, as those of a cluster."""
    good = checked.where(F.col("reason").isNull()).select("event.*")
    columns = {each.name: F.col(each.name) for each in LINE_SCHEMA}
    columns |= {name: instant(F.col(name)) for name in INSTANTS}
    columns |= {DATE: day(F.col("time")), CLUSTER_ID: F.lit(cluster_id)}
    return good.select(*(columns[each.name].alias(each.name) for each in EVENT_SCHEMA))


def quarantined_lines(checked: DataFrame, cluster_id: str, now_ms: int) -> DataFrame:
    """Give what is not good of what `check_lines` has read; the cluster and the time are kept with each line."""
    columns = {
        **{name: F.col(name) for name in ("reason", "fields", *SOURCE)},
        "time": instant(F.when(is_instant("event.time"), F.col("event.time"))),
        "ingest_time": instant(F.lit(now_ms).cast("bigint")),
        "raw": F.substring("raw", 1, RAW_LENGTH),
        CLUSTER_ID: F.lit(cluster_id),
    }
    bad = checked.where(F.col("reason").isNotNull())
    return bad.select(*(columns[each.name].cast(each.dataType).alias(each.name) for each in QUARANTINE_SCHEMA))


def as_event() -> Column:
    """Read a line as an event: a struct of `event`, and of `end` and `broken`, which tell whether it is one."""
    return _wrapped_as(LINE_SCHEMA)


def as_any_values() -> Column:
    """Read a line as an object with values of any type: the same struct."""
    return _wrapped_as(_ANY_VALUES)


def is_suspicious() -> Column:
    """Whether a line has to be looked at field by field: true for all that are wrong, and for few others."""
    texts = [each.name for each in LINE_SCHEMA if isinstance(each.dataType, StringType)]
    written = _listed(f"event.{name}" for name in (*texts, *_LISTS))
    # `concat_ws` leaves out what is null in a list.
    nulls = " OR ".join(f"coalesce(exists(event.{each}, item -> item IS NULL), false)" for each in _LISTS)
    return F.expr(
        "broken IS NOT NULL OR `end` IS NULL OR event IS NULL"
        # More than one value on the line, or a field that is an object.
        r" OR raw RLIKE r'\}\s*,'"
        f" OR concat_ws('\n', {written}) RLIKE r'{_MADE_TEXT}' OR {nulls}"
    )


def wrong_fields() -> Column:
    """Name the fields whose values are of a wrong type, in a line that was read with values of any type."""
    types = _listed(f"'{each.name}', array({_quoted((*_TYPES[type(each.dataType)], _NULL))})" for each in LINE_SCHEMA)
    is_right = f"array_contains(element_at(map({types}), name), schema_of_variant(value))"
    of_lists = _array(f"if(exists(event.{each}, item -> item IS NULL), '{each}', NULL)" for each in _LISTS)
    return F.expr(
        f"array_union(coalesce(map_keys(map_filter(closer.event, (name, value) -> NOT {is_right})), {_NO_NAMES}),"
        f" array_compact({of_lists}))"
    )


def finding() -> Column:
    """Say what is wrong with a line by itself, the first thing of the order of Reason."""
    # Each of the two lets something pass behind the first value, and what one does the other does not.
    is_whole = "json_array_length(concat('[', raw, ']')) = 1"
    is_object = f"closer.broken IS NULL AND closer.`end` IS NOT NULL AND closer.event IS NOT NULL AND {is_whole}"
    missing = _names_if({name: f"event.{name} IS NULL" for name in REQUIRED})
    unknown = _names_if(
        {
            "type": f"event.type NOT IN ({_quoted(EventType)})",
            "outcome": f"event.outcome NOT IN ({_quoted(Outcome)})",
        }
    )
    impossible = _names_if(_IMPOSSIBLE)
    no_instants = _names_if({name: f"NOT {_IS_INSTANT.format(f'event.{name}')}" for name in INSTANTS})
    return _first_of(
        (Reason.NOT_TEXT, "NOT is_text", _NO_NAMES),
        (Reason.NOT_JSON, f"suspicious AND NOT coalesce({is_object}, false)", _NO_NAMES),
        (Reason.UNKNOWN_VERSION, f"event.version <> {VERSION}", "array('version')"),
        (Reason.WRONG_FIELD, "size(wrong) > 0 OR broken IS NOT NULL", "wrong"),
        (Reason.WRONG_FIELD, f"size({impossible}) > 0", impossible),
        (Reason.MISSING_FIELD, f"size({missing}) > 0", missing),
        (Reason.UNKNOWN_TYPE, f"size({unknown}) > 0", unknown),
        (Reason.IMPOSSIBLE_TIME, f"size({no_instants}) > 0", no_instants),
    )


def out_of_limits(earliest_ms: int, latest_ms: int) -> Column:
    """Say whether an event that is good by itself is too early or too late: as `finding` says it."""
    return _first_of(
        (Reason.FROM_THE_FUTURE, f"event.time > {latest_ms}", "array('time')"),
        (Reason.LATE, f"event.time < {earliest_ms}", "array('time')"),
    )


def is_instant(name: str) -> Column:
    """Whether these milliseconds are in the years that Python and Spark both know; null is no objection."""
    return F.expr(_IS_INSTANT.format(name))


def _wrapped_as(schema: DataType) -> Column:
    """Read a line as the field of an object, with another field behind it: it is missing if the line has an end."""
    wrapper = StructType(
        [StructField("event", schema), StructField("end", LongType()), StructField("broken", StringType())]
    )
    return F.from_json(F.concat(F.lit('{"event":'), "raw", F.lit(',"end":1}')), wrapper, dict(_OPTIONS))


def _names_if(conditions: Mapping[str, str]) -> str:
    names = _array(f"if({what}, '{name}', NULL)" for name, what in conditions.items())
    return f"array_compact({names})"


def _first_of(*findings: tuple[Reason, str, str]) -> Column:
    """Give the first reason whose condition holds, with the names of fields: a struct of `reason` and `fields`."""
    cases = " ".join(
        f"WHEN {holds} THEN struct('{reason}' AS reason, {fields} AS fields)" for reason, holds, fields in findings
    )
    return F.expr(f"CASE {cases} END")


def _array(parts: Iterable[str]) -> str:
    return f"array({_listed(parts)})"


def _quoted(texts: Iterable[str]) -> str:
    return _listed(f"'{each}'" for each in texts)


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)
