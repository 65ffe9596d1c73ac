"""After a swap, two owners' clients use each other's tokens, and everything else is as it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.detection.company.company import CompanyPlan, write_company
from benchmarks.detection.stories import EVENTS, TRUTH, Story, load_stories
from benchmarks.detection.swaps import network, swap_users

PLAN = CompanyPlan(seed=5, days=8, events=4_000, owners=30, incidents=0, look_alikes=0)
IDENTITY = {"principal", "owner", "requester", "token_id", "session_token_id"}

Swapped = tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]], list[Story]]


@pytest.fixture(scope="module")
def swapped(tmp_path_factory: pytest.TempPathFactory) -> Swapped:
    """The events before and after, by their ids, and the truth."""
    folder = tmp_path_factory.mktemp("swaps")
    write_company(folder / "before", PLAN)
    swap_users(folder / "before" / EVENTS, folder / "after", seed=1, pairs=4)
    before, after = (by_id(folder / name / EVENTS) for name in ("before", "after"))
    return before, after, load_stories(folder / "after" / TRUTH)


def by_id(folder: Path) -> dict[str, dict[str, Any]]:
    lines = (line for path in folder.glob("*.jsonl") for line in path.read_bytes().splitlines())
    return {event["id"]: event for event in map(json.loads, lines)}


def test_only_the_tokens_of_swapped_logins_are_others(swapped: Swapped) -> None:
    before, after, stories = swapped
    assert list(before) == list(after)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {name for story in stories for name in story.event_ids}
    assert changed
    for name in changed:
        differing = {key for key in before[name] if before[name][key] != after[name][key]}
        assert differing <= IDENTITY
        assert before[name]["owner"] != after[name]["owner"]


def test_a_swapped_login_uses_a_token_of_the_owner_that_is_alive(swapped: Swapped) -> None:
    before, after, stories = swapped
    created = {event["token_id"]: event for event in before.values() if event["type"] == "token_created"}
    for story in stories:
        (owner,) = story.owners
        for event in (after[name] for name in story.event_ids):
            token = created.get(event["token_id"])
            if token is not None:
                assert token["owner"] == owner
                assert token["time"] <= event["time"] < token["max_time"]


def test_a_swap_of_different_clients_is_visible(swapped: Swapped) -> None:
    _, _, stories = swapped
    assert any(story.visible for story in stories)
    assert all(story.differs <= {"network", "software", "hour"} for story in stories)


@pytest.mark.parametrize(
    ("address", "large"), [("10.1.2.3", "10.1"), ("2001:db8::1", "2001:0db8:0000"), ("10.1.255.9", "10.1")]
)
def test_a_large_network_has_16_bits_or_48(address: str, large: str) -> None:
    assert network(address) == large
