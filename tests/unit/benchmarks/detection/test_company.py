"""A company works as companies do, and the file of truths says what really happened."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.detection.company.company import CompanyPlan, write_company
from benchmarks.detection.stories import Story
from kafka_dt.audit import AuditEvent

SMALL = CompanyPlan(seed=3, days=12, events=12_000, owners=60, incidents=40, look_alikes=30)
WRONG_CLOCKS_MS = 2 * 4 * 60_000


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], list[Story]]:
    """The events of a company in the order of their times, and its stories."""
    folder = tmp_path_factory.mktemp("company") / "small"
    stories = write_company(folder, SMALL)
    return sorted(lines(folder), key=lambda event: event["time"]), stories


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in (folder / "events").glob("*.jsonl") for line in path.read_bytes().splitlines()]


def test_a_seed_writes_the_same_company_again_and_another_seed_another_one(tmp_path: Path) -> None:
    plans = [CompanyPlan(seed, days=2, events=300, owners=20, incidents=4, look_alikes=4) for seed in (1, 1, 2)]
    for number, plan in enumerate(plans):
        write_company(tmp_path / str(number), plan)
    first, again, other = (sorted(map(str, lines(tmp_path / str(number)))) for number in range(3))
    assert first == again
    owners = [{event.get("owner") for event in lines(tmp_path / str(number))} for number in (0, 2)]
    assert first != other
    assert len(owners[0] & owners[1]) < len(owners[0]) / 2


def test_every_line_is_an_event_of_the_schema_with_an_id_of_its_own(
    written: tuple[list[dict[str, Any]], list[Story]],
) -> None:
    events, _ = written
    assert all(AuditEvent(**event).id for event in events)
    assert len({event["id"] for event in events}) == len(events)
    assert SMALL.events * 0.6 < len(events) < SMALL.events * 1.8


def test_a_story_names_events_that_were_written_and_no_event_is_in_two_of_them(
    written: tuple[list[dict[str, Any]], list[Story]],
) -> None:
    events, stories = written
    times = {event["id"]: event["time"] for event in events}
    told = Counter(name for story in stories for name in story.event_ids)
    assert set(told.values()) == {1}
    for story in stories:
        found = [times[name] for name in story.event_ids]
        assert (story.first_ms, story.last_ms) == (min(found), max(found))


def test_incidents_are_of_many_kinds_some_of_them_not_visible_and_look_alikes_of_others(
    written: tuple[list[dict[str, Any]], list[Story]],
) -> None:
    _, stories = written
    incidents = [each for each in stories if each.incident]
    assert len({each.kind for each in incidents}) >= 15
    assert len({each.kind for each in stories if not each.incident}) >= 10
    assert {each.visible for each in incidents} == {True, False}


def test_no_token_logs_in_after_its_end(written: tuple[list[dict[str, Any]], list[Story]]) -> None:
    events, _ = written
    ends: dict[str, int] = {}
    for event in events:
        if event["type"] in {"token_created", "token_renewed", "token_expired"} and event["outcome"] == "ok":
            ends[event["token_id"]] = event["expiry_time"]
        if event["type"] == "login" and event.get("by_token") and event["token_id"] in ends:
            assert event["time"] < ends[event["token_id"]] + WRONG_CLOCKS_MS


def test_a_thief_meets_the_rules_of_the_nodes(written: tuple[list[dict[str, Any]], list[Story]]) -> None:
    events, stories = written
    of = {each.kind: set(each.event_ids) for each in stories if each.incident}
    tried = [event for event in events if event["id"] in of["refused-changes"] and event["type"] != "login"]
    assert {event["outcome"] for event in tried} == {"refused"}
    guessed = [event for event in events if event["id"] in of["slow-guessing"]]
    assert {event["reason"] for event in guessed} <= {"unknown_token", "wrong_credentials"}
    assert len({event["client_address"] for event in guessed}) > len(guessed) / 15
