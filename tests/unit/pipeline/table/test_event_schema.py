"""What Spark knows of an event is what `AuditEvent` says of it."""

from __future__ import annotations

from dataclasses import MISSING, fields

import pytest
from pyspark.sql.types import ArrayType, BooleanType, LongType, StringType, TimestampType

from kafka_dt.audit.event import AuditEvent, notes
from kafka_dt.pipeline.table.schema import EVENT_SCHEMA, LINE_SCHEMA, REQUIRED


def test_the_columns_are_the_fields_in_their_order_the_day_and_the_cluster() -> None:
    assert EVENT_SCHEMA.names == [*(each.name for each in fields(AuditEvent)), "date", "cluster_id"]
    assert LINE_SCHEMA.names == EVENT_SCHEMA.names[:-2]


def test_instants_are_timestamps_and_only_these() -> None:
    found = {each.name for each in EVENT_SCHEMA if isinstance(each.dataType, TimestampType)}
    assert found == {name for name, note in notes().items() if note.timestamp}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("version", LongType()),
        ("principal", StringType()),
        ("type", StringType()),
        ("by_token", BooleanType()),
        ("client_port", LongType()),
        ("renewers", ArrayType(StringType())),
        ("time", LongType()),
    ],
)
def test_types_are_those_of_the_fields(name: str, wanted: object) -> None:
    assert LINE_SCHEMA[name].dataType == wanted


def test_every_event_has_what_has_no_default_and_its_version() -> None:
    without = {each.name for each in fields(AuditEvent) if each.default is MISSING}
    assert set(REQUIRED) == without | {"version"}
