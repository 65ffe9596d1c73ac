"""Two stores as one: the contract of stores holds for the tokens of each, and neither stops what is the other's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from kafka_dt.tokens import (
    DelegationToken,
    GuardedChanges,
    Keyring,
    NewToken,
    PartOfCache,
    SecretKey,
    Store,
    StoreUnavailable,
    Token,
    TokenCache,
    TokenChanges,
    TokenLimits,
    TokenManager,
    TokenNotFound,
    Turns,
    TwoStores,
)
from kafka_dt.tokens.lookup import READS_PER_SECOND
from kafka_dt.tokens.store import NEVER_MS, StoredToken
from tests.support.tokens.direct_store import DirectCluster, DirectTokenStore
from tests.support.tokens.memory_store import MAX_STALENESS_MS, MemoryTokenDatabase, MemoryTokenStore
from tests.support.tokens.nodes import ALICE, BOB, CAROL, DAY, HOUR, SECRET_KEY, Clock, RandomBytes, nothing_more, shown
from tests.support.tokens.store_contract import Place, TokenStoreContract, new_token

NEW_MAX_STALENESS_MS = MAX_STALENESS_MS // 10


@dataclass
class Moving(Place):
    """A node whose tokens move: its place in both stores, and a way to make a token in the old one."""

    source: TwoStores
    new: DirectTokenStore
    old: MemoryTokenStore
    old_changes: TokenChanges
    keyring: Keyring
    manager: TokenManager

    async def create_old(self, max_lifetime_ms: int = -1) -> DelegationToken:
        """Make a token as a node does that has the old store only."""
        return await self.old_changes.create(NewToken(ALICE, CAROL, (BOB, BOB), max_lifetime_ms))

    def logs_in(self, made: DelegationToken) -> bool:
        try:
            return self.manager.find(made.token.token_id) == made
        except StoreUnavailable:
            return False

    async def described(self) -> list[DelegationToken]:
        await self.manager.catch_up_if_possible()
        batches = self.manager.describe(ALICE, None, nothing_more, Turns(lambda: 0.0))
        return await shown(self.cache, batches)


class OfTheOldStore(Moving):
    async def create(self, max_lifetime_ms: int = -1) -> DelegationToken:
        return await self.create_old(max_lifetime_ms)


@dataclass
class Both:
    """What the nodes share."""

    clock: Clock

    def __post_init__(self) -> None:
        self.cluster = DirectCluster(self.clock)
        self.database = MemoryTokenDatabase()
        self.database.now_ms = self.clock
        self._random_bytes = RandomBytes()

    def node(
        self, kind: type[Moving] = Moving, *, back: bool = False, cluster: type[DirectTokenStore] = DirectTokenStore
    ) -> Moving:
        """Make a node that has not been started; `back`: new tokens are made in what is else the old store."""
        keyring = Keyring(SECRET_KEY)
        cache = TokenCache(keyring)
        new, old = cluster(self.cluster, NEW_MAX_STALENESS_MS), MemoryTokenStore(self.database)
        new_part, old_part = PartOfCache(cache), PartOfCache(cache)
        old_changes = GuardedChanges(
            old, old_part, keyring, TokenLimits(), now_ms=self.clock, random_bytes=self._random_bytes
        )
        stores = [Store(new, new, new_part), Store(old, old_changes, old_part)]
        both = TwoStores(new=stores[back], old=stores[not back])
        manager = TokenManager(both, both, cache, TokenLimits(), now_ms=self.clock)
        return kind(both, both, cache, new, old, old_changes, keyring, manager)


@pytest.fixture
def both() -> Both:
    return Both(Clock())


async def started(*nodes: Moving) -> AsyncIterator[tuple[Moving, ...]]:
    for node in nodes:
        await node.manager.start()
    yield nodes
    for node in nodes:
        await node.new.close()


@pytest.fixture
async def node(both: Both) -> AsyncIterator[Moving]:
    async for (one,) in started(both.node()):
        yield one


@pytest.fixture
async def nodes(both: Both) -> AsyncIterator[tuple[Moving, ...]]:
    async for two in started(both.node(), both.node()):
        yield two


class TestNewTokensOfTwoStores(TokenStoreContract):
    @pytest.fixture
    async def places(self, clock: Clock) -> AsyncIterator[tuple[Moving, ...]]:
        both = Both(clock)
        async for two in started(both.node(), both.node()):
            yield two


class TestOldTokensOfTwoStores(TokenStoreContract):
    @pytest.fixture
    async def places(self, clock: Clock) -> AsyncIterator[tuple[Moving, ...]]:
        both = Both(clock)
        async for two in started(both.node(OfTheOldStore), both.node(OfTheOldStore)):
            yield two


class TestNewTokensOnTheWayBack(TokenStoreContract):
    @pytest.fixture
    async def places(self, clock: Clock) -> AsyncIterator[tuple[Moving, ...]]:
        both = Both(clock)
        async for two in started(both.node(back=True), both.node(back=True)):
            yield two


class LikeACluster(DirectTokenStore):
    """A store that removes expired tokens itself, and does not tell its time."""

    removes_expired = True

    async def time_ms(self) -> int:
        raise StoreUnavailable("a cluster does not tell its time")

    async def remove(self, token_id: str, past_ms: int) -> Token | None:
        del token_id, past_ms
        return None


async def test_a_token_is_made_in_the_new_store_alone(both: Both, node: Moving) -> None:
    created = await node.manager.create(ALICE, ALICE, (), -1)
    assert both.cluster.tokens == {created.token.token_id: created}
    assert not both.database.tokens


async def test_what_was_there_at_the_start_is_served_and_described_from_both_stores(both: Both, node: Moving) -> None:
    old, new = await node.create_old(), await node.create()
    async for (later,) in started(both.node()):
        assert later.logs_in(old)
        assert later.logs_in(new)
        assert await later.described() in ([old, new], [new, old])


async def test_each_token_is_renewed_and_expired_where_it_is(both: Both, node: Moving) -> None:
    old, new = await node.create_old(), await node.create()
    for made in (old, new):
        await node.manager.renew(BOB, made.hmac, 2 * HOUR)
    assert both.database.tokens[old.token.token_id].token.expiry_timestamp_ms == both.clock() + 2 * HOUR
    assert both.cluster.tokens[new.token.token_id].token.expiry_timestamp_ms == both.clock() + 2 * HOUR
    for made in (old, new):
        await node.manager.expire(ALICE, made.hmac, -1)
    assert not both.database.tokens
    assert not both.cluster.tokens


async def test_a_token_of_either_store_is_found_the_moment_another_node_has_made_it(
    nodes: tuple[Moving, ...],
) -> None:
    first, second = nodes
    for made in (await first.create_old(), await first.create()):
        assert await second.manager.lookup(made.token.token_id) == made
        assert second.logs_in(made)
    assert await second.manager.lookup(new_token().token_id) is None


@pytest.mark.parametrize("away", ["new", "old"])
async def test_a_store_that_is_away_stops_its_own_tokens_after_its_own_bound_and_no_others(
    both: Both, node: Moving, away: str
) -> None:
    old, new = await node.create_old(), await node.create()
    served, stopped = (old, new) if away == "new" else (new, old)
    cut_off(node, away)
    assert node.logs_in(served)
    assert node.logs_in(stopped), "what is known is not too old yet"
    assert not node.manager.is_stale()
    assert not node.manager.can_ask(stopped.token.token_id)
    assert node.manager.can_ask(served.token.token_id)

    make_stale(node, away)
    for made in (served, stopped):
        assert node.logs_in(made) is (made is served)
        assert node.manager.is_stale(made.token.token_id) is (made is stopped)
    assert node.manager.is_stale()
    assert await node.manager.lookup(served.token.token_id) == served
    with pytest.raises(StoreUnavailable):
        await node.manager.lookup(stopped.token.token_id)

    await node.manager.renew(ALICE, served.hmac, HOUR)
    await node.manager.prove(served.token.token_id)
    await node.manager.expire(ALICE, served.hmac, -1)
    for request in (node.manager.renew(ALICE, stopped.hmac, HOUR), node.manager.prove(stopped.token.token_id)):
        with pytest.raises(StoreUnavailable):
            await request
    assert both.clock() == Clock().now_ms, "no time has passed by which a token could have expired"


def cut_off(node: Moving, away: str) -> None:
    store = node.new if away == "new" else node.old
    store.connected = False


def make_stale(node: Moving, away: str) -> None:
    if away == "new":
        node.new._proved_s = -(10**6)
    else:
        node.old.stale_ms = NEVER_MS


async def test_tokens_are_created_while_the_old_store_is_away_and_not_while_the_new_one_is(node: Moving) -> None:
    cut_off(node, "old")
    make_stale(node, "old")
    assert node.logs_in(await node.manager.create(ALICE, ALICE, (), -1))
    cut_off(node, "new")
    with pytest.raises(StoreUnavailable):
        await node.manager.create(ALICE, ALICE, (), -1)


async def test_the_limit_of_each_store_is_its_own(node: Moving) -> None:
    old, new = await node.create_old(), await node.create()
    cut_off(node, "new")
    node.old.stale_ms = NEW_MAX_STALENESS_MS + 1
    node.new._proved_s -= NEW_MAX_STALENESS_MS / 1000 + 1
    assert node.logs_in(old), "it may be as stale as that"
    assert not node.logs_in(new)


async def test_a_new_token_of_another_node_is_found_and_renewed_while_the_old_store_is_away(
    nodes: tuple[Moving, ...],
) -> None:
    first, second = nodes
    cut_off(second, "old")
    make_stale(second, "old")
    made = await first.create()
    assert await second.manager.lookup(made.token.token_id) == made
    renewed = await first.create()
    assert await second.manager.renew(ALICE, renewed.hmac, HOUR) == second.expiry_ms(renewed)
    with pytest.raises(StoreUnavailable):
        await second.manager.lookup(new_token().token_id)
    with pytest.raises(StoreUnavailable):
        await second.manager.renew(ALICE, bytes(64), HOUR)


async def test_beyond_the_single_reads_a_new_token_is_found_while_the_old_store_is_away(
    nodes: tuple[Moving, ...],
) -> None:
    first, second = nodes
    cut_off(second, "old")
    guesses = [second.manager.lookup(f"{number:021d}A") for number in range(READS_PER_SECOND)]
    await asyncio.gather(*guesses, return_exceptions=True)
    made = await first.create()
    assert await second.manager.lookup(made.token.token_id) == made


@pytest.mark.parametrize("away", ["new", "old"])
async def test_a_describe_tells_of_both_stores_or_is_refused(node: Moving, away: str) -> None:
    """Without one of them it would show too few tokens, as if those that are missing had been revoked."""
    await node.create_old()
    await node.create()
    cut_off(node, away)
    assert len(await node.described()) == 2
    make_stale(node, away)
    with pytest.raises(StoreUnavailable):
        await node.described()


async def test_an_unknown_hmac_of_a_length_that_either_store_has_is_looked_for(node: Moving) -> None:
    assert set(node.changes.hmac_sizes) == {64}
    catch_ups = node.old.catch_ups
    for size in (32, 64):
        with pytest.raises(TokenNotFound):
            await node.manager.renew(ALICE, bytes(size), HOUR)
    assert node.old.catch_ups == catch_ups + 1


@pytest.mark.parametrize("back", [False, True])
async def test_expired_tokens_are_removed_from_the_store_that_leaves_it_to_nodes(both: Both, back: bool) -> None:
    async for (node,) in started(both.node(back=back, cluster=LikeACluster)):
        await node.create_old()
        await node.new.create(NewToken(ALICE, CAROL, (), -1))
        both.clock.now_ms += 2 * DAY
        assert await node.manager.remove_expired() == 1
        assert not both.database.tokens
        assert len(both.cluster.tokens) == 1


async def test_other_secret_keys_touch_the_old_tokens_only(node: Moving) -> None:
    old, new = await node.create_old(), await node.create()
    node.keyring.replace(SecretKey("another key"), ())
    assert node.logs_in(new)
    assert not node.logs_in(old)
    assert node.cache.by_hmac(new.hmac) == new


async def test_an_id_of_both_stores_is_the_new_ones(both: Both, node: Moving) -> None:
    new = await node.create()
    forged = new_token(token_id=new.token.token_id, owner=BOB)
    both.database.put(forged, 0)
    node.old.deliver()
    assert node.logs_in(new)
    async for (later,) in started(both.node()):
        assert later.logs_in(new)
        later.old._report(forged.token_id)
        assert later.logs_in(new)


async def test_a_store_that_answers_last_that_it_has_no_such_token_takes_none_of_the_other_away(both: Both) -> None:
    """A read asks both, and the answer of one comes although the other's has ended the wait for it."""
    changes: list[Token | None] = []
    async for (node,) in started(both.node(back=True)):
        made = await node.new.create(NewToken(ALICE, CAROL, (), -1))
        node.cache.on_change(lambda _token_id, _before, after: changes.append(after))
        node.old._report(made.token.token_id)
        assert node.logs_in(made)
        assert changes == [], "its sessions would end"


@pytest.mark.parametrize("delay_s", [0, 0.05])
async def test_a_store_that_fails_does_not_hide_what_the_other_has(
    nodes: tuple[Moving, ...], monkeypatch: pytest.MonkeyPatch, delay_s: float
) -> None:
    """Whichever of the two answers first."""
    first, second = nodes

    async def read(_: str) -> StoredToken | None:
        await asyncio.sleep(delay_s)
        raise StoreUnavailable("the test has cut it off")

    monkeypatch.setattr(second.old, "read", read)
    made = await first.create()
    stored = await second.source.read(made.token.token_id)
    assert stored is not None
    assert stored.token == made.token
    with pytest.raises(StoreUnavailable):
        await second.source.read(new_token().token_id)


async def test_revocations_of_both_stores_arrive(nodes: tuple[Moving, ...]) -> None:
    first, second = nodes
    old, new = await first.create_old(), await first.create()
    await second.manager.catch_up_if_possible()
    await first.manager.expire(ALICE, old.hmac, -1)
    await first.manager.expire(ALICE, new.hmac, -1)
    second.old.deliver()
    assert not second.logs_in(old)
    await second.new.catch_up()
    assert not second.logs_in(new)
