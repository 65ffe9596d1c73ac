"""What the cache makes of tokens by the secret keys they are of, and of another ring of keys."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_dt.tokens import Keyring, SecretKey, StoredToken, Token, TokenCache
from tests.support.tokens.nodes import ALICE, MALLORY
from tests.support.tokens.store_contract import new_token

OLD, NEW, OTHER = (SecretKey(text) for text in ("old", "new", "other"))


def stored(token: Token, revision: int = 1) -> StoredToken:
    return StoredToken(token, 0, revision)


@pytest.fixture
def keyring() -> Keyring:
    return Keyring(NEW, previous=[OLD])


@pytest.fixture
def cache(keyring: Keyring) -> TokenCache:
    return TokenCache(keyring)


@pytest.fixture
def heard(cache: TokenCache) -> list[tuple[Token | None, Token | None]]:
    heard: list[tuple[Token | None, Token | None]] = []
    cache.on_change(lambda _, before, after: heard.append((before, after)))
    return heard


def of_old(**changes: object) -> Token:
    return new_token(key_id=OLD.id, **changes)


def test_a_token_is_known_by_the_hmac_of_its_key_alone(cache: TokenCache) -> None:
    token = of_old()
    cache.put(stored(token))

    delegation = cache.get(token.token_id)
    assert delegation is not None
    assert delegation.token == token
    assert delegation.hmacs == (OLD.hmac(token.token_id),)
    assert cache.by_hmac(OLD.hmac(token.token_id)) is delegation
    assert cache.by_hmac(NEW.hmac(token.token_id)) is None


def test_a_token_that_names_no_key_is_known_by_the_hmac_of_each_and_that_of_the_oldest_is_shown(
    cache: TokenCache,
) -> None:
    token = new_token()
    cache.put(stored(token))

    delegation = cache.get(token.token_id)
    assert delegation is not None
    assert (delegation.hmac, delegation.alternatives) == (OLD.hmac(token.token_id), (NEW.hmac(token.token_id),))
    assert all(cache.by_hmac(key.hmac(token.token_id)) is delegation for key in (OLD, NEW))

    cache.remove(token.token_id)
    assert all(cache.by_hmac(key.hmac(token.token_id)) is None for key in (OLD, NEW))


def test_a_rewrite_that_does_not_name_the_key_leaves_it_known(cache: TokenCache) -> None:
    token = of_old()
    cache.put(stored(token))
    renewed = token.expiring_at(1)
    cache.put(stored(replace(renewed, key_id=None), 2))

    delegation = cache.get(token.token_id)
    assert delegation is not None
    assert (delegation.token, delegation.alternatives) == (renewed, ())


def test_a_rewrite_that_names_the_key_makes_it_known(
    cache: TokenCache, heard: list[tuple[Token | None, Token | None]]
) -> None:
    unknown = new_token()
    cache.put(stored(unknown))
    known = replace(unknown, key_id=NEW.id)
    cache.put(stored(known, 2))

    delegation = cache.get(known.token_id)
    assert delegation is not None
    assert delegation.hmacs == (NEW.hmac(known.token_id),)
    assert cache.by_hmac(OLD.hmac(known.token_id)) is None
    # A client that logged in with the other HMAC has no session any more.
    assert heard == [(None, unknown), (unknown, None), (None, known)]


def test_a_token_of_a_key_that_is_not_in_the_ring_is_not_there(
    cache: TokenCache, heard: list[tuple[Token | None, Token | None]]
) -> None:
    token = new_token(key_id=OTHER.id)
    cache.put(stored(token))

    assert cache.get(token.token_id) is None
    assert cache.by_hmac(OTHER.hmac(token.token_id)) is None
    assert cache.concerning(None) == cache.concerning([token.owner]) == []
    assert len(cache) == 0
    assert heard == []


def test_the_tokens_of_a_key_go_with_it_and_come_back_when_the_store_reports_them(
    keyring: Keyring, cache: TokenCache, heard: list[tuple[Token | None, Token | None]]
) -> None:
    gone, stays = of_old(owner=MALLORY), new_token(owner=ALICE, key_id=NEW.id)
    cache.put(stored(gone))
    cache.put(stored(stays, 2))
    heard.clear()

    keyring.replace(NEW)
    assert cache.get(gone.token_id) is None
    assert cache.by_hmac(OLD.hmac(gone.token_id)) is None
    assert [each.token for each in cache.concerning(None)] == [stays]
    assert cache.concerning([MALLORY]) == []
    assert heard == [(gone, None)]
    cache.put(stored(gone))
    assert cache.get(gone.token_id) is None

    keyring.replace(NEW, [OLD])
    cache.put(stored(gone))
    delegation = cache.by_hmac(OLD.hmac(gone.token_id))
    assert delegation is not None
    assert delegation.token == gone
    assert heard == [(gone, None), (None, gone)]


def test_another_current_key_changes_nothing_for_tokens_that_name_theirs(
    keyring: Keyring, cache: TokenCache, heard: list[tuple[Token | None, Token | None]]
) -> None:
    token = of_old()
    cache.put(stored(token))
    before = cache.get(token.token_id)
    heard.clear()
    keyring.replace(OTHER, [NEW, OLD])
    assert cache.get(token.token_id) is before
    assert heard == []


def test_one_more_key_ends_no_session(
    keyring: Keyring, cache: TokenCache, heard: list[tuple[Token | None, Token | None]]
) -> None:
    token = new_token()
    cache.put(stored(token))
    heard.clear()
    keyring.replace(OTHER, [NEW, OLD])

    delegation = cache.get(token.token_id)
    assert delegation is not None
    assert delegation.hmacs == tuple(key.hmac(token.token_id) for key in (OLD, NEW, OTHER))
    assert all(cache.by_hmac(hmac) is delegation for hmac in delegation.hmacs)
    assert heard == []


def test_one_key_less_ends_the_sessions_of_tokens_that_may_have_been_of_it(
    keyring: Keyring, cache: TokenCache, heard: list[tuple[Token | None, Token | None]]
) -> None:
    token, other = new_token(), new_token(key_id=NEW.id)
    cache.put(stored(token))
    cache.put(stored(other, 2))
    heard.clear()
    keyring.replace(NEW)

    assert cache.by_hmac(OLD.hmac(token.token_id)) is None
    assert cache.by_hmac(NEW.hmac(token.token_id)) is cache.get(token.token_id)
    assert [each.token for each in cache.concerning(None)] == [token, other]
    assert heard == [(token, None), (None, token)]


RINGS = st.permutations((OLD, NEW, OTHER)).flatmap(
    lambda keys: st.integers(1, 3).map(lambda count: tuple(keys[:count]))
)
TOKENS = [new_token() for _ in range(3)]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(TOKENS), st.sampled_from((None, OLD.id, NEW.id, OTHER.id)), st.integers(0, 9)),
        st.sampled_from(TOKENS),
        RINGS,
    ),
    max_size=25,
)


@given(steps=STEPS, first=RINGS)
def test_it_holds_what_one_holds_that_has_had_the_last_ring_all_the_time(
    steps: list[tuple[Token, str | None, int] | Token | tuple[SecretKey, ...]], first: tuple[SecretKey, ...]
) -> None:
    keyring = Keyring(first[0], previous=first[1:])
    cache = TokenCache(keyring)
    known: dict[str, Token] = {}
    told: dict[str, Token] = {}

    def listener(token_id: str, before: Token | None, after: Token | None) -> None:
        assert told.pop(token_id, None) == before
        if after is not None:
            told[token_id] = after

    cache.on_change(listener)
    for revision, step in enumerate(steps):
        if isinstance(step, Token):
            cache.apply(step.token_id, None)
            known.pop(step.token_id, None)
        elif isinstance(step[0], Token):
            token, key_id, expiry = step
            written = replace(token.expiring_at(expiry), key_id=key_id)
            before = known.get(token.token_id)
            if key_id is None and before is not None:
                written = replace(written, key_id=before.key_id)
            known[token.token_id] = written
            _drop_those_of_other_keys(known, keyring)
            cache.put(StoredToken(replace(token.expiring_at(expiry), key_id=key_id), 0, revision))
        else:
            keyring.replace(step[0], step[1:])
            _drop_those_of_other_keys(known, keyring)

    fresh = TokenCache(keyring)
    for token in known.values():
        fresh.put(stored(token))
    assert told == {each.token.token_id: each.token for each in cache.concerning(None)}
    assert cache._token_ids == fresh._token_ids
    for token_id in known:
        assert cache.get(token_id) == fresh.get(token_id)
    assert len(cache) == len(fresh)
    assert len(cache._concerned) == len(fresh._concerned)


def _drop_those_of_other_keys(known: dict[str, Token], keyring: Keyring) -> None:
    for token in list(known.values()):
        if token.key_id is not None and keyring.get(token.key_id) is None:
            del known[token.token_id]
