"""How many tokens there may be, how often they may be asked for, and how large they may be."""

from __future__ import annotations

import asyncio

import pytest

from kafka_dt.tokens import (
    CreationLimits,
    DelegationToken,
    Principal,
    TokenLimitExceeded,
    TokenLimits,
    TokensDisabled,
    TooManyCreates,
)
from kafka_dt.tokens.creation_limits import RECOUNT_MS
from tests.support.token_nodes import ALICE, BOB, CAROL, DAY, HOUR, START, Cluster, Node

MINUTE = 60_000
LIMIT = 5


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
