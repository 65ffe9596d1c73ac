"""The Sigma rules of ops/sigma: valid, and run on audit events by a real backend (SQLite)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, fields
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from kafka_dt.audit import AuditEvent, EventType, Outcome
from tests.interop.conftest import unavailable
from tests.support.docs.documents import ROOT
from tests.support.sigma import Sigma, SigmaMissing

FILES = sorted((ROOT / "ops" / "sigma").glob("*.yml"))
GUESSING = "guessed_token_ids"
BEGIN_MS = 1_795_000_000_000
MINUTE_MS = 60_000
ALLOWS = "ALLOW CreateTokens of LITERAL User:'User:alice' to User:mallory from *"

_number = count()


def event(type_: EventType, reason: str | None = None, minute: int = 0, **facts: Any) -> AuditEvent:
    number = next(_number)
    outcome = Outcome.OK if reason is None else Outcome.REFUSED
    at = BEGIN_MS + minute * MINUTE_MS
    common = {"client_address": "10.0.0.7"}
    return AuditEvent(
        id=f"e-{number}", time=at, node="n-0", type=type_, outcome=outcome, reason=reason, **common | facts
    )


def guesses(address: str, ids: int, minutes: int) -> list[AuditEvent]:
    """Logins with so many unknown ids, each tried twice."""
    tried = [f"guess-{address}-{number % ids}" for number in range(2 * ids)]
    return [
        event(EventType.LOGIN, "unknown_token", minutes * place, token_id=token, client_address=address)
        for place, token in enumerate(tried)
    ]


CREATED = EventType.TOKEN_CREATED
SUSPICIOUS = {
    "token_hmac_in_wrong_hands": [
        event(EventType.TOKEN_RENEWED, "DELEGATION_TOKEN_OWNER_MISMATCH", token_id="t", owner="User:alice"),
        event(EventType.TOKEN_EXPIRED, "DELEGATION_TOKEN_OWNER_MISMATCH", token_id="t", owner="User:alice"),
    ],
    "acl_for_tokens_of_others": [event(EventType.ACL_CREATED, acl=ALLOWS)],
    "token_for_another_owner": [event(CREATED, owner="User:alice", requester="User:mallory")],
    "token_refused_for_another_owner": [event(CREATED, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", owner="User:alice")],
    "many_tokens_described": [event(EventType.TOKENS_DESCRIBED, count=100)],
    "secret_keys_changed": [event(EventType.KEYS_CHANGED, keys=("a", "b"))],
    GUESSING: guesses("203.0.113.9", ids=5, minutes=2),
}
HONEST = [
    event(EventType.TOKEN_RENEWED, token_id="t", owner="User:alice"),
    event(EventType.TOKEN_RENEWED, "DELEGATION_TOKEN_EXPIRED", token_id="t", owner="User:alice"),
    event(EventType.TOKEN_EXPIRED, "DELEGATION_TOKEN_NOT_FOUND"),
    event(EventType.ACL_CREATED, acl="ALLOW Read of LITERAL Topic:'CreateTokens of' to User:alice from *"),
    event(EventType.ACL_CREATED, "CLUSTER_AUTHORIZATION_FAILED", acl=ALLOWS),
    event(EventType.ACL_DELETED, acl=ALLOWS),
    event(CREATED, owner="User:alice", requester="User:alice"),
    event(CREATED, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", owner="User:alice", requester="User:alice"),
    event(EventType.TOKENS_DESCRIBED, count=99),
    event(EventType.TOKENS_DESCRIBED, "CLUSTER_AUTHORIZATION_FAILED"),
    event(EventType.LOGIN, "wrong_credentials", token_id="t"),
    event(EventType.LOGIN, token_id="t", owner="User:alice"),
    *guesses("10.0.0.1", ids=4, minutes=1),
    *guesses("10.0.0.2", ids=5, minutes=20),
]
"""Of everyday work, and close to what the rules look for."""


@pytest.fixture(scope="module")
def logs() -> Iterator[sqlite3.Connection]:
    """All events, as a SIEM has them."""
    names = [each.name for each in fields(AuditEvent)]
    with closing(sqlite3.connect(":memory:")) as database:
        database.row_factory = sqlite3.Row
        database.execute(f"CREATE TABLE logs ({', '.join(map(repr, names))}, timestamp)")
        for each in [*HONEST, *(one for found in SUSPICIOUS.values() for one in found)]:
            values = [" ".join(value) if isinstance(value, tuple) else value for value in asdict(each).values()]
            at = datetime.fromtimestamp(each.time / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
            database.execute(f"INSERT INTO logs VALUES ({', '.join('?' * (len(names) + 1))})", [*values, at])  # noqa: S608
        yield database


@pytest.fixture(scope="module")
def rules() -> Mapping[str, Mapping[str, Any]]:
    """What pySigma reads in each file, by the file's name."""
    try:
        sigma = Sigma.fetched()
    except SigmaMissing as missing:
        unavailable(missing)
    return {path.stem: sigma.read(path) for path in FILES}


def test_each_rule_has_events() -> None:
    assert {path.stem for path in FILES} == SUSPICIOUS.keys()


def test_rules_are_valid(rules: Mapping[str, Mapping[str, Any]]) -> None:
    assert [issue for rule in rules.values() for issue in rule["issues"]] == []


def test_rules_name_fields_of_events_alone(rules: Mapping[str, Mapping[str, Any]]) -> None:
    known = {each.name for each in fields(AuditEvent)}
    for rule in rules.values():
        assert rule["fields"]
        assert set(rule["fields"]) <= known


@pytest.mark.parametrize("name", sorted(SUSPICIOUS.keys() - {GUESSING}))
def test_a_rule_finds_its_events_and_no_others(
    name: str, rules: Mapping[str, Mapping[str, Any]], logs: sqlite3.Connection
) -> None:
    (query,) = rules[name]["queries"]
    assert {row["id"] for row in logs.execute(query)} == {each.id for each in SUSPICIOUS[name]}


def test_guessing_is_many_ids_of_one_address_within_an_hour(
    rules: Mapping[str, Mapping[str, Any]], logs: sqlite3.Connection
) -> None:
    (query,) = rules[GUESSING]["queries"]
    assert {json.loads(row["group_keys"])["client_address"] for row in logs.execute(query)} == {"203.0.113.9"}
