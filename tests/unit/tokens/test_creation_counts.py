"""The workers of a node count together, a minute at a time, and each requester for itself."""

from __future__ import annotations

from itertools import cycle

import pytest

from kafka_dt.tokens import CreationCounts, Principal, counts_bytes
from tests.support.token_nodes import ALICE, BOB, START

MINUTE_MS = 60_000
BEGIN = START - START % MINUTE_MS
LIMIT = 10


@pytest.fixture
def workers() -> list[CreationCounts]:
    memory = bytearray(counts_bytes(3))
    return [CreationCounts(memory, number, b"key") for number in range(3)]


def test_all_workers_together_count_to_the_limit(workers: list[CreationCounts]) -> None:
    counted = [worker.count_below(LIMIT, ALICE, BEGIN) for worker, _ in zip(cycle(workers), range(30), strict=False)]
    assert counted == [True] * LIMIT + [False] * 20


def test_each_requester_counts_for_itself(workers: list[CreationCounts]) -> None:
    while workers[0].count_below(LIMIT, ALICE, BEGIN):
        pass
    assert workers[1].count_below(LIMIT, BOB, BEGIN)
    assert workers[1].count_below(LIMIT, Principal("Group", "alice"), BEGIN)


@pytest.mark.parametrize("later_ms", [MINUTE_MS, MINUTE_MS + 1, 60 * MINUTE_MS, -1])
def test_every_minute_begins_with_nothing(workers: list[CreationCounts], later_ms: int) -> None:
    for worker in workers:
        while worker.count_below(LIMIT, ALICE, BEGIN):
            pass
    assert not workers[0].count_below(LIMIT, ALICE, BEGIN + MINUTE_MS - 1)
    counted = [worker.count_below(LIMIT, ALICE, BEGIN + later_ms) for worker in workers for _ in range(LIMIT)]
    assert counted == [True] * LIMIT + [False] * 2 * LIMIT


@pytest.mark.parametrize("limit", [0, 1])
def test_a_limit_may_be_nothing_or_one(workers: list[CreationCounts], limit: int) -> None:
    assert [workers[0].count_below(limit, ALICE, BEGIN) for _ in range(3)] == [True] * limit + [False] * (3 - limit)


def test_which_requesters_share_a_counter_depends_on_the_key() -> None:
    """Otherwise a client could choose a name that uses up another requester's limit."""
    names = [Principal.user(f"user-{number}") for number in range(200)]

    def counters(key: bytes) -> list[int]:
        counts = CreationCounts(bytearray(counts_bytes(1)), 0, key)
        return [counts._counter(name) for name in names]

    assert counters(b"one") == counters(b"one")
    assert sum(one == other for one, other in zip(counters(b"one"), counters(b"two"), strict=True)) < 5
