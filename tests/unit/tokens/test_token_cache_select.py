"""What a describe looks at: each token once, however often and by whomever it is named."""

from __future__ import annotations

from collections.abc import Collection

from kafka_dt.tokens import Keyring, Principal, StoredToken, Token, TokenCache, Turns
from tests.support.tokens.nodes import ALICE, BOB, CAROL, DAY, MALLORY, SECRET_KEY, START, shown

OWNERS = [Principal.user(f"owner-{number}") for number in range(20)]


def cache_of(*tokens: Token, kind: type[TokenCache] = TokenCache) -> TokenCache:
    cache = kind(Keyring(SECRET_KEY))
    for number, token in enumerate(tokens, start=1):
        cache.put(StoredToken(token, version=0, revision=number))
    return cache


def token(token_id: str, owner: Principal, *renewers: Principal, requester: Principal | None = None) -> Token:
    return Token(token_id, owner, requester or owner, renewers, START, START + DAY, START + DAY)


class Looks:
    """Shows every token, counts how often it is asked, and lets something happen at the first question."""

    def __init__(self, at_first: object = None) -> None:
        self.asked: list[str] = []
        self._at_first = at_first

    def __call__(self, seen: Token) -> bool:
        self.asked.append(seen.token_id)
        return True


def unhurried() -> Turns:
    return Turns(lambda: 0.0)


async def ids(
    cache: TokenCache, owners: tuple[Principal, ...] | None, looks: Looks, requester: Principal = MALLORY
) -> list[str]:
    batches = cache.select(requester, owners, looks, unhurried())
    return [each async for batch in batches for each in batch]


async def test_a_token_that_several_named_principals_concern_is_looked_at_once() -> None:
    cache = cache_of(*(token(f"t{number}", ALICE, *OWNERS) for number in range(50)))
    looks = Looks()
    found = await ids(cache, (*OWNERS, ALICE, *OWNERS), looks)
    assert sorted(found) == sorted(looks.asked) == sorted(f"t{number}" for number in range(50))


async def test_an_owner_that_is_named_many_times_costs_what_it_costs_once() -> None:
    walked = 0

    class Counted(TokenCache):
        def copied_ids(self, principal: Principal | None = None) -> Collection[str]:
            nonlocal walked
            walked += 1
            return super().copied_ids(principal)

    cache, looks = cache_of(*(token(f"t{number}", ALICE) for number in range(50)), kind=Counted), Looks()
    assert len(await ids(cache, (ALICE,) * 5_000, looks)) == 50
    assert (len(looks.asked), walked) == (50, 1)


async def test_who_is_concerned_sees_a_token_without_being_asked_about_it() -> None:
    cache = cache_of(token("owned", ALICE), token("renewed", BOB, ALICE), token("requested", CAROL, requester=ALICE))
    looks = Looks()
    assert await ids(cache, None, looks, ALICE) == ["owned", "renewed", "requested"]
    assert looks.asked == []
    assert await ids(cache, (BOB, CAROL), looks, MALLORY) == looks.asked == ["renewed", "requested"]


async def test_tokens_are_shown_as_they_are_when_their_turn_comes_and_none_that_came_later_or_has_gone() -> None:
    tokens = [token(f"t{number}", ALICE) for number in range(100)]
    cache = cache_of(*tokens)

    renewed = tokens[70].expiring_at(START + 1)

    def changing(seen: Token) -> bool:
        if seen.token_id == "t0":
            for number in range(50, 60):
                cache.remove(f"t{number}")
            cache.put(StoredToken(renewed, version=1, revision=1_000))
            cache.put(StoredToken(token("new", ALICE), version=0, revision=1_001))
        return True

    found = [each.token for each in await shown(cache, cache.select(MALLORY, None, changing, unhurried()))]
    assert found == [*tokens[:50], *tokens[60:70], renewed, *tokens[71:]]
