from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from kafka_dt.audit import AuditEvent, EventType, Outcome, RefusalReason
from kafka_dt.pipeline.generator.incidents import Planted
from kafka_dt.pipeline.generator.scenario import SECOND_MS, utc
from kafka_dt.pipeline.generator.truth import IncidentKind, Strength
from tests.unit.pipeline.generator.conftest import SMALL, Played, play

Mark = tuple[object, ...]


def _mark(event: AuditEvent) -> Mark:
    return event.time, event.type, event.connection, event.client_port, event.token_id


def _events_of(played: Played, planted: Planted) -> list[AuditEvent]:
    connections = {draft.connection for draft in planted.drafts}
    return [event for event in played.events if event.connection in connections]


def _of(played: Played, kind: IncidentKind) -> list[tuple[Planted, list[AuditEvent]]]:
    found = [(each, _events_of(played, each)) for each in played.planted if each.incident.kind is kind]
    assert found
    return found


def test_every_incident_is_in_the_events(played: Played) -> None:
    for each in played.planted:
        events, incident = _events_of(played, each), each.incident
        assert len(events) == incident.events > 0
        assert (utc(events[0].time), utc(events[-1].time)) == (incident.begin, incident.end)
        if incident.address:
            assert {event.client_address for event in events} == {incident.address}
        else:
            assert incident.token_id in {event.token_id for event in events}


def test_incidents_change_nothing_else(played: Played) -> None:
    planted = {_mark(event) for each in played.planted for event in _events_of(played, each)}
    without = play(replace(SMALL, incidents=0)).events
    assert {_mark(event) for event in played.events} - planted == {_mark(event) for event in without}


def test_there_are_as_many_of_each_kind_as_asked_for_and_of_different_strengths(played: Played) -> None:
    assert Counter(each.incident.kind for each in played.planted) == dict.fromkeys(IncidentKind, SMALL.incidents)
    assert {each.incident.strength for each in played.planted} == set(Strength)


def test_no_token_and_no_address_is_taken_twice(played: Played) -> None:
    subjects = [each.incident.subject for each in played.planted]
    assert len(set(subjects)) == len(subjects)


def test_before_an_incident_there_is_a_history(played: Played) -> None:
    for each, events in _of(played, IncidentKind.STOLEN_TOKEN):
        before = [
            event for event in played.events if event.token_id == each.incident.token_id and event.time < events[0].time
        ]
        assert before


def test_a_stolen_token_works_where_or_with_what_it_never_was_used(played: Played) -> None:
    for each, events in _of(played, IncidentKind.STOLEN_TOKEN):
        assert {event.outcome for event in events} == {Outcome.OK}
        connections = {event.connection for event in events}
        usual = {
            _habit(event)
            for event in played.events
            if event.token_id == each.incident.token_id
            and event.type is EventType.LOGIN
            and event.connection not in connections
        }
        assert {_habit(event) for event in events}.isdisjoint(usual)


def _habit(event: AuditEvent) -> tuple[str, str | None, str | None]:
    subnet = (event.client_address or "").rpartition(".")[0]
    return subnet, event.client_software, event.client_id if event.client_software is None else None


def test_use_after_a_revocation_is_refused_minutes_after_it(played: Played) -> None:
    for each, events in _of(played, IncidentKind.USE_AFTER_REVOCATION):
        (ended,) = (
            event
            for event in played.events
            if event.type is EventType.TOKEN_EXPIRED and event.token_id == each.incident.token_id
        )
        assert events[0].time > ended.time + 10 * 60 * SECOND_MS
        assert {event.reason for event in events} == {RefusalReason.UNKNOWN_TOKEN}


def test_a_burst_tries_many_ids_that_nobody_made(played: Played) -> None:
    made = {event.token_id for event in played.events if event.type is EventType.TOKEN_CREATED}
    for _, events in _of(played, IncidentKind.UNKNOWN_ID_BURST):
        ids = {event.token_id for event in events}
        assert len(ids) == len(events) >= 8
        assert ids.isdisjoint(made)


def test_a_foreign_renewal_is_by_somebody_who_may_and_never_did(played: Played) -> None:
    for each, events in _of(played, IncidentKind.FOREIGN_RENEWAL):
        incident = each.incident
        renewals = [event for event in events if event.type is EventType.TOKEN_RENEWED]
        (who,) = {event.principal for event in renewals}
        before = [
            event.principal
            for event in played.events
            if event.type is EventType.TOKEN_RENEWED and event.owner == incident.owner and event.time < events[0].time
        ]
        assert before
        assert who not in before


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_what_is_nobodys_attack_ends_within_seconds_of_a_revocation(seed: int) -> None:
    played = play(replace(SMALL, seed=seed, incidents=0))
    ended = {event.token_id: event.time for event in played.events if event.type is EventType.TOKEN_EXPIRED}
    for event in played.events:
        if event.type is EventType.LOGIN and event.token_id in ended:
            assert event.time < ended[event.token_id] + 30 * SECOND_MS


def test_what_is_nobodys_attack_tries_at_most_two_unknown_ids_a_day_from_an_address() -> None:
    played = play(replace(SMALL, incidents=0))
    known = {event.token_id for event in played.events if event.outcome is Outcome.OK}
    tried: dict[tuple[str | None, int], set[str | None]] = {}
    for event in played.events:
        if event.reason == RefusalReason.UNKNOWN_TOKEN and event.token_id not in known:
            day = (event.time - SMALL.start_ms) // (24 * 3600 * SECOND_MS)
            tried.setdefault((event.client_address, day), set()).add(event.token_id)
    assert tried
    assert max(map(len, tried.values())) <= 2
