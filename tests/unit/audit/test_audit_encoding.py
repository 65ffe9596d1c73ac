"""Events as lines: whatever is in them, a line is a line, and JSON says the same again."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt.audit import AuditEvent, EventType, Outcome
from kafka_dt.audit.encoding import CUT, LONG_LINE_BYTES, LONGEST_LIST, LONGEST_TEXT, encode

MOST_BYTES = 768 * 1024
"""What a line takes at most, well below what a topic takes in a record."""
INT64 = st.integers(-(2**63), 2**63 - 1)
NEEDED = {
    "id": st.text(),
    "time": INT64,
    "node": st.text(),
    "type": st.sampled_from(EventType),
    "outcome": st.sampled_from(Outcome),
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(),
    "int": INT64,
    "bool": st.booleans(),
    "tuple[str, ...]": st.lists(st.text()).map(tuple),
}
OPTIONAL = {
    each.name: VALUES[str(each.type).removesuffix(" | None")]
    for each in fields(AuditEvent)
    if each.name not in NEEDED and each.name != "version"
}
EVENTS = st.fixed_dictionaries(NEEDED, optional=OPTIONAL)


def event(**values: Any) -> AuditEvent:
    known: dict[str, Any] = {"id": "a-1", "time": 1, "node": "n-0", "type": EventType.LOGIN, "outcome": Outcome.OK}
    return AuditEvent(**(known | values))


@settings(deadline=None)
@given(EVENTS)
def test_json_says_the_same_again_without_what_is_none(values: dict[str, Any]) -> None:
    line = encode(AuditEvent(**values))
    expected = {"version": 1} | {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }
    assert json.loads(line) == expected


@settings(deadline=None)
@given(EVENTS)
def test_a_line_is_ascii_and_ends_where_it_ends(values: dict[str, Any]) -> None:
    line = encode(AuditEvent(**values))
    assert line.endswith(b"\n")
    assert len(line.splitlines()) == 1
    assert line.isascii()


def test_keys_are_in_the_order_of_the_schema() -> None:
    line = encode(event(owner="User:alice", listener="SASL", renewers=()))
    assert list(json.loads(line)) == [
        "version",
        "id",
        "time",
        "node",
        "type",
        "outcome",
        "listener",
        "owner",
        "renewers",
    ]


def test_half_a_surrogate_pair_is_no_reason_to_lose_an_event() -> None:
    assert json.loads(encode(event(client_id="\ud800")))["client_id"] == "\ud800"


def test_what_is_long_stays_whole_as_long_as_the_line_is_not() -> None:
    name = "n" * (LONG_LINE_BYTES // 2)
    assert json.loads(encode(event(principal=name)))["principal"] == name


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(0, 200))
def test_a_line_has_a_length_that_every_topic_takes(texts: int, entries: int) -> None:
    long = "\N{GRINNING FACE}" * 2000
    names = [each.name for each in fields(AuditEvent) if str(each.type) == "str | None"][:texts]
    line = encode(event(renewers=(long,) * entries, keys=(long,) * entries, **dict.fromkeys(names, long)))
    assert len(line) <= MOST_BYTES
    found = json.loads(line)
    assert len(found["renewers"]) == min(entries, LONGEST_LIST)
    for name in names:
        assert len(found[name]) == LONGEST_TEXT
        assert found[name].endswith(CUT)
