"""Changes by several nodes, and a store that is cut off."""

import asyncio

import pytest

from kafka_dt.tokens import (
    DelegationToken,
    StoreUnavailable,
    Token,
    TokenAuthorizationFailed,
    TokenExpired,
    TokenNotFound,
    ends_sooner,
    guarded,
)
from kafka_dt.tokens.store import StoredToken
from tests.support.tokens.nodes import ALICE, BOB, DAY, HOUR, MALLORY, START, Cluster, Node, nothing_more


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def nodes(cluster: Cluster) -> tuple[Node, Node]:
    first, second = cluster.node(), cluster.node()
    await first.manager.start()
    await second.manager.start()
    return first, second


async def create(node: Node) -> DelegationToken:
    return await node.manager.create(ALICE, ALICE, [BOB], -1)


def overtake(cluster: Cluster, by: Node, token_id: str, *, times: int, expiry_timestamp_ms: int | None) -> None:
    """Let another node change the token (None: delete it) just before each of the next `times` writes of `by`."""
    left = times

    def change() -> None:
        nonlocal left
        if left:
            left -= 1
            stored = cluster.database.tokens[token_id]
            if expiry_timestamp_ms is None:
                cluster.database.remove(token_id)
            else:
                cluster.database.put(stored.token.expiring_at(expiry_timestamp_ms), stored.version + 1)

    by.store.before_write = change


async def test_a_node_knows_what_was_stored_before_it_started(cluster: Cluster) -> None:
    created = await create(cluster.node())
    node = cluster.node()
    await node.manager.start()
    assert node.manager.find(created.token.token_id) == created


async def test_a_token_made_elsewhere_can_be_renewed_and_expired_at_once(nodes: tuple[Node, Node]) -> None:
    first, second = nodes
    created = await create(first)
    assert await second.manager.renew(BOB, created.hmac, HOUR) == START + HOUR
    assert await first.manager.expire(ALICE, created.hmac, -1) == START
    with pytest.raises(TokenNotFound):
        await second.manager.renew(ALICE, created.hmac, -1)
    assert second.manager.find(created.token.token_id) is None


async def test_describe_sees_what_was_done_elsewhere(nodes: tuple[Node, Node]) -> None:
    first, second = nodes
    created = await create(first)
    assert await second.describe(ALICE, [ALICE], nothing_more) == [created]
    await first.manager.expire(ALICE, created.hmac, -1)
    assert await second.describe(ALICE, None, nothing_more) == []


async def test_a_renewal_that_was_overtaken_is_decided_again(cluster: Cluster, nodes: tuple[Node, Node]) -> None:
    node = nodes[0]
    created = await create(node)
    overtake(cluster, node, created.token.token_id, times=3, expiry_timestamp_ms=START + 5)
    assert await node.manager.renew(ALICE, created.hmac, HOUR) == START + HOUR
    assert cluster.database.tokens[created.token.token_id].version == 4


async def test_a_renewal_does_not_bring_an_expired_token_back(cluster: Cluster, nodes: tuple[Node, Node]) -> None:
    node = nodes[0]
    created = await create(node)
    overtake(cluster, node, created.token.token_id, times=1, expiry_timestamp_ms=START - 1)
    with pytest.raises(TokenExpired):
        await node.manager.renew(ALICE, created.hmac, HOUR)


@pytest.mark.parametrize("period_ms", [HOUR, -1])
async def test_no_change_brings_a_deleted_token_back(
    cluster: Cluster, nodes: tuple[Node, Node], period_ms: int
) -> None:
    node = nodes[0]
    created = await create(node)
    overtake(cluster, node, created.token.token_id, times=1, expiry_timestamp_ms=None)
    with pytest.raises(TokenNotFound) as refused:
        await node.manager.expire(ALICE, created.hmac, period_ms)
    assert refused.value.token_id == created.token.token_id
    assert cluster.stored(created.token.token_id) is None
    assert node.manager.find(created.token.token_id) is None


async def test_renewals_of_one_token_on_many_nodes_are_all_made(cluster: Cluster) -> None:
    nodes = [cluster.node() for _ in range(8)]
    for node in nodes:
        await node.manager.start()
    created = await create(nodes[0])

    async def renew_without_pause(node: Node, period_ms: int) -> None:
        for _ in range(30):
            assert await node.manager.renew(ALICE, created.hmac, period_ms) == START + period_ms

    async with asyncio.TaskGroup() as renewers:
        for number, node in enumerate(nodes):
            renewers.create_task(renew_without_pause(node, HOUR + number))
    assert cluster.database.tokens[created.token.token_id].version == 8 * 30


async def test_a_token_that_others_change_all_the_time_is_given_up(
    cluster: Cluster, nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "CHANGE_WITHIN_S", 0.2)
    node = nodes[0]
    created = await create(node)
    overtake(cluster, node, created.token.token_id, times=1_000_000, expiry_timestamp_ms=START + 5)
    with pytest.raises(StoreUnavailable, match="all the time"):
        await node.manager.renew(ALICE, created.hmac, HOUR)


async def test_a_deletion_needs_no_pause_of_those_who_renew_the_token(
    cluster: Cluster, nodes: tuple[Node, Node]
) -> None:
    node = nodes[0]
    created = await create(node)
    overtake(cluster, node, created.token.token_id, times=1_000, expiry_timestamp_ms=START + 5)
    assert await node.manager.expire(ALICE, created.hmac, -1) == START
    assert cluster.stored(created.token.token_id) is None


async def test_a_deletion_does_not_wait_for_renewals_that_wait(cluster: Cluster, nodes: tuple[Node, Node]) -> None:
    node = nodes[0]
    created = await create(node)
    renewals = [asyncio.create_task(node.manager.renew(BOB, created.hmac, HOUR)) for _ in range(100)]
    await asyncio.sleep(0)
    assert await node.manager.expire(ALICE, created.hmac, -1) == START
    assert sum(each.done() for each in renewals) < 10
    results = await asyncio.gather(*renewals, return_exceptions=True)
    assert cluster.stored(created.token.token_id) is None
    assert isinstance(results[-1], TokenNotFound)


@pytest.mark.usefixtures("steady_time")
async def test_the_time_of_a_change_includes_its_wait_for_others(
    nodes: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    node = nodes[0]
    created = await create(node)
    update = node.store.update

    async def slowly(token: Token, version: int) -> StoredToken:
        await asyncio.sleep(guarded.CHANGE_WITHIN_S / 3)
        return await update(token, version)

    monkeypatch.setattr(node.store, "update", slowly)
    results = await asyncio.gather(
        *(node.manager.renew(ALICE, created.hmac, HOUR) for _ in range(20)), return_exceptions=True
    )
    assert results[0] == START + HOUR
    assert isinstance(results[-1], StoreUnavailable)


async def test_a_token_that_seems_expired_may_have_been_renewed_elsewhere(
    cluster: Cluster, nodes: tuple[Node, Node]
) -> None:
    first, second = nodes
    created = await create(first)
    await second.manager.start()
    await first.manager.renew(ALICE, created.hmac, 3 * DAY)
    cluster.clock.now_ms += 2 * DAY
    assert await second.manager.renew(ALICE, created.hmac, HOUR) == START + 2 * DAY + HOUR


async def test_concurrent_changes_of_one_token_on_one_node_do_not_conflict(
    cluster: Cluster, nodes: tuple[Node, Node]
) -> None:
    node = nodes[0]
    created = await create(node)
    renewals = [node.manager.renew(ALICE, created.hmac, period_ms) for period_ms in range(50)]
    assert await asyncio.gather(*renewals) == [START + period_ms for period_ms in range(50)]
    assert node.store.reads == []
    stored = cluster.stored(created.token.token_id)
    assert stored is not None
    assert stored.expiry_timestamp_ms == START + 49


async def test_a_change_that_waited_for_a_deletion_finds_no_token(nodes: tuple[Node, Node]) -> None:
    node = nodes[0]
    created = await create(node)
    deletions = [node.manager.expire(ALICE, created.hmac, -1) for _ in range(3)]
    results = await asyncio.gather(*deletions, return_exceptions=True)
    assert results[0] == START
    assert [type(result) for result in results[1:]] == [TokenNotFound, TokenNotFound]


async def test_concurrent_changes_on_two_nodes_all_happen(cluster: Cluster, nodes: tuple[Node, Node]) -> None:
    created = await create(nodes[0])
    renewals = [node.manager.renew(ALICE, created.hmac, 5) for node in nodes for _ in range(5)]
    await asyncio.gather(*renewals)
    assert cluster.database.tokens[created.token.token_id].version == len(renewals)


async def test_guessed_hmacs_share_a_look_into_the_store(nodes: tuple[Node, Node]) -> None:
    node = nodes[0]
    guesses = [node.manager.renew(MALLORY, bytes([number]) * 64, -1) for number in range(100)]
    results = await asyncio.gather(*guesses, return_exceptions=True)
    assert {type(result) for result in results} == {TokenNotFound}
    assert node.store.catch_ups == 1


async def test_an_hmac_of_a_wrong_length_asks_the_store_nothing(nodes: tuple[Node, Node]) -> None:
    for length in (0, 20, 63, 65):
        with pytest.raises(TokenNotFound):
            await nodes[0].manager.expire(MALLORY, bytes(length), -1)
    assert nodes[0].store.catch_ups == 0


async def test_while_cut_off_every_change_is_refused_at_once(cluster: Cluster, nodes: tuple[Node, Node]) -> None:
    node = nodes[0]
    created = await create(node)
    cluster.clock.now_ms += 8 * DAY
    node.store.connected = False
    for request in (
        create(node),
        node.manager.renew(ALICE, created.hmac, -1),
        node.manager.expire(MALLORY, created.hmac, -1),
        node.manager.expire(ALICE, bytes(64), -1),
        node.manager.expire(ALICE, b"", -1),
        node.manager.remove_expired(),
        node.manager.start(),
    ):
        with pytest.raises(StoreUnavailable):
            await request


async def test_a_change_whose_connection_breaks_is_not_acknowledged(nodes: tuple[Node, Node]) -> None:
    node = nodes[0]
    created = await create(node)
    renewal = asyncio.create_task(node.manager.renew(ALICE, created.hmac, -1))
    await asyncio.sleep(0)
    node.store.connected = False
    with pytest.raises(StoreUnavailable):
        await renewal


async def test_while_cut_off_known_tokens_are_found_and_described_until_they_are_too_old(
    nodes: tuple[Node, Node],
) -> None:
    node = nodes[0]
    created = await create(node)
    token_id = created.token.token_id
    node.store.connected = False

    node.store.stale_ms = node.store.max_staleness_ms
    assert node.manager.find(token_id) == created
    assert await node.manager.lookup(token_id) == created
    assert await node.describe(ALICE, None, nothing_more) == [created]
    assert not node.manager.is_stale()
    assert not node.manager.is_stale(token_id)

    node.store.stale_ms += 1
    assert node.manager.is_stale()
    assert node.manager.is_stale(token_id)
    with pytest.raises(StoreUnavailable):
        node.manager.find(token_id)
    with pytest.raises(StoreUnavailable):
        node.manager.find("unknown")
    with pytest.raises(StoreUnavailable):
        await node.manager.lookup(token_id)
    with pytest.raises(StoreUnavailable):
        await node.describe(ALICE, None, nothing_more)


async def test_after_an_outage_a_lookup_waits_for_the_news(nodes: tuple[Node, Node]) -> None:
    first, second = nodes
    kept, revoked = await create(first), await create(first)
    second.store.deliver()
    await first.manager.expire(ALICE, revoked.hmac, -1)

    second.store.stale_ms = second.store.max_staleness_ms + 1
    with pytest.raises(StoreUnavailable):
        second.manager.find(kept.token.token_id)
    lookups = (second.manager.lookup(each.token.token_id) for each in (kept, revoked))
    assert await asyncio.gather(*lookups) == [kept, None]


async def test_revocations_can_be_told_from_other_changes(nodes: tuple[Node, Node]) -> None:
    first, second = nodes
    heard: list[tuple[str, bool]] = []

    def listener(token_id: str, before: Token | None, after: Token | None) -> None:
        heard.append((token_id, ends_sooner(before, after)))

    second.cache.on_change(listener)
    created = await create(first)
    token_id = created.token.token_id
    second.store.deliver()
    await first.manager.renew(ALICE, created.hmac, 2 * DAY)
    second.store.deliver()
    await first.manager.renew(ALICE, created.hmac, HOUR)
    second.store.deliver()
    await first.manager.expire(ALICE, created.hmac, -1)
    second.store.deliver()
    assert heard == [(token_id, False), (token_id, False), (token_id, True), (token_id, True)]


async def test_a_store_that_only_keeps_tokens_is_not_asked_who_may_create_one(
    cluster: Cluster, nodes: tuple[Node, Node]
) -> None:
    """A requester with a connection of its own to another store would else have any owner's tokens."""
    with pytest.raises(TokenAuthorizationFailed):
        await nodes[0].manager.create(BOB, MALLORY, (), -1, own=object())
    assert not cluster.database.tokens
