"""A token that may still live has one finding in a report, whatever signs tell of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest
from pyspark.sql.types import (
    ArrayType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafka_dt.pipeline.report.signs import SIGNS
from kafka_dt.pipeline.report.signs.finding import Finding, collected
from kafka_dt.pipeline.report.told_once import told_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Py4J leaves its sockets to the garbage collector."""
NOON: Final = datetime(2026, 11, 3, 12, tzinfo=UTC)
_EVIDENCE: Final = ArrayType(StructType([StructField("label", StringType()), StructField("text", StringType())]))
_SCHEMA: Final = StructType(
    [
        *(StructField(name, StringType()) for name in ("kind", "severity", "subject_type", "subject")),
        *(StructField(name, StringType()) for name in ("token_id", "owner", "address")),
        StructField("first_seen", TimestampType()),
        StructField("last_seen", TimestampType()),
        StructField("events", LongType()),
        StructField("evidence", _EVIDENCE),
    ]
)


def finding(
    kind: str, severity: str, token_id: str | None, fact: str, *, hours: float = 0, events: int = 1
) -> tuple[object, ...]:
    at = NOON + timedelta(hours=hours)
    subject = token_id or "User:etl"
    subject_type = "principal" if token_id is None else "token"
    who = (token_id, "User:etl", "192.0.2.1")
    return kind, severity, subject_type, subject, *who, at, at + timedelta(hours=1), events, [("what", fact)]


def told(spark: SparkSession, *rows: tuple[object, ...]) -> tuple[Finding, ...]:
    frame = spark.createDataFrame(list(rows), _SCHEMA)
    return tuple(sorted(collected(told_once(frame, SIGNS)), key=lambda each: (each.subject, each.kind)))


def test_the_gravest_of_several_stays_and_tells_what_the_others_say(spark: SparkSession) -> None:
    (only,) = told(
        spark,
        finding("rare_library", "medium", "t-1", "a tool", events=9),
        finding("rare_zone", "high", "t-1", "a zone", hours=2, events=3),
        finding("stolen_token", "medium", "t-1", "elsewhere", hours=1, events=4),
    )
    assert (only.kind, only.severity) == ("rare_zone", "high")
    assert (only.first_seen, only.last_seen, only.events) == (NOON, NOON + timedelta(hours=3), 9)
    assert [(each.label, each.text) for each in only.evidence] == [
        ("what", "a zone"),
        (
            "also",
            "Used by a stranger: what elsewhere; Used with a library that is rare for the owner: what a tool",
        ),
    ]


def test_of_equals_the_first_sign_of_the_page_stays(spark: SparkSession) -> None:
    rows = [finding(kind, "medium", "t-1", kind) for kind in ("two_places", "rare_zone", "stolen_token")]
    (only,) = told(spark, *rows)
    assert only.kind == "stolen_token"


def test_each_token_has_its_own_and_a_single_one_is_as_it_was(spark: SparkSession) -> None:
    rows = [finding("stolen_token", "high", each, "elsewhere") for each in ("t-1", "t-2")]
    assert [(each.subject, len(each.evidence)) for each in told(spark, *rows)] == [("t-1", 1), ("t-2", 1)]


def test_signs_of_tokens_that_have_ended_and_of_principals_keep_theirs(spark: SparkSession) -> None:
    found = told(
        spark,
        finding("stolen_token", "high", "t-1", "elsewhere"),
        finding("use_after_revocation", "medium", "t-1", "tried", hours=5),
        finding("strange_login", "medium", None, "elsewhere"),
        finding("refused_changes", "medium", None, "tried"),
    )
    assert [each.kind for each in found] == ["refused_changes", "strange_login", "stolen_token", "use_after_revocation"]
