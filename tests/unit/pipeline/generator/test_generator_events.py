from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise

from kafka_dt.audit import AuditEvent, EventType, Outcome, RefusalReason
from kafka_dt.audit.encoding import encode
from kafka_dt.pipeline.generator import parts
from kafka_dt.pipeline.generator.incidents import plant
from kafka_dt.pipeline.generator.scenario import DAY_MS, HOUR_MS, MAX_LIFE_MS
from kafka_dt.pipeline.generator.workloads import Workloads
from tests.unit.pipeline.generator.conftest import SMALL, Played, play


def test_every_event_is_one_that_the_schema_knows(played: Played) -> None:
    for event in played.events:
        fields = json.loads(encode(event))
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        read = AuditEvent(**{**fields, **lists})
        assert replace(read, type=EventType(read.type), outcome=Outcome(read.outcome)) == event


def test_what_is_refused_has_a_reason_and_nothing_else_has(played: Played) -> None:
    for event in played.events:
        assert (event.reason is not None) == (event.outcome is Outcome.REFUSED)
        if event.type is EventType.LOGIN and event.reason is not None:
            RefusalReason(event.reason)


def test_a_month_has_every_type_of_event_and_most_reasons_of_a_refusal(played: Played) -> None:
    assert {event.type for event in played.events} == set(EventType)
    reasons = {event.reason for event in played.events} - {None}
    assert {RefusalReason.UNKNOWN_TOKEN, RefusalReason.WRONG_CREDENTIALS} <= reasons


def test_ids_are_unique(played: Played) -> None:
    assert len({event.id for event in played.events}) == len(played.events)


def test_a_worker_writes_in_the_order_of_time_and_counts(played: Played) -> None:
    for events in played.by_worker:
        assert len({event.node for event in events}) == 1
        assert all(before.time <= after.time for before, after in pairwise(events))
        assert [int(event.id.partition("-")[2]) for event in events] == list(range(1, len(events) + 1))


def test_the_number_of_events_is_about_what_was_asked_for(played: Played) -> None:
    assert 0.8 < len(played.events) / SMALL.events < 1.3


def test_events_are_within_the_days_asked_for(played: Played) -> None:
    # A login is some milliseconds before what it was made for, and a retry after what it retries.
    for event in played.events:
        assert SMALL.start_ms - 1000 < event.time < SMALL.end_ms + HOUR_MS


def test_the_same_seed_makes_the_same_events(played: Played) -> None:
    assert play(SMALL).by_worker == played.by_worker


def test_another_seed_makes_others(played: Played) -> None:
    assert {event.token_id for event in play(replace(SMALL, seed=8)).events}.isdisjoint(
        {event.token_id for event in played.events if event.token_id}
    )


def test_parts_do_not_depend_on_the_order_in_which_they_are_made(played: Played) -> None:
    made = parts(SMALL, plant(SMALL, Workloads(SMALL)))
    backwards = [[list(events) for _, events in part.events()] for part in reversed(made)]
    assert [events for part in reversed(backwards) for events in part] == played.by_worker


def test_no_token_is_used_before_it_is_made_or_after_it_ends(played: Played) -> None:
    """As the events themselves tell it: that is all that a reader has."""
    made_ms: dict[str, int] = {}
    ends_ms: dict[str, int] = {}
    for event in played.events:
        token_id = event.token_id
        if token_id is None or event.outcome is Outcome.REFUSED:
            continue
        match event.type:
            case EventType.TOKEN_CREATED:
                made_ms[token_id] = event.time
                assert event.issue_time == event.time
            case EventType.LOGIN:
                assert event.time >= made_ms.get(token_id, 0)
                assert event.time <= ends_ms.get(token_id, event.time), event
            case _:
                assert event.max_time is not None
                assert event.max_time - (event.issue_time or 0) == MAX_LIFE_MS
        if event.expiry_time is not None:
            ends_ms[token_id] = event.expiry_time
            assert event.expiry_time <= (event.max_time or 0)


def test_a_token_is_removed_within_an_hour_of_its_expiry(played: Played) -> None:
    for event in played.events:
        if event.type is EventType.TOKEN_REMOVED:
            assert event.expiry_time is not None
            assert event.expiry_time < event.time < event.expiry_time + HOUR_MS + 3000
            assert event.client_address is None


def test_only_who_may_renews_and_ends_a_token_and_never_with_a_token(played: Played) -> None:
    for event in played.events:
        if event.type in {EventType.TOKEN_RENEWED, EventType.TOKEN_EXPIRED}:
            assert event.by_token is False
            assert event.principal in (event.owner, *(event.renewers or ()))


def test_who_makes_a_request_has_logged_in_on_that_connection(played: Played) -> None:
    logged_in = {event.connection for event in played.events if event.type is EventType.LOGIN}
    for event in played.events:
        if event.client_address is not None:
            assert event.connection in logged_in


def test_a_connection_has_one_client(played: Played) -> None:
    clients: dict[str | None, set[tuple[object, ...]]] = {}
    for event in played.events:
        if event.connection:
            where = (event.client_address, event.client_port, event.client_id, event.node)
            clients.setdefault(event.connection, set()).add(where)
    assert {len(each) for each in clients.values()} == {1}


def test_some_tokens_are_asked_for_in_the_name_of_others(played: Played) -> None:
    made = [event for event in played.events if event.type is EventType.TOKEN_CREATED]
    foreign = [event for event in made if event.requester != event.owner]
    assert 0.1 < len(foreign) / len(made) < 0.9
    assert all(event.principal == event.requester for event in made)


def test_most_logins_are_by_token_and_at_every_hour(played: Played) -> None:
    by_token = Counter(event.by_token for event in played.events if event.type is EventType.LOGIN)
    assert by_token[True] > 0.8 * by_token.total()
    assert len({event.time % DAY_MS // HOUR_MS for event in played.events}) == 24
