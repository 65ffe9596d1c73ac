"""Lines to events: each line of text becomes a row of the table, or a row in quarantine with the reason.

    checked = check_lines(lines, LineLimits(latest_ms=..., earliest_ms=...))
    good_events(checked)          # as EVENT_SCHEMA
    quarantined_lines(checked)    # as QUARANTINE_SCHEMA

A line is good if it is one JSON object with the fields of `AuditEvent`, each of its own type, and with those that every
event has; null is as good as nothing. Names that are not known are left out: a new field does not change the version.

LineLimits: a name that is there twice counts as it is read last, and is quarantined if one of its values is wrong; of a
longer line quarantine has the first RAW_LENGTH characters.

Source: kafka_dt/audit/event.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from kafka_dt.pipeline.ingest.checks import (
    as_any_values,
    as_event,
    finding,
    is_instant,
    is_suspicious,
    out_of_limits,
    wrong_fields,
)
from kafka_dt.pipeline.table.schema import DATE, EVENT_SCHEMA, INSTANTS, LINE_SCHEMA, QUARANTINE_SCHEMA, day, instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LINE: Final = "line"
SOURCE: Final = ("source", "source_partition", "source_offset")
"""The columns of lines: LINE, bytes, and where it is from."""
RAW_LENGTH: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class LineLimits:
    """Between which instants events are good; milliseconds since 1970."""

    latest_ms: int
    """Beyond it they are from the future."""
    earliest_ms: int
    """Before it they are late; 0 = no event is."""


def check_lines(lines: DataFrame, limits: LineLimits) -> DataFrame:
    """Read lines.

    Args:
        lines: with the columns LINE and SOURCE.
        limits: what is too late and too early.

    Returns:
        SOURCE; `raw`; `event`, whose fields are LINE_SCHEMA's; `reason`, null if it is good; and `fields`.
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
    columns = {
        **{name: F.col(name) for name in ("reason", "fields", *SOURCE)},
        "time": instant(F.when(is_instant("event.time"), F.col("event.time"))),
        "ingest_time": instant(F.lit(now_ms).cast("bigint")),
        "raw": F.substring("raw", 1, RAW_LENGTH),
    }
    bad = checked.where(F.col("reason").isNotNull())
    return bad.select(*(columns[each.name].cast(each.dataType).alias(each.name) for each in QUARANTINE_SCHEMA))
