"""Tokens end by themselves only as the operator allowed, and each decision is written down."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import ConnectionFailed
from kafka_dt.client.errors import RequestTimedOut, StorageNotReached
from kafka_dt.pipeline.report.signs.finding import Finding
from kafka_dt.pipeline.watch.responding import Policy, Responder
from kafka_dt.pipeline.watch.rules import judge
from kafka_dt.pipeline.watch.state import State
from tests.unit.pipeline.watch.days import NOON, by_mechanism, company, guesses, thief

KINDS = frozenset({"stolen_token"})


class Node:
    """Ends tokens, or not, and notes which."""

    def __init__(self, *, down: bool = False) -> None:
        self.ended: list[tuple[str, str | None]] = []
        self.asked = 0
        """How often it was connected to."""
        self.down = down

    def revoke(self, token_id: str, owner: str | None, sending: Callable[[], None]) -> bool:
        self.asked += 1
        if self.down:
            raise ConnectionFailed("node:9092", "refused")
        if token_id == "t-gone":
            return False
        sending()
        self.ended.append((token_id, owner))
        return True


class SlowNode(Node):
    """Ends tokens, and fails before it can say so; shows no token twice."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def revoke(self, token_id: str, owner: str | None, sending: Callable[[], None]) -> bool:
        if (token_id, owner) in self.ended:
            return False
        super().revoke(token_id, owner, sending)
        raise self.error


class Clock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.at = NOON

    def __call__(self) -> datetime:
        return self.at


def found(*token_ids: str) -> list[Finding]:
    habits = company(tokens=dict.fromkeys(token_ids, "10.20.0.0/16"))
    return judge([thief(token_id=each) for each in token_ids], habits, State())


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "responses.jsonl").read_text().splitlines()]


def responder(
    folder: Path, node: Node, *, at_most: int = 5, dry_run: bool = False, now: Callable[[], datetime] = lambda: NOON
) -> Responder:
    return Responder(Policy(KINDS, at_most, dry_run), node.revoke, folder / "responses.jsonl", now)


def test_a_stolen_token_ends_and_the_journal_says_why(tmp_path: Path) -> None:
    node = Node()
    responder(tmp_path, node).respond(found("t-1"))
    assert node.ended == [("t-1", "User:etl")]
    before, after = lines(tmp_path)
    assert (before["outcome"], after["outcome"]) == ("revoking", "revoked")
    assert after["evidence"]["unusual addresses"] == "198.51.100.7"
    assert (after["kind"], after["owner"], len(after["finding"])) == ("stolen_token", "User:etl", 16)


def test_the_journal_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        responder(tmp_path, Node()).respond(found("t-1"))
    finally:
        os.umask(before)
    assert (tmp_path / "responses.jsonl").stat().st_mode & 0o777 == 0o600


def test_other_signs_and_weaker_ones_end_nothing(tmp_path: Path) -> None:
    node = Node()
    others = judge([*guesses(9), by_mechanism("User:etl", "PLAIN", software="kcat")], company(), State())
    assert len(others) == 2
    responder(tmp_path, node).respond(others)
    assert node.ended == []
    assert not (tmp_path / "responses.jsonl").exists()


def test_a_dry_run_ends_nothing(tmp_path: Path) -> None:
    node = Node()
    responder(tmp_path, node, dry_run=True).respond(found("t-1"))
    assert node.ended == []
    assert [line["outcome"] for line in lines(tmp_path)] == ["would_revoke"]


def test_no_more_end_within_an_hour_also_after_a_restart(tmp_path: Path) -> None:
    node, clock = Node(), Clock()
    responder(tmp_path, node, at_most=2, now=clock).respond(found("t-1", "t-2", "t-3"))
    clock.at += timedelta(minutes=50)
    again = responder(tmp_path, node, at_most=2, now=clock)
    again.respond(found("t-3", "t-1"))
    again.respond(found("t-3"))
    assert [each for each, _ in node.ended] == ["t-1", "t-2"]
    assert [line["outcome"] for line in lines(tmp_path)].count("held_back") == 2
    clock.at += timedelta(minutes=11)
    again.respond(found("t-3"))
    assert [each for each, _ in node.ended] == ["t-1", "t-2", "t-3"]


def test_a_token_that_is_held_back_is_left_to_an_operator_though_it_was_asked_for_before(tmp_path: Path) -> None:
    node, clock = Node(down=True), Clock()
    work = responder(tmp_path, node, at_most=1, now=clock)
    work.respond(found("t-1", "t-2"))
    node.down = False
    work.again()
    clock.at += timedelta(hours=2)
    work.again()
    later = responder(tmp_path, node, at_most=1, now=clock)
    later.resume(found("t-1", "t-2"))
    later.again()
    assert [each for each, _ in node.ended] == ["t-1"]
    assert (work.failing, later.failing) == (0, 0)


def test_a_token_that_could_not_be_ended_is_tried_again_and_noted_once(tmp_path: Path) -> None:
    node = Node(down=True)
    work = responder(tmp_path, node)
    work.respond(found("t-1"))
    work.again()
    node.down = False
    work.again()
    work.again()
    assert [each for each, _ in node.ended] == ["t-1"]
    assert [line["outcome"] for line in lines(tmp_path)] == ["failed", "revoking", "revoked"]


def test_what_a_run_could_not_end_the_next_one_does(tmp_path: Path) -> None:
    node = Node(down=True)
    responder(tmp_path, node).respond(found("t-1", "t-2"))
    node.down = False
    responder(tmp_path, node).respond(found("t-2"))
    work = responder(tmp_path, node, at_most=2)
    work.resume(found("t-1", "t-2", "t-3"))
    assert [each for each, _ in node.ended] == ["t-2"]
    work.again()
    work.again()
    assert [each for each, _ in node.ended] == ["t-2", "t-1"]
    assert [line["outcome"] for line in lines(tmp_path)][-1] == "revoked"


def test_what_a_dry_run_would_have_done_is_done_without_it(tmp_path: Path) -> None:
    node = Node()
    responder(tmp_path, node, at_most=1, dry_run=True).respond(found("t-1"))
    responder(tmp_path, node, at_most=1, dry_run=True).respond(found("t-1"))
    assert [line["outcome"] for line in lines(tmp_path)] == ["would_revoke"]
    responder(tmp_path, node, at_most=1).respond(found("t-1"))
    assert [each for each, _ in node.ended] == ["t-1"]


def test_a_dry_run_takes_up_nothing_that_was_begun(tmp_path: Path) -> None:
    node = Node(down=True)
    responder(tmp_path, node).respond(found("t-1"))
    node.down = False
    work = responder(tmp_path, node, dry_run=True)
    work.resume(found("t-1"))
    work.again()
    assert node.ended == []
    assert [line["outcome"] for line in lines(tmp_path)] == ["failed"]


def test_a_token_that_seems_to_have_gone_is_asked_for_again_when_there_is_a_finding(tmp_path: Path) -> None:
    node = Node()
    responder(tmp_path, node, at_most=1).respond(found("t-gone"))
    work = responder(tmp_path, node, at_most=1)
    work.respond(found("t-gone"))
    work.again()
    assert node.asked == 2
    assert [line["outcome"] for line in lines(tmp_path)] == ["gone"] * 2
    work.respond(found("t-1"))
    assert [each for each, _ in node.ended] == ["t-1"]


NOT_KNOWN: Final = {
    "the storage was not reached": StorageNotReached(ErrorCode.request_timed_out, "expire"),
    "no answer came": RequestTimedOut("node:9092", 10_000),
}
"""Failures after which it is not known whether the token has ended."""


@pytest.mark.parametrize("error", NOT_KNOWN.values(), ids=NOT_KNOWN)
def test_a_token_that_may_have_ended_counts_also_after_a_restart(tmp_path: Path, error: Exception) -> None:
    tokens = found(*[f"t-{number}" for number in range(20)])
    node = SlowNode(error)
    work = responder(tmp_path, node, at_most=2)
    work.respond(tokens)
    for _ in range(20):
        work.again()  # the node does not show the tokens any more
    work.respond(tokens)
    again = responder(tmp_path, node, at_most=2)
    again.resume(tokens)
    again.again()
    again.respond(tokens)
    assert [each for each, _ in node.ended] == ["t-0", "t-1"]


def test_an_end_that_a_crash_cut_off_is_asked_for_by_the_next_run_and_does_not_count_twice(tmp_path: Path) -> None:
    def crash(_token_id: str, _owner: str | None, sending: Callable[[], None]) -> bool:
        sending()
        raise KeyboardInterrupt

    journal = tmp_path / "responses.jsonl"
    with pytest.raises(KeyboardInterrupt):
        Responder(Policy(KINDS, 1), crash, journal, lambda: NOON).respond(found("t-1"))
    node = Node()
    work = responder(tmp_path, node, at_most=1, now=lambda: NOON + timedelta(seconds=5))
    work.resume(found("t-1"))
    work.again()
    work.respond(found("t-1", "t-2"))
    assert [each for each, _ in node.ended] == ["t-1"]
    assert [line["outcome"] for line in lines(tmp_path)] == ["revoking", "revoking", "revoked", "held_back"]


def test_a_node_that_is_away_is_asked_once_until_the_next_time_and_no_token_is_forgotten(tmp_path: Path) -> None:
    node = Node(down=True)
    work = responder(tmp_path, node)
    tokens = [f"t-{number}" for number in range(4)]
    work.respond(found(*tokens))
    work.respond(found("t-4"))
    assert node.asked == 1
    work.again()
    assert node.asked == 2
    assert [line["outcome"] for line in lines(tmp_path)] == ["failed"] * 5
    node.down = False
    work = responder(tmp_path, node)
    work.resume(found(*tokens, "t-4"))
    work.again()
    assert sorted(each for each, _ in node.ended) == [*tokens, "t-4"]


def test_a_token_at_which_the_connection_breaks_keeps_no_other_one_alive(tmp_path: Path) -> None:
    class Breaking(Node):
        def revoke(self, token_id: str, owner: str | None, sending: Callable[[], None]) -> bool:
            if token_id == "t-0":
                raise ConnectionFailed("node:9092", "broken")
            return super().revoke(token_id, owner, sending)

    node = Breaking()
    work = responder(tmp_path, node)
    work.respond(found("t-0", "t-1"))
    work.again()
    work.again()
    assert [each for each, _ in node.ended] == ["t-1"]


def test_half_a_line_of_a_journal_is_passed_over(tmp_path: Path) -> None:
    node = Node()
    responder(tmp_path, node).respond(found("t-1"))
    with (tmp_path / "responses.jsonl").open("a") as file:
        file.write('{"time": "2026-')
    responder(tmp_path, node).respond(found("t-1", "t-2"))
    assert [each for each, _ in node.ended] == ["t-1", "t-2"]
    journal = (tmp_path / "responses.jsonl").read_text().splitlines()
    assert [json.loads(line)["outcome"] for line in journal[3:]] == ["revoking", "revoked"]
