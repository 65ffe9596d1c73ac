"""Lines become events or go to quarantine, as a slow reading of them in Python says they should."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_dt.audit.encoding import encode
from kafka_dt.audit.event import EventType, Outcome
from kafka_dt.pipeline.ingest.lines import (
    LAST_INSTANT_MS,
    LINE,
    LineLimits,
    check_lines,
    good_events,
    quarantined_lines,
)
from kafka_dt.pipeline.table.schema import EVENT_SCHEMA, INSTANTS, LINE_SCHEMA, QUARANTINE_SCHEMA, REQUIRED, Reason
from tests.support.spark.audit_lines import DAY_MS, LOGIN, NOON_MS, events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LIMITS: Final = LineLimits(latest_ms=NOON_MS + DAY_MS, earliest_ms=NOON_MS - DAY_MS)
GOOD: Final[Mapping[str, Any]] = json.loads(encode(LOGIN))
_LINES_SCHEMA: Final = f"number int, {LINE} binary, source string, source_partition int, source_offset bigint"
_KNOWN: Final[Mapping[str, set[str]]] = {"type": {*EventType}, "outcome": {*Outcome}}
_TYPES: Final = {each.name: each.dataType.typeName() for each in LINE_SCHEMA}


def frame(spark: SparkSession, lines: list[bytes | None]) -> DataFrame:
    rows = [(None if line is None else bytearray(line), "topic", 0, number) for number, line in enumerate(lines)]
    return spark.createDataFrame(rows, _LINES_SCHEMA.removeprefix("number int, "))


def verdicts(spark: SparkSession, lines: list[bytes | None]) -> list[tuple[str | None, set[str]]]:
    """What each line is: a reason, None if it is good, and the fields concerned."""
    checked = check_lines(frame(spark, lines), LIMITS).select("source_offset", "reason", "fields")
    found = {row.source_offset: (row.reason, set(row.fields or ())) for row in checked.collect()}
    return [found[number] for number in range(len(lines))]


def expected(line: bytes | None) -> tuple[str | None, set[str]]:
    """The same, by Python's JSON."""
    event = _object(line)
    if isinstance(event, Reason):
        return event, set()
    version = event.get("version")
    if _is_long(version) and version != 1:
        return Reason.UNKNOWN_VERSION, {"version"}
    checks: Mapping[Reason, Callable[[], set[str]]] = {
        Reason.WRONG_FIELD: lambda: (
            {name for name in _TYPES if not _fits(event.get(name), _TYPES[name])} or _impossible(event)
        ),
        Reason.MISSING_FIELD: lambda: {name for name in REQUIRED if event.get(name) is None},
        Reason.UNKNOWN_TYPE: lambda: {name for name, known in _KNOWN.items() if event[name] not in known},
        Reason.IMPOSSIBLE_TIME: lambda: {
            name for name in INSTANTS if not 0 <= (event.get(name) or 0) <= LAST_INSTANT_MS
        },
        Reason.FROM_THE_FUTURE: lambda: {"time"} if event["time"] > LIMITS.latest_ms else set(),
        Reason.LATE: lambda: {"time"} if event["time"] < LIMITS.earliest_ms else set(),
    }
    for reason, check in checks.items():
        if found := check():
            return reason, found
    return None, set()


def _impossible(event: Mapping[str, Any]) -> set[str]:
    port = event.get("client_port")
    checks = {"id": event.get("id") == "", "client_port": port is not None and not 0 <= port <= 65_535}
    return {name for name, wrong in checks.items() if wrong}


def _object(line: bytes | None) -> Mapping[str, Any] | Reason:
    try:
        event = json.loads((line or b"").decode(), parse_constant=_no_number)
    except UnicodeDecodeError:
        return Reason.NOT_TEXT
    except ValueError:
        return Reason.NOT_JSON
    return event if isinstance(event, dict) else Reason.NOT_JSON


def _fits(value: object, type_name: str) -> bool:
    match type_name:
        case "long":
            return value is None or _is_long(value)
        case "boolean":
            return value is None or isinstance(value, bool)
        case "string":
            return value is None or isinstance(value, str)
    return value is None or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _is_long(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _no_number(name: str) -> float:
    raise ValueError(name)


def changed(**fields: object) -> bytes:
    return json.dumps({**GOOD, **fields}).encode()


def without(name: str) -> bytes:
    return json.dumps({key: value for key, value in GOOD.items() if key != name}).encode()


_LINE: Final = encode(LOGIN).rstrip()
_CASES: Final[Mapping[str, tuple[bytes | None, Reason | None]]] = {
    "as a node writes it": (_LINE, None),
    "blanks around it": (b" \t" + _LINE + b" \r", None),
    "an unknown field": (changed(colour="red"), None),
    "an unknown field, an object": (changed(more={"time": "noon", "id": 5}), None),
    "null is nothing": (changed(owner=None, count=None, renewers=None, by_token=None), None),
    "an empty list": (changed(renewers=[]), None),
    "texts that look like other JSON": (changed(client_id="5", client_software_version="3.9", user="true"), None),
    "a text with a line of numbers in it": (changed(client_id="a\n5\n{}"), None),
    "a text with quotes and braces": (changed(client_id='"}, {"id": 5'), None),
    "letters of all kinds": (changed(client_id="\u00e9\u4e16\U0001f600\u0000"), None),
    "nothing": (b"", Reason.NOT_JSON),
    "no value": (None, Reason.NOT_JSON),
    "blanks": (b"  ", Reason.NOT_JSON),
    "text": (b"so it goes", Reason.NOT_JSON),
    "half a line": (_LINE[: len(_LINE) // 2], Reason.NOT_JSON),
    "a line without its beginning": (_LINE[20:], Reason.NOT_JSON),
    "two events on a line": (_LINE + _LINE, Reason.NOT_JSON),
    "two events with a comma": (_LINE + b"," + _LINE, Reason.NOT_JSON),
    "something behind it": (_LINE + b" x", Reason.NOT_JSON),
    "a brace too many": (_LINE + b"}", Reason.NOT_JSON),
    "what would close the braces around it": (_LINE + b"} {", Reason.NOT_JSON),
    "what would be another field around it": (_LINE + b', "x": {}', Reason.NOT_JSON),
    "what would close a list": (_LINE + b"] {}", Reason.NOT_JSON),
    "a list": (b"[" + _LINE + b"]", Reason.NOT_JSON),
    "a number": (b"5", Reason.NOT_JSON),
    "null": (b"null", Reason.NOT_JSON),
    "a text of JSON": (json.dumps(_LINE.decode()).encode(), Reason.NOT_JSON),
    "single quotes": (_LINE.replace(b'"', b"'"), Reason.NOT_JSON),
    "no number": (_LINE.replace(b'"count"', b'"x"').replace(b"40022", b"NaN"), Reason.NOT_JSON),
    "a leading zero": (_LINE.replace(b"40022", b"040022"), Reason.NOT_JSON),
    "no UTF-8": (_LINE.replace(b"alice", b"\xff\xfe"), Reason.NOT_TEXT),
    "an empty object": (b"{}", Reason.MISSING_FIELD),
    "a later version": (changed(version=2, time="noon", type={"is": "another"}), Reason.UNKNOWN_VERSION),
    "a version of another type": (changed(version="1"), Reason.WRONG_FIELD),
    "a time that is text": (changed(time=str(NOON_MS)), Reason.WRONG_FIELD),
    "a time with a fraction": (changed(time=NOON_MS + 0.5), Reason.WRONG_FIELD),
    "a time of twenty digits": (changed(time=10**19), Reason.WRONG_FIELD),
    "a principal that is a number": (changed(principal=5), Reason.WRONG_FIELD),
    "a principal that is an object": (changed(principal={"name": "alice"}), Reason.WRONG_FIELD),
    "a reason that is true": (changed(reason=True), Reason.WRONG_FIELD),
    "a type that is a list": (changed(type=["login"]), Reason.WRONG_FIELD),
    "a flag that is a text": (changed(by_token="true"), Reason.WRONG_FIELD),
    "a flag that is a number": (changed(by_token=1), Reason.WRONG_FIELD),
    "renewers that are a text": (changed(renewers="User:bob"), Reason.WRONG_FIELD),
    "renewers with a number": (changed(renewers=["User:bob", 5]), Reason.WRONG_FIELD),
    "renewers with null": (changed(renewers=["User:bob", None]), Reason.WRONG_FIELD),
    "an empty id": (changed(id=""), Reason.WRONG_FIELD),
    "a negative port": (changed(client_port=-1), Reason.WRONG_FIELD),
    "a port that is too large": (changed(client_port=65_536), Reason.WRONG_FIELD),
    "the largest port": (changed(client_port=65_535), None),
    "an empty id and a negative port": (changed(id="", client_port=-1), Reason.WRONG_FIELD),
    "an unknown type": (changed(type="coffee"), Reason.UNKNOWN_TYPE),
    "an unknown outcome": (changed(outcome="perhaps"), Reason.UNKNOWN_TYPE),
    "before 1970": (changed(time=-1), Reason.IMPOSSIBLE_TIME),
    "after 9999": (changed(max_time=LAST_INSTANT_MS + 1), Reason.IMPOSSIBLE_TIME),
    "as long as there is a number": (changed(expiry_time=2**63 - 1), Reason.IMPOSSIBLE_TIME),
    "too far ahead": (changed(time=LIMITS.latest_ms + 1), Reason.FROM_THE_FUTURE),
    "just not too far ahead": (changed(time=LIMITS.latest_ms), None),
    "too late": (changed(time=LIMITS.earliest_ms - 1), Reason.LATE),
    "just not too late": (changed(time=LIMITS.earliest_ms), None),
    **{f"without {name}": (without(name), Reason.MISSING_FIELD) for name in REQUIRED},
}


@pytest.fixture(scope="module")
def seen(spark: SparkSession) -> dict[str, tuple[str | None, set[str]]]:
    """What Spark says to all of them; they are read in one job."""
    return dict(zip(_CASES, verdicts(spark, [line for line, _ in _CASES.values()]), strict=True))


@pytest.mark.parametrize("case", _CASES)
def test_a_line_is_good_or_has_a_reason(seen: dict[str, tuple[str | None, set[str]]], case: str) -> None:
    line, reason = _CASES[case]
    assert seen[case][0] == reason
    assert seen[case] == expected(line)


SCALARS: Final = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text()
VALUES: Final = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=5
)
EVENTS: Final = st.builds(
    lambda changes, gone: {key: value for key, value in {**GOOD, **changes}.items() if key not in gone},
    st.dictionaries(st.sampled_from([*_TYPES, "more"]), VALUES | st.sampled_from(list(GOOD.values())), max_size=3),
    st.sets(st.sampled_from([*_TYPES]), max_size=2),
)
WRITTEN: Final = st.builds(
    lambda event, ascii_only: json.dumps(event, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"),
    EVENTS,
    st.booleans(),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A line of which a part is gone, or into which something has got."""
    line = draw(WRITTEN)
    begin = draw(st.integers(0, len(line)))
    end = draw(st.integers(begin, min(len(line), begin + 30)))
    # No quotation mark: with one, a name could come twice, and then readers differ.
    put = draw(st.sampled_from([b"", b"}", b"{", b"]", b",", b":", b"\\", b"\xff", b"\x00", b"0", b"-", _LINE]))
    return line[:begin] + put + line[end:]


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(WRITTEN | damaged() | st.binary(max_size=40), min_size=60, max_size=120))
def test_any_line_is_read_as_python_reads_it(spark: SparkSession, lines: list[bytes]) -> None:
    lines = [line for line in lines if b"\n" not in line and not _names_come_twice(line)]
    found = verdicts(spark, list(lines))
    assert [(line, verdict) for line, verdict in zip(lines, found, strict=True) if verdict != expected(line)] == []


def _names_come_twice(line: bytes) -> bool:
    repeated = False

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal repeated
        repeated = repeated or len(dict(items)) < len(items)
        return dict(items)

    try:
        json.loads(line, object_pairs_hook=pairs)
    except ValueError:
        return False
    return repeated


def test_an_event_comes_through_with_every_field(spark: SparkSession) -> None:
    (made,) = events(1)
    (row,) = good_events(check_lines(frame(spark, [encode(made)]), LIMITS), "here").collect()
    assert row.__fields__ == EVENT_SCHEMA.names
    assert (row.id, row.by_token, row.client_port, row.renewers) == (made.id, True, 1024, ["User:bob", "User:carol"])
    # Spark hands instants over in the time zone of this machine, without saying so.
    assert row.time.astimezone(UTC) == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert (str(row.date), row.cluster_id) == ("2026-01-01", "here")
    assert row.reason is None


def test_days_are_those_of_utc_whatever_the_session_thinks(spark: SparkSession) -> None:
    last_ms = NOON_MS + DAY_MS // 2 - 1
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    try:
        lines: list[bytes | None] = [changed(time=last_ms), changed(time=last_ms + 1)]
        rows = good_events(check_lines(frame(spark, lines), LIMITS), "here").select("date").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert [str(row.date) for row in rows] == ["2026-01-01", "2026-01-02"]


def test_quarantine_keeps_the_line_and_where_it_came_from(spark: SparkSession) -> None:
    lines = [_LINE, changed(time=0), b"so it \xff goes", b"x" * 70_000]
    checked = check_lines(frame(spark, list(lines)), LIMITS)
    late, no_text, long = quarantined_lines(checked, "here", NOON_MS).orderBy("source_offset").collect()
    assert late.__fields__ == QUARANTINE_SCHEMA.names
    assert (late.reason, late.fields, late.source, late.source_partition, late.source_offset) == (
        "late",
        ["time"],
        "topic",
        0,
        1,
    )
    assert (late.raw.encode(), late.cluster_id) == (lines[1], "here")
    assert late.time.astimezone(UTC) == datetime(1970, 1, 1, tzinfo=UTC)
    assert late.ingest_time.astimezone(UTC) == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert (no_text.reason, no_text.raw, no_text.time) == ("not_text", "so it \N{REPLACEMENT CHARACTER} goes", None)
    assert (long.reason, len(long.raw)) == ("not_json", 65_536)
