"""The schema of audit events: what readers hold on to."""

from __future__ import annotations

from dataclasses import fields
from typing import get_type_hints

from kafka_dt.audit import VERSION, AuditEvent, EventType, Outcome, RefusalReason
from kafka_dt.audit.event import notes
from kafka_dt.audit.recorder import Facts, Origin

FIELDS = [
    *("version", "id", "time", "node", "type", "outcome", "reason"),
    *("listener", "mechanism", "principal", "by_token", "session_token_id"),
    *("client_id", "client_software", "client_software_version", "client_address", "client_port", "connection"),
    *("token_id", "owner", "requester", "renewers", "issue_time", "expiry_time", "max_time", "key_id"),
    *("count", "acl", "user", "keys", "entries", "limit"),
]


def test_the_fields_and_their_order_are_the_schema() -> None:
    assert [each.name for each in fields(AuditEvent)] == FIELDS
    assert VERSION == 1


def test_the_words_of_the_schema_stay() -> None:
    assert {str(kind) for kind in EventType} == {
        *("login", "token_created", "token_renewed", "token_expired", "token_removed", "tokens_described"),
        *("acl_created", "acl_deleted", "scram_user_changed", "keys_changed"),
    }
    assert {str(outcome) for outcome in Outcome} == {"ok", "refused"}
    assert {str(reason) for reason in RefusalReason} == {
        *("unknown_user", "unknown_token", "expired_token", "wrong_credentials"),
        *("unsupported_mechanism", "not_allowed", "broken_exchange", "unavailable"),
    }


def test_every_field_says_what_it_holds() -> None:
    assert list(notes()) == FIELDS
    assert all(note.doc.endswith(".") for note in notes().values())
    assert {name for name, note in notes().items() if note.timestamp} == {
        *("time", "issue_time", "expiry_time", "max_time"),
    }


def test_origin_and_facts_are_the_rest_of_an_event() -> None:
    own = {"version", "id", "time", "node", "type", "outcome"}
    origin = set(get_type_hints(Origin))
    facts = set(get_type_hints(Facts))
    assert own | origin | facts == set(FIELDS)
    assert not own & origin
    assert not origin & facts
    hints = get_type_hints(AuditEvent)
    assert {name: hint for name, hint in hints.items() if name in facts} == get_type_hints(Facts)
    assert {name: hint for name, hint in hints.items() if name in origin} == get_type_hints(Origin)
