import asyncio

import pytest

from kafka_dt.tokens import StoreUnavailable, Token, TokenCache, TokenLimits, TokenManager
from kafka_dt.tokens.purge import REMOVALS_AT_ONCE, Clocks
from kafka_dt.tokens.sharing import ITEMS_A_TURN
from tests.support.tokens.direct_store import DirectCluster, DirectTokenStore
from tests.support.tokens.nodes import ALICE, DAY, HOUR, START, Cluster, Node

MANY = ITEMS_A_TURN + REMOVALS_AT_ONCE + 1


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def node(cluster: Cluster) -> Node:
    return cluster.node()


async def test_a_token_goes_after_its_expiry_or_its_max_timestamp_and_not_before(cluster: Cluster, node: Node) -> None:
    short = await node.manager.create(ALICE, ALICE, (), HOUR)
    usual = await node.manager.create(ALICE, ALICE, (), -1)
    renewed = await node.manager.create(ALICE, ALICE, (), -1)
    await node.manager.renew(ALICE, renewed.hmac, 3 * DAY)

    for now_ms, left in (
        (START + HOUR, [short, usual, renewed]),
        (START + HOUR + 1, [usual, renewed]),
        (START + DAY, [usual, renewed]),
        (START + DAY + 1, [renewed]),
        (START + 3 * DAY + 1, []),
    ):
        cluster.clock.now_ms = now_ms
        await node.manager.remove_expired()
        assert list(cluster.database.tokens) == [each.token.token_id for each in left]
        assert [each.token.token_id for each in node.cache.concerning(None)] == list(cluster.database.tokens)


async def test_many_tokens_go_in_one_purge(cluster: Cluster, node: Node) -> None:
    for _ in range(MANY):
        await node.manager.create(ALICE, ALICE, (), HOUR)
    cluster.clock.now_ms += DAY
    assert await node.manager.remove_expired() == MANY
    assert not cluster.database.tokens


async def test_nodes_that_purge_at_once_share_the_work(cluster: Cluster, node: Node) -> None:
    other = cluster.node()
    for _ in range(MANY):
        await node.manager.create(ALICE, ALICE, (), HOUR)
    await other.manager.start()
    cluster.clock.now_ms += DAY

    removed = await asyncio.gather(node.manager.remove_expired(), other.manager.remove_expired())

    assert sum(removed) == MANY
    assert len(node.cache) == len(other.cache) == 0


async def test_a_token_that_was_renewed_elsewhere_stays(cluster: Cluster, node: Node) -> None:
    other = cluster.node()
    created = await node.manager.create(ALICE, ALICE, (), -1)
    await other.manager.renew(ALICE, created.hmac, 3 * DAY)
    cluster.clock.now_ms += 2 * DAY

    assert await node.manager.remove_expired() == 0

    assert cluster.stored(created.token.token_id) is not None
    found = node.manager.find(created.token.token_id)
    assert found is not None
    assert found.token.expiry_timestamp_ms == START + 3 * DAY


async def test_a_purge_that_is_cut_off_goes_on_next_time(cluster: Cluster, node: Node) -> None:
    for _ in range(3):
        await node.manager.create(ALICE, ALICE, (), HOUR)
    cluster.clock.now_ms += DAY
    node.store.connected = False
    with pytest.raises(StoreUnavailable):
        await node.manager.remove_expired()
    node.store.connected = True
    assert await node.manager.remove_expired() == 3


async def test_whoever_removes_a_token_is_told_of_it_and_nobody_else(cluster: Cluster, node: Node) -> None:
    other = cluster.node()
    for _ in range(MANY):
        await node.manager.create(ALICE, ALICE, (), HOUR)
    usual = await node.manager.create(ALICE, ALICE, (), -1)
    await other.manager.start()
    cluster.clock.now_ms += 2 * HOUR
    removed: list[Token] = []

    counts = await asyncio.gather(
        node.manager.remove_expired(removed.append), other.manager.remove_expired(removed.append)
    )

    assert len(removed) == sum(counts) == MANY
    assert len({token.token_id for token in removed}) == MANY
    assert usual.token not in removed


MINUTE = 60_000


async def test_a_node_whose_clock_is_ahead_removes_no_live_token_and_says_so(
    cluster: Cluster, node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    live = await node.manager.create(ALICE, ALICE, (), HOUR)
    cluster.database.now_ms = lambda: START + HOUR - 5 * MINUTE
    cluster.clock.now_ms = START + HOUR + 5 * MINUTE
    assert await node.manager.remove_expired() == 0
    assert cluster.stored(live.token.token_id) is not None
    assert (
        "the clock of this machine is 600.0 s ahead of that of the token store. "
        "This node refuses tokens before they expire, and removes no expired tokens"
    ) in caplog.text


async def test_a_node_whose_clock_is_behind_says_that_it_accepts_expired_tokens(
    cluster: Cluster, node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    expired = await node.manager.create(ALICE, ALICE, (), HOUR)
    cluster.clock.now_ms = START + 2 * HOUR
    cluster.database.now_ms = lambda: START + 2 * HOUR + 2 * MINUTE
    assert await node.manager.remove_expired() == 0
    assert (
        "120.0 s behind that of the token store. This node accepts tokens after they have expired, and" in caplog.text
    )
    assert cluster.stored(expired.token.token_id) is not None


@pytest.mark.parametrize("ahead_ms", [-MINUTE, -6_000, -4_000, 0, 4_000, 6_000, MINUTE])
async def test_with_clocks_that_differ_a_little_a_token_goes_when_it_has_expired_by_both(
    cluster: Cluster, node: Node, caplog: pytest.LogCaptureFixture, ahead_ms: int
) -> None:
    await node.manager.create(ALICE, ALICE, (), HOUR)
    cluster.database.now_ms = lambda: cluster.clock.now_ms - ahead_ms
    later_ms = START + HOUR + max(ahead_ms, 0)
    cluster.clock.now_ms = later_ms
    assert node.manager.clock_ahead_ms is None, "they have not been compared yet"
    assert await node.manager.remove_expired() == 0
    assert node.manager.clock_ahead_ms == ahead_ms
    cluster.clock.now_ms = later_ms + 1
    assert await node.manager.remove_expired() == 1
    assert ("Set the clocks right" in caplog.text) == (abs(ahead_ms) > 5_000)


async def test_a_slow_store_is_no_difference_of_clocks() -> None:
    clocks = Clocks(asked_ms=START, store_ms=START + 70_000, answered_ms=START + 90_000)
    assert (clocks.ahead_ms, clocks.differ, clocks.past_ms) == (0, False, START)


async def test_a_store_that_removes_expired_tokens_itself_is_asked_nothing() -> None:
    store = DirectTokenStore(DirectCluster())
    store.removes_expired = True
    store.connected = False
    manager = TokenManager(store, store, TokenCache(None), TokenLimits(), now_ms=lambda: START)
    assert await manager.remove_expired() == 0
