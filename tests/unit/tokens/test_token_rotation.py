"""The rules while there are several secret keys, and while the ring of keys changes."""

import asyncio
from dataclasses import replace

import pytest

from kafka_dt.tokens import DelegationToken, Keyring, SecretKey, Token, TokenNotFound
from tests.support.tokens.nodes import ALICE, BOB, HOUR, START, Cluster, Node, nothing_more

OLD, NEW = SecretKey("old"), SecretKey("new")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def keyring() -> Keyring:
    return Keyring(OLD)


@pytest.fixture
async def node(cluster: Cluster, keyring: Keyring) -> Node:
    node = cluster.node_with(keyring)
    await node.manager.start()
    return node


async def create(node: Node) -> DelegationToken:
    return await node.manager.create(ALICE, ALICE, [BOB], -1)


async def written_by_a_broker(cluster: Cluster, node: Node, key: SecretKey) -> DelegationToken:
    """A token as a broker with that key makes it; it does not say so."""
    made = await create(node)
    stored = cluster.database.tokens.pop(made.token.token_id)
    node.cache.remove(made.token.token_id)
    cluster.database.put(replace(stored.token, key_id=None), 0)
    await node.store.catch_up()
    return DelegationToken(stored.token, key.hmac(made.token.token_id))


async def test_a_token_is_of_the_key_that_is_current_when_it_is_made(
    cluster: Cluster, keyring: Keyring, node: Node
) -> None:
    first = await create(node)
    keyring.replace(NEW, [OLD])
    second = await create(node)

    for made, key in ((first, OLD), (second, NEW)):
        assert made.hmacs == (key.hmac(made.token.token_id),)
        assert cluster.stored(made.token.token_id) == made.token
        assert made.token.key_id == key.id
        assert node.manager.find(made.token.token_id) == made


async def test_another_key_during_a_create_does_not_part_the_id_from_the_hmac(keyring: Keyring, node: Node) -> None:
    def rotate() -> None:
        keyring.replace(NEW, [OLD])

    node.store.before_write = rotate
    made = await create(node)
    assert keyring.current is NEW
    assert (made.token.key_id, made.hmac) == (OLD.id, OLD.hmac(made.token.token_id))
    assert node.manager.find(made.token.token_id) == made


async def test_a_key_that_leaves_the_ring_during_a_create_makes_no_token(
    cluster: Cluster, keyring: Keyring, node: Node
) -> None:
    def leave() -> None:
        keyring.replace(NEW)

    node.store.before_write = leave
    made = await create(node)
    assert made.hmacs == (NEW.hmac(made.token.token_id),)
    assert node.manager.find(made.token.token_id) == made
    assert list(cluster.database.tokens) == [made.token.token_id]


async def test_a_token_of_a_key_that_is_gone_may_be_taken_back_by_somebody_else(
    cluster: Cluster, keyring: Keyring, node: Node
) -> None:
    def expire_all() -> None:
        keyring.replace(NEW)
        for token_id in list(cluster.database.tokens):
            cluster.database.remove(token_id)

    node.store.before_write = expire_all
    made = await create(node)
    assert list(cluster.database.tokens) == [made.token.token_id]


async def test_tokens_of_older_keys_are_renewed_and_expired_as_before(
    cluster: Cluster, keyring: Keyring, node: Node
) -> None:
    made = await create(node)
    keyring.replace(NEW, [OLD])
    assert await node.manager.renew(BOB, made.hmac, HOUR) == START + HOUR
    stored = cluster.stored(made.token.token_id)
    assert stored is not None
    assert stored.key_id == OLD.id
    with pytest.raises(TokenNotFound):
        await node.manager.renew(BOB, NEW.hmac(made.token.token_id), HOUR)
    assert await node.manager.expire(ALICE, made.hmac, -1) == START


@pytest.mark.parametrize("key", [OLD, NEW], ids=["old", "new"])
async def test_a_token_that_names_no_key_is_changed_by_the_hmac_of_each(
    cluster: Cluster, keyring: Keyring, node: Node, key: SecretKey
) -> None:
    keyring.replace(NEW, [OLD])
    made = await written_by_a_broker(cluster, node, key)
    (shown,) = await node.describe(ALICE, [ALICE], nothing_more)
    assert shown.hmac == OLD.hmac(made.token.token_id)

    assert await node.manager.renew(BOB, made.hmac, HOUR) == START + HOUR
    stored = cluster.stored(made.token.token_id)
    assert stored is not None
    assert stored.key_id is None
    assert await node.manager.expire(ALICE, made.hmac, -1) == START


async def test_a_broker_that_renews_a_token_does_not_take_its_key_away(cluster: Cluster, node: Node) -> None:
    made = await create(node)
    cluster.database.put(replace(made.token.expiring_at(START + 5), key_id=None), 1)
    await node.store.catch_up()

    await node.manager.renew(ALICE, made.hmac, HOUR)

    stored = cluster.stored(made.token.token_id)
    assert stored is not None
    assert stored.key_id == OLD.id


async def test_a_key_that_leaves_the_ring_while_a_change_waits_is_good_for_nothing(
    cluster: Cluster, keyring: Keyring, node: Node
) -> None:
    keyring.replace(NEW, [OLD])
    made = await written_by_a_broker(cluster, node, OLD)
    conflicts = 0

    def leave() -> None:
        nonlocal conflicts
        conflicts += 1
        stored = cluster.database.tokens[made.token.token_id]
        cluster.database.put(stored.token, stored.version + 1)
        keyring.replace(NEW)

    node.store.before_write = leave
    with pytest.raises(TokenNotFound):
        await node.manager.renew(ALICE, made.hmac, HOUR)
    assert conflicts == 1


async def test_a_token_that_only_another_key_can_read_is_found_as_soon_as_the_key_is_here(
    cluster: Cluster, keyring: Keyring, node: Node
) -> None:
    def can_read(token: Token) -> bool:
        return token.key_id is None or keyring.get(token.key_id) is not None

    node.store.can_read = can_read
    made = await create(cluster.node(NEW))
    token_id = made.token.token_id
    assert await node.manager.lookup(token_id) is None
    assert await node.manager.lookup(token_id) is None
    assert node.store.reads == [token_id]

    keyring.replace(OLD, [NEW])
    assert await node.manager.lookup(token_id) == made


async def test_what_could_not_be_read_is_there_again_when_the_store_has_been_asked_to(
    cluster: Cluster, keyring: Keyring, node: Node
) -> None:
    node.store.can_read = lambda token: keyring.get(token.key_id or OLD.id) is not None
    made = [await create(cluster.node(NEW)) for _ in range(3)]
    await node.store.catch_up()
    assert len(node.cache) == 0

    keyring.replace(OLD, [NEW])
    await node.store.reread_unreadable()
    assert set(node.cache.concerning(None)) == set(made)


async def test_logins_go_on_while_the_ring_changes(keyring: Keyring, node: Node) -> None:
    """Whatever mixture of old and new files is read: no token of a key that stays is missing for a moment."""
    made = await create(node)
    for current, *previous in ((OLD, NEW), (OLD, NEW, OLD), (NEW, OLD), (NEW, NEW, OLD), (NEW, OLD)):
        keyring.replace(current, previous)
        assert node.manager.find(made.token.token_id) == made
        await asyncio.sleep(0)
