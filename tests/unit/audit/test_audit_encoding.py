"""Events as lines: whatever is in them, a line is a line, and JSON says the same again."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_dt.audit import AuditEvent, EventType, Outcome
from kafka_dt.audit.encoding import CUT, LIST_BYTES, LONGEST_CLAIM, LONGEST_LIST, LONGEST_TEXT, encode

MOST_BYTES = 768 * 1024
"""What a line takes at most, well below what a topic takes in a record."""
CLAIMS = {"client_id", "client_software", "client_software_version", "mechanism"}
INT64 = st.integers(-(2**63), 2**63 - 1)
NEEDED = {
    "id": st.text(max_size=LONGEST_CLAIM),
    "time": INT64,
    "node": st.text(max_size=LONGEST_CLAIM),
    "type": st.sampled_from(EventType),
    "outcome": st.sampled_from(Outcome),
}
# None is so long that it would be cut: a character takes up to 12 bytes in JSON.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(max_size=LONGEST_CLAIM),
    "int": INT64,
    "bool": st.booleans(),
    "tuple[str, ...]": st.lists(st.text(max_size=LIST_BYTES // 200), max_size=10).map(tuple),
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


LONG = "\N{GRINNING FACE}" * 2000
TEXTS = [each.name for each in fields(AuditEvent) if str(each.type) == "str | None"]
LISTS = ("renewers", "keys", "entries")
WHOLE = (
    EventType.TOKEN_CREATED,
    EventType.ACL_CREATED,
    EventType.ACL_DELETED,
    EventType.SCRAM_USER_CHANGED,
    EventType.KEYS_CHANGED,
)
KINDS = [(type_, outcome) for type_ in EventType for outcome in Outcome]
CUT_KINDS = [(type_, outcome) for type_, outcome in KINDS if outcome is Outcome.REFUSED or type_ not in WHOLE]


@pytest.mark.parametrize(("type_", "outcome"), CUT_KINDS)
def test_an_event_that_changes_nothing_has_its_texts_and_lists_cut(type_: EventType, outcome: Outcome) -> None:
    values = dict.fromkeys(TEXTS, LONG) | dict.fromkeys(LISTS, (LONG,) * 200)
    line = encode(event(type=type_, outcome=outcome, **values))
    assert len(line) <= MOST_BYTES
    found = json.loads(line)
    for name in TEXTS:
        assert len(found[name]) == (LONGEST_CLAIM if name in CLAIMS else LONGEST_TEXT)
        assert found[name].endswith(CUT)
    for name in LISTS:
        assert {len(each) for each in found[name]} == {LONGEST_CLAIM}
        assert len(json.dumps(found[name])) <= LIST_BYTES


@pytest.mark.parametrize(("entry", "shown"), [("r", LONGEST_LIST), ("r" * 500, 19), ("\N{GRINNING FACE}" * 500, 1)])
def test_a_renewal_repeats_no_more_of_the_renewers_than_fits(entry: str, shown: int) -> None:
    found = json.loads(encode(event(type=EventType.TOKEN_RENEWED, outcome=Outcome.OK, renewers=(entry,) * 200)))
    assert len(found["renewers"]) == shown


@pytest.mark.parametrize("type_", WHOLE)
def test_a_successful_change_is_whole_but_for_what_the_client_calls_itself(type_: EventType) -> None:
    values = dict.fromkeys(TEXTS, LONG) | {"renewers": ("User:" + "r" * 600,) * 200}
    found = json.loads(encode(event(type=type_, outcome=Outcome.OK, **values)))
    assert found["renewers"] == list(values["renewers"])
    assert {name for name in TEXTS if found[name] != LONG} == CLAIMS


def test_the_longest_acl_is_whole() -> None:
    part = "\x01" * 32_767
    found = json.loads(encode(event(type=EventType.ACL_CREATED, acl=part * 3, principal="User:admin")))
    assert found["acl"] == part * 3


@settings(deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 4000))
def test_a_line_has_a_length_that_every_topic_takes(kind: tuple[EventType, Outcome], entries: int) -> None:
    values = dict.fromkeys(TEXTS, LONG) | dict.fromkeys(LISTS, (LONG,) * entries)
    assert len(encode(event(type=kind[0], outcome=kind[1], **values))) <= MOST_BYTES + 1
