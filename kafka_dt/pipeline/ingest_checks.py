"""What is asked of a line, as columns of Spark: its JSON, whether it deserves a closer look, and what is wrong with it.

Spark's JSON reader takes more than a line may be: it makes text of numbers and of objects, and reads no further than
the first value of a line, so that a second event on it would be lost. It is quick, though. So every line is read by it
once (`as_event`), and only a line with which something may be wrong (`is_suspicious`) is read again, with values of any
type (`as_any_values`), and looked at field by field (`wrong_fields`). `finding` says what that amounts to.

The columns refer to each other by name: `raw` is the text, `event`, `end` and `broken` are the fields of `as_event`,
`suspicious`, `closer` and `wrong` are the others.

Source: RFC 8259; Spark SQL, "JSON files", "Variant type".
"""

from __future__ import annotations

from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column
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
from kafka_dt.pipeline.schema import INSTANTS, LINE_SCHEMA, REQUIRED, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

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
_SEPARATOR: Final = "\n"


def as_event() -> Column:
    """Read a line as an event: a struct of `event`, and of `end` and `broken`, which tell whether it is one."""
    return _wrapped_as(LINE_SCHEMA)


def as_any_values() -> Column:
    """Read a line as an object with values of any type: the same struct."""
    return _wrapped_as(_ANY_VALUES)


def is_suspicious() -> Column:
    """Whether a line has to be looked at field by field: true for all that are wrong, and for few others."""
    event = F.col("event")
    texts = [event[each.name] for each in LINE_SCHEMA if isinstance(each.dataType, StringType)]
    lists = [event[each.name] for each in LINE_SCHEMA if isinstance(each.dataType, ArrayType)]
    return (
        F.col("broken").isNotNull()
        | F.col("end").isNull()
        | event.isNull()
        # More than one value on the line, or a field that is an object.
        | F.col("raw").rlike(r"\}\s*,")
        | F.concat_ws(_SEPARATOR, *texts, *lists).rlike(_MADE_TEXT)
        # `concat_ws` leaves out what is null in a list.
        | reduce(Column.__or__, (F.coalesce(F.exists(each, F.isnull), F.lit(False)) for each in lists))
    )


def wrong_fields() -> Column:
    """Name the fields whose values are of a wrong type, in a line that was read with values of any type."""

    def is_wrong(name: Column, value: Column) -> Column:
        return ~F.array_contains(F.element_at(_names_of_types(), name), F.schema_of_variant(value))

    lists = [
        F.when(F.exists(f"event.{each.name}", F.isnull), F.lit(each.name))
        for each in LINE_SCHEMA
        if isinstance(each.dataType, ArrayType)
    ]
    wrong = F.map_keys(F.map_filter("closer.event", is_wrong))
    return F.array_union(F.coalesce(wrong, _no_names()), F.array_compact(F.array(*lists)))


def finding() -> Column:
    """Say what is wrong with a line by itself, the first thing of the order of Reason."""
    event, closer, wrong = F.col("event"), F.col("closer"), F.col("wrong")
    # Each of the two lets something pass behind the first value, and what one does the other does not.
    is_whole = F.json_array_length(F.concat(F.lit("["), "raw", F.lit("]"))) == 1
    is_object = closer["broken"].isNull() & closer["end"].isNotNull() & closer["event"].isNotNull() & is_whole
    missing = F.array_compact(F.array(*(F.when(event[name].isNull(), F.lit(name)) for name in REQUIRED)))
    impossible = F.array_compact(F.array(*(F.when(~is_instant(event[name]), F.lit(name)) for name in INSTANTS)))
    unknown = F.array_compact(
        F.array(
            F.when(~event["type"].isin(*(each.value for each in EventType)), F.lit("type")),
            F.when(~event["outcome"].isin(*(each.value for each in Outcome)), F.lit("outcome")),
        )
    )
    return (
        F.when(~F.col("is_text"), found(Reason.NOT_TEXT))
        .when(F.col("suspicious") & ~F.coalesce(is_object, F.lit(False)), found(Reason.NOT_JSON))
        .when(event["version"] != VERSION, found(Reason.UNKNOWN_VERSION, names("version")))
        .when((F.size(wrong) > 0) | F.col("broken").isNotNull(), found(Reason.WRONG_FIELD, wrong))
        .when(F.size(missing) > 0, found(Reason.MISSING_FIELD, missing))
        .when(F.size(unknown) > 0, found(Reason.UNKNOWN_TYPE, unknown))
        .when(F.size(impossible) > 0, found(Reason.IMPOSSIBLE_TIME, impossible))
    )


def found(reason: Reason, fields: Column | None = None) -> Column:
    """Give what `finding` gives: a struct of `reason` and `fields`."""
    return F.struct(F.lit(reason.value).alias("reason"), (_no_names() if fields is None else fields).alias("fields"))


def names(*names: str) -> Column:
    """Give a list of names."""
    return F.array(*map(F.lit, names))


def is_instant(milliseconds: Column) -> Column:
    """Whether these milliseconds are in the years that Python and Spark both know; null is no objection."""
    return F.coalesce(milliseconds.between(0, LAST_INSTANT_MS), F.lit(True))


def _wrapped_as(schema: DataType) -> Column:
    """Read a line as the field of an object, with another field behind it: it is missing if the line has an end."""
    wrapper = StructType(
        [StructField("event", schema), StructField("end", LongType()), StructField("broken", StringType())]
    )
    return F.from_json(F.concat(F.lit('{"event":'), "raw", F.lit(',"end":1}')), wrapper, dict(_OPTIONS))


def _names_of_types() -> Column:
    """Give what Spark may call the type of each field's value."""
    return F.create_map(
        *(
            part
            for each in LINE_SCHEMA
            for part in (F.lit(each.name), F.array(*map(F.lit, (*_TYPES[type(each.dataType)], _NULL))))
        )
    )


def _no_names() -> Column:
    return F.array().cast("array<string>")
