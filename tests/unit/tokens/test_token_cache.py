import sys
import tracemalloc

import pytest

from kafka_dt.tokens import DelegationToken, Keyring, Principal, StoredToken, Token, TokenCache
from tests.support.tokens.nodes import ALICE, BOB, CAROL, MALLORY, RandomBytes
from tests.support.tokens.store_contract import new_token

KEYRING = Keyring("the secret key")

MAX_BYTES_A_TOKEN = 1_000
"""Measured with 100,000 tokens: 720 where an owner has many of them, 1,070 where each has its own owner."""


@pytest.fixture
def cache() -> TokenCache:
    return TokenCache(KEYRING)


def token(owner: Principal = ALICE, *renewers: Principal, **changes: int) -> Token:
    return new_token(owner=owner, requester=owner, renewers=renewers, **changes)


def with_hmac(*tokens: Token) -> list[DelegationToken]:
    return [DelegationToken(each, KEYRING.current.hmac(each.token_id)) for each in tokens]


def test_a_token_is_found_by_id_and_by_hmac_and_by_whom_it_concerns(cache: TokenCache) -> None:
    first = token(ALICE, BOB, BOB, ALICE)
    cache.put(StoredToken(first, version=3, revision=7))

    (expected,) = with_hmac(first)
    assert cache.get(first.token_id) == expected
    assert cache.by_hmac(expected.hmac) == expected
    assert cache.concerning([ALICE]) == cache.concerning([BOB]) == cache.concerning(None) == [expected]
    held = cache.held(first.token_id)
    assert held is not None
    assert (held.token, held.version, held.revision) == (first, 3, 7)
    assert len(cache) == 1


def test_states_that_the_store_does_not_number_are_taken_as_they_come() -> None:
    cache = TokenCache(None)
    first = token()
    second = first.expiring_at(first.expiry_timestamp_ms + 1)
    for state in (first, second, first):
        cache.put(StoredToken(state, hmac=b"told by the store"))
        assert cache.get(first.token_id) == DelegationToken(state, b"told by the store")
    assert cache.by_hmac(b"told by the store") == cache.get(first.token_id)


def test_what_is_not_held_is_not_found(cache: TokenCache) -> None:
    cache.put(StoredToken(token(), 0, 1))
    assert cache.get("x") is None
    assert cache.held("x") is None
    assert cache.by_hmac(b"") is None
    assert cache.concerning([BOB, Principal("Group", "alice")]) == cache.concerning([]) == []
    cache.remove("x")
    assert len(cache) == 1


def test_nothing_is_left_of_a_token_that_is_gone(cache: TokenCache) -> None:
    first = token(ALICE, BOB, BOB)
    cache.put(StoredToken(first, 0, 1))
    cache.apply(first.token_id, None)
    assert len(cache) == 0
    assert cache.get(first.token_id) is None
    assert cache.by_hmac(KEYRING.current.hmac(first.token_id)) is None
    assert cache.concerning([ALICE, BOB]) == cache.concerning(None) == []
    assert not len(cache._concerned)


def test_the_order_is_that_of_arrival_also_after_changes(cache: TokenCache) -> None:
    tokens = [token(ALICE, BOB) for _ in range(50)]
    for revision, each in enumerate(tokens):
        cache.put(StoredToken(each, 0, revision))
    tokens[7] = tokens[7].expiring_at(1)
    cache.put(StoredToken(tokens[7], 1, 1_000))
    assert cache.concerning(None) == cache.concerning([ALICE]) == cache.concerning([BOB, ALICE]) == with_hmac(*tokens)


def test_each_principal_has_its_own_tokens(cache: TokenCache) -> None:
    of_alice, of_bob, of_both = token(ALICE), token(BOB), token(CAROL, ALICE, BOB)
    for revision, each in enumerate((of_alice, of_bob, of_both)):
        cache.put(StoredToken(each, 0, revision))
    assert cache.concerning([ALICE]) == with_hmac(of_alice, of_both)
    assert cache.concerning([BOB, ALICE]) == with_hmac(of_bob, of_both, of_alice)
    cache.remove(of_both.token_id)
    assert cache.concerning([CAROL, ALICE]) == with_hmac(of_alice)


def test_another_owner_and_other_renewers_move_a_token_in_the_index(cache: TokenCache) -> None:
    before = token(ALICE, BOB)
    after = new_token(token_id=before.token_id, owner=CAROL, requester=BOB, renewers=(ALICE, ALICE))
    cache.put(StoredToken(before, 0, 1))
    cache.put(StoredToken(after, 1, 2))
    for principals in ([ALICE], [BOB], [CAROL], None):
        assert cache.concerning(principals) == with_hmac(after)
    assert cache.concerning([MALLORY]) == []
    cache.remove(after.token_id)
    assert cache.concerning([ALICE, BOB, CAROL]) == []


@pytest.mark.parametrize("revision", [0, 1, 5])
def test_an_older_state_does_not_replace_a_newer_one(cache: TokenCache, revision: int) -> None:
    newer = token()
    cache.put(StoredToken(newer, 4, revision=5))
    cache.put(StoredToken(newer.expiring_at(1), 3, revision))
    assert cache.concerning(None) == with_hmac(newer)


def test_a_token_without_a_revision_is_as_old_as_can_be(cache: TokenCache) -> None:
    created = token()
    cache.put(StoredToken(created, 0, revision=0))
    cache.put(StoredToken(created.expiring_at(1), 1, revision=1))
    assert cache.concerning(None) == with_hmac(created.expiring_at(1))


def test_a_token_that_is_made_again_is_taken_whatever_its_version(cache: TokenCache) -> None:
    created = token()
    cache.put(StoredToken(created, version=4, revision=5))
    cache.remove(created.token_id)
    cache.put(StoredToken(created, version=0, revision=9))
    assert cache.concerning(None) == with_hmac(created)


def test_listeners_hear_of_every_change_once_after_it_has_happened(cache: TokenCache) -> None:
    heard: list[tuple[str, Token | None, Token | None]] = []
    known: list[int] = []
    cache.on_change(lambda token_id, before, after: heard.append((token_id, before, after)))
    cache.on_change(lambda *_: known.append(len(cache)))
    created = token()
    renewed = created.expiring_at(1)

    cache.apply(created.token_id, StoredToken(created, 0, 1))
    cache.apply(created.token_id, StoredToken(created, 0, 1))
    cache.apply(created.token_id, StoredToken(created, 1, 2))
    cache.apply(created.token_id, StoredToken(renewed, 2, 3))
    cache.apply(created.token_id, None)
    cache.apply(created.token_id, None)

    assert heard == [
        (created.token_id, None, created),
        (created.token_id, created, renewed),
        (created.token_id, renewed, None),
    ]
    assert known == [1, 1, 0]


def test_a_cache_without_a_keyring_takes_no_token() -> None:
    with pytest.raises(ValueError, match="keyring"):
        TokenCache(None).put(StoredToken(token(), 0, 1))


def test_equal_principals_are_one_object(cache: TokenCache) -> None:
    tokens = [token(Principal("User", "alice"), Principal("User", "bob")) for _ in range(3)]
    for revision, each in enumerate(tokens):
        cache.put(StoredToken(each, 0, revision))
    held = [each.token for each in cache.concerning(None)]
    assert len({id(each.owner) for each in held} | {id(each.requester) for each in held}) == 1
    assert len({id(each.renewers[0]) for each in held}) == 1


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="object sizes are CPython's")
def test_a_token_costs_less_than_a_kilobyte() -> None:
    count = 20_000
    random_bytes = RandomBytes()
    cache = TokenCache(KEYRING)
    tracemalloc.start()
    try:
        for revision in range(count):
            cache.put(_as_read_from_a_store(random_bytes(16).hex()[:22], revision))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(cache) == count
    assert size / count < MAX_BYTES_A_TOKEN


def _as_read_from_a_store(token_id: str, revision: int) -> StoredToken:
    """A token that shares nothing with the others, as if just decoded."""
    owner, requester, renewer = (Principal("User", "".join(["ali", "ce"])) for _ in range(3))
    issued = 1_700_000_000_000 + revision
    return StoredToken(
        Token(token_id, owner, requester, (renewer,), issued, issued + 604_800_000, issued + 86_400_000),
        version=0,
        revision=4_294_967_296 + revision,
    )
