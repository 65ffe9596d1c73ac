"""What the watch keeps survives a restart, is bounded, and is forgotten."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kafka_dt.audit import EventType
from kafka_dt.pipeline.cases import finding_id
from kafka_dt.pipeline.errors import TableBroken
from kafka_dt.pipeline.watch import state as of_state
from kafka_dt.pipeline.watch.habits import HISTORY
from kafka_dt.pipeline.watch.rules import judge
from kafka_dt.pipeline.watch.state import KEPT, State
from tests.unit.pipeline.watch.days import (
    CLUSTER,
    ELSEWHERE,
    JAVA,
    JOBS,
    NOON,
    ROTATION,
    by_mechanism,
    company,
    granted,
    guesses,
    late_try,
    login,
    row,
    thief,
)


def test_a_state_that_was_saved_is_the_same(tmp_path: Path) -> None:
    state = State(series="s", batch=7)
    judge([ROTATION, granted(), thief(), *guesses(4)], company(), state)
    state.cases = dict.fromkeys(state.findings, "case-x")
    state.save(tmp_path / "watch.json")
    again = State.of(tmp_path / "watch.json")
    state.homes = {}
    assert again == state
    assert [each.kind for each in judge(guesses(5)[4:], company(), again)] == ["unknown_id_burst"]


def test_without_a_file_nothing_was_seen_and_another_file_is_refused(tmp_path: Path) -> None:
    assert State.of(tmp_path / "watch.json") == State()
    (tmp_path / "watch.json").write_text('{"version": 3}')
    with pytest.raises(TableBroken, match=r"watch\.json"):
        State.of(tmp_path / "watch.json")


def test_what_is_old_is_forgotten() -> None:
    state = State()
    judge([granted(), thief(), *guesses(5), *late_try()[:1]], company(), state)
    state.forget(NOON + KEPT - timedelta(hours=1))
    kept = (state.findings, state.tallies, state.grants, state.homes, state.revoked)
    assert [len(each) for each in kept] == [2, 2, 1, 1, 1]
    state.forget(NOON + KEPT + timedelta(hours=1))
    assert not any((state.findings, state.tallies, state.grants, state.homes, state.revoked))
    assert state.strange  # the table still has it
    state.forget(NOON + HISTORY + timedelta(days=2))
    assert state.strange == {}


def test_what_is_strange_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_state, "MOST_STRANGE", 3)
    state = State()
    for number, name in enumerate(("tool", "ant", "probe", "perl")):
        judge([thief(client=name, software=JAVA, minutes=number)], company(), state)
    state.forget(NOON)
    assert set(state.strange) == {
        ("User:etl", "networks", ELSEWHERE),
        ("User:etl", "clients", "probe"),
        ("User:etl", "clients", "perl"),
    }


def test_a_state_of_an_earlier_release_is_read_without_its_counts(tmp_path: Path) -> None:
    state = State(series="s", batch=7)
    judge([ROTATION, granted(), thief(), *guesses(4)], company(), state)
    state.save(tmp_path / "watch.json")
    document = json.loads((tmp_path / "watch.json").read_text())
    counted = {"first_seen": NOON.isoformat(), "last_seen": NOON.isoformat(), "events": 1, "items": {"12 x0": 1}}
    day = f"{NOON:%Y-%m-%d}"
    earlier = [["unknown_id_burst", "198.51.100.9", day, {**counted, "addresses": {}, "programs": {}}]]
    (tmp_path / "watch.json").write_text(json.dumps({**document, "version": 1, "tallies": earlier}))
    again = State.of(tmp_path / "watch.json")
    assert again == replace(state, tallies={}, homes={})


def test_a_client_that_tries_very_many_ids_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_state, "MOST_ITEMS", 50)
    state = State()
    (found,) = judge(guesses(500, every=0.01), company(), state)
    (tally,) = state.tallies.values()
    assert (len(tally.items), found.events) == (50, 500)


def test_of_ids_that_a_client_makes_up_few_bytes_are_kept_and_no_other_guesser_is_hidden(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(of_state, "MOST_ITEMS_OF_KIND", 100)
    long_ids = [
        replace(guess, token_id=f"{guess.token_id}-{number}".rjust(500, "x"))
        for number in range(10)
        for guess in guesses(30, every=0.01, address=f"203.0.113.{number}")
    ]
    state = State()
    judge([*long_ids, *guesses(4)], company(), state)
    state.forget(NOON)
    assert len(state.findings) == 10
    assert sum(len(each.items) for each in state.tallies.values()) <= 100
    state.save(tmp_path / "watch.json")
    assert (tmp_path / "watch.json").stat().st_size < 60_000
    again = State.of(tmp_path / "watch.json")
    (found,) = judge(guesses(5)[4:], company(), again)
    assert found.subject == "198.51.100.9"
    (found,) = judge(guesses(1, token_id="new", address="203.0.113.1"), company(), again)
    assert found.events == 31


def test_a_client_that_is_not_logged_in_hides_nothing_that_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_state, "MOST_TALLIES", 10)
    state = State()
    refused = [
        row(EventType.TOKEN_CREATED, reason="DELEGATION_TOKEN_AUTHORIZATION_FAILED", principal="User:anna", owner=each)
        for each in JOBS
    ]
    judge(refused[:1], company(), state)
    judge([guess for n in range(50) for guess in guesses(2, address=f"2001:db8::{n:x}")], company(), state)
    state.forget(NOON)
    (found,) = judge(refused[1:], company(), state)
    assert (found.kind, found.subject) == ("refused_changes", "User:anna")


def test_a_client_that_tries_from_very_many_addresses_takes_little_memory_and_hides_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(of_state, "MOST_TALLIES", 10)
    state = State()
    judge(guesses(4), company(), state)
    judge([guess for n in range(50) for guess in guesses(1, address=f"2001:db8::{n:x}")], company(), state)
    state.forget(NOON)
    assert len(state.tallies) == 10
    (found,) = judge(guesses(5)[4:], company(), state)
    assert found.subject == "198.51.100.9"


def test_guesses_from_very_many_addresses_displace_no_other_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_state, "MOST_FINDINGS", 10)
    state = State()
    judge([guess for n in range(30) for guess in guesses(5, address=f"2001:db8::{n:x}")], company(), state)
    judge([thief(minutes=30), by_mechanism("User:etl", "PLAIN", software="kcat")], company(), state)
    state.forget(NOON)
    kinds = Counter(each.kind for each in state.findings.values())
    assert kinds == {"unknown_id_burst": 10, "stolen_token": 1, "new_mechanism": 1}


def test_of_too_many_findings_of_a_sign_those_that_nobody_was_told_are_kept_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(of_state, "MOST_FINDINGS", 3)
    state = State()
    for n in range(3):
        judge(guesses(5, address=f"198.51.100.{n}"), company(), state)
    told = set(state.findings)
    (new,) = judge(guesses(5, address="198.51.100.99"), company(), state)
    state.forget(NOON, untold=set(state.findings) - told)
    assert len(state.findings) == 3
    assert finding_id(new) in state.findings


def test_what_a_finding_was_about_does_not_become_usual() -> None:
    state = State()
    judge([thief()], company(), state)
    etl = company().owners["User:etl"]
    learned = replace(etl, networks=etl.networks | {ELSEWHERE}, programs=etl.programs | {"kcat"})
    later = company(owners={**company().owners, "User:etl": learned}, tokens={"t-etl": CLUSTER, "t-next": CLUSTER})
    (found,) = judge([thief("t-next", wide="203.0.0.0/16", address="203.0.113.4")], later, state)
    assert (found.kind, found.subject) == ("stolen_token", "t-next")
    assert judge([login("User:etl", "t-next", wide="203.0.0.0/16")], later, State()) == []
