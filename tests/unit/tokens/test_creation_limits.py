"""How many tokens there may be, how often they may be asked for, and how large they may be."""

from __future__ import annotations

import asyncio
from itertools import cycle

import pytest

from kafka_dt.tokens import (
    CreationCounts,
    CreationLimits,
    DelegationToken,
    Principal,
    TokenLimitExceeded,
    TokenLimits,
    TokensDisabled,
    TooManyCreates,
    counts_bytes,
)
from kafka_dt.tokens.creation_limits import RECOUNT_MS
from tests.support.tokens.nodes import ALICE, BOB, CAROL, DAY, HOUR, START, Cluster, Node

MINUTE = 60_000
LIMIT = 5
MINUTE_MS = 60_000
BEGIN = START - START % MINUTE_MS
COUNT_LIMIT = 10


def node_with(**limits: int) -> tuple[Cluster, Node]:
    cluster = Cluster(limits=TokenLimits(creations=CreationLimits(**limits)))
    return cluster, cluster.node()


async def create(
    node: Node, owner: Principal = ALICE, requester: Principal = ALICE, renewers: tuple[Principal, ...] = ()
) -> DelegationToken:
    return await node.manager.create(owner, requester, renewers, -1)


async def fill(node: Node, owner: Principal = ALICE) -> list[DelegationToken]:
    return [await create(node, owner) for _ in range(LIMIT)]


async def test_without_limits_there_may_be_any_number() -> None:
    _, node = node_with()
    for _ in range(100):
        await create(node, renewers=(BOB,) * 200)


# Tokens of an owner


async def test_an_owner_has_no_more_live_tokens_than_the_limit() -> None:
    cluster, node = node_with(tokens_per_owner=LIMIT)
    await fill(node)
    for requester in (ALICE, BOB):
        with pytest.raises(TokenLimitExceeded) as refused:
            await create(node, ALICE, requester)
        assert (refused.value.setting, refused.value.limit) == ("kafka.dt.tokens.per.owner.max", LIMIT)
        assert "User:alice" in str(refused.value)
    assert len(cluster.database.tokens) == LIMIT
    await create(node, BOB)


async def test_tokens_of_other_owners_do_not_count_whoever_asked_for_or_renews_them() -> None:
    _, node = node_with(tokens_per_owner=LIMIT)
    for _ in range(LIMIT):
        await create(node, BOB, ALICE, (ALICE, ALICE))
    await fill(node, ALICE)


async def test_a_token_that_is_deleted_makes_room_for_one() -> None:
    _, node = node_with(tokens_per_owner=LIMIT)
    (first, *_) = await fill(node)
    await node.manager.expire(ALICE, first.hmac, -1)
    await create(node)
    with pytest.raises(TokenLimitExceeded):
        await create(node)


async def test_expired_tokens_do_not_count_before_they_are_removed() -> None:
    cluster, node = node_with(tokens_per_owner=LIMIT)
    await fill(node)
    with pytest.raises(TokenLimitExceeded):
        await create(node)
    cluster.clock.now_ms += DAY + RECOUNT_MS
    await fill(node)
    with pytest.raises(TokenLimitExceeded):
        await create(node)
    assert len(cluster.database.tokens) == 2 * LIMIT


async def test_a_token_that_is_made_to_expire_counts_no_more_within_a_second() -> None:
    cluster, node = node_with(tokens_per_owner=LIMIT)
    (first, *_) = await fill(node)
    with pytest.raises(TokenLimitExceeded):
        await create(node)
    await node.manager.expire(ALICE, first.hmac, 0)
    cluster.clock.now_ms += RECOUNT_MS
    await create(node)


async def test_tokens_of_other_nodes_count() -> None:
    cluster, node = node_with(tokens_per_owner=LIMIT)
    other = cluster.node()
    await fill(other)
    node.store.deliver()
    with pytest.raises(TokenLimitExceeded):
        await create(node)


async def test_tokens_that_are_being_made_count() -> None:
    cluster, node = node_with(tokens_per_owner=LIMIT)
    made = await asyncio.gather(*(create(node) for _ in range(4 * LIMIT)), return_exceptions=True)
    assert sum(isinstance(each, DelegationToken) for each in made) == LIMIT == len(cluster.database.tokens)
    assert {type(each) for each in made} == {DelegationToken, TokenLimitExceeded}


async def test_a_create_that_fails_does_not_count() -> None:
    _, node = node_with(tokens_per_owner=1)

    def cut_off() -> None:
        node.store.before_write = lambda: None
        raise ConnectionError

    node.store.before_write = cut_off
    with pytest.raises(ConnectionError):
        await create(node)
    await create(node)


# Creates in a minute


async def test_a_requester_creates_no_more_tokens_in_a_minute_than_the_limit() -> None:
    cluster, node = node_with(creates_per_minute=LIMIT)
    cluster.clock.now_ms = START - START % MINUTE + 15_000
    for number in range(LIMIT):
        await create(node, Principal.user(f"owner-{number}"))
    with pytest.raises(TooManyCreates) as refused:
        await create(node, CAROL)
    assert (refused.value.setting, refused.value.limit) == ("kafka.dt.token.creates.per.minute.max", LIMIT)
    assert (refused.value.requester, refused.value.retry_after_ms) == (ALICE, 45_000)
    await create(node, ALICE, BOB)
    cluster.clock.now_ms += 45_000
    await create(node)


async def test_creates_that_another_limit_refuses_count() -> None:
    """So that one who is refused again and again is soon refused without a look at the tokens."""
    _, node = node_with(creates_per_minute=LIMIT, tokens_per_owner=0)
    for _ in range(LIMIT):
        with pytest.raises(TokenLimitExceeded):
            await create(node)
    with pytest.raises(TooManyCreates):
        await create(node)


# The size of a token


async def test_a_token_has_no_more_renewers_than_the_limit() -> None:
    cluster, node = node_with(renewers=3)
    assert (await create(node, renewers=(BOB,) * 3)).token.renewers == (BOB,) * 3
    with pytest.raises(TokenLimitExceeded) as refused:
        await create(node, renewers=(BOB,) * 4)
    assert (refused.value.setting, refused.value.limit) == ("kafka.dt.token.renewers.max", 3)
    assert len(cluster.database.tokens) == 1


async def test_a_token_of_too_many_bytes_is_refused_before_it_is_encoded() -> None:
    cluster, node = node_with(token_bytes=1_000)
    with pytest.raises(TokenLimitExceeded) as refused:
        await create(node, renewers=(Principal.user("r" * 1_000),))
    assert (refused.value.setting, refused.value.limit) == ("kafka.dt.token.bytes.max", 1_000)
    assert cluster.database.tokens == {}


async def test_a_token_that_is_larger_than_new_ones_may_be_is_still_renewed() -> None:
    cluster, other = node_with()
    created = await create(other, renewers=(BOB,) * 50)
    cluster.limits = TokenLimits(creations=CreationLimits(0, 0, 0, 0))
    node = cluster.node()
    await node.manager.start()
    assert await node.manager.renew(BOB, created.hmac, HOUR) == START + HOUR


# The order


async def test_whether_there_are_tokens_at_all_is_looked_at_before_the_limits() -> None:
    cluster, _ = node_with(renewers=0, creates_per_minute=0)
    with pytest.raises(TokensDisabled):
        await cluster.node(secret_key=None).manager.create(ALICE, ALICE, (BOB,), -1)


@pytest.fixture
def workers() -> list[CreationCounts]:
    memory = bytearray(counts_bytes(3))
    return [CreationCounts(memory, number, b"key") for number in range(3)]


def test_all_workers_together_count_to_the_limit(workers: list[CreationCounts]) -> None:
    counted = [
        worker.count_below(COUNT_LIMIT, ALICE, BEGIN) for worker, _ in zip(cycle(workers), range(30), strict=False)
    ]
    assert counted == [True] * COUNT_LIMIT + [False] * 20


def test_each_requester_counts_for_itself(workers: list[CreationCounts]) -> None:
    while workers[0].count_below(COUNT_LIMIT, ALICE, BEGIN):
        pass
    assert workers[1].count_below(COUNT_LIMIT, BOB, BEGIN)
    assert workers[1].count_below(COUNT_LIMIT, Principal("Group", "alice"), BEGIN)


@pytest.mark.parametrize("later_ms", [MINUTE_MS, MINUTE_MS + 1, 60 * MINUTE_MS, -1])
def test_every_minute_begins_with_nothing(workers: list[CreationCounts], later_ms: int) -> None:
    for worker in workers:
        while worker.count_below(COUNT_LIMIT, ALICE, BEGIN):
            pass
    assert not workers[0].count_below(COUNT_LIMIT, ALICE, BEGIN + MINUTE_MS - 1)
    counted = [
        worker.count_below(COUNT_LIMIT, ALICE, BEGIN + later_ms) for worker in workers for _ in range(COUNT_LIMIT)
    ]
    assert counted == [True] * COUNT_LIMIT + [False] * 2 * COUNT_LIMIT


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
