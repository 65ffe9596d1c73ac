"""Entries of described tokens are used again as long as they are true, and kept as long as there is room."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from typing import Any

from kafka_dt.server.handlers.described import KEEPING_BYTES, DescribedTokens
from kafka_dt.tokens import DelegationToken, Keyring, Principal, SecretKey, StoredToken, Token, TokenCache
from kafka_dt_protocol import APIS, ApiKey, element_type

ALICE = Principal.user("alice")
RESPONSES = APIS[ApiKey.DESCRIBE_DELEGATION_TOKEN].response


def layout(version: int) -> Any:
    return element_type(RESPONSES[version], "tokens")


class Held(dict[str, DelegationToken]):
    """The tokens that the cache holds."""

    def add(self, token_id: str, expiry_ms: int = 2) -> DelegationToken:
        token = Token(token_id, ALICE, ALICE, (), 1, 3, expiry_ms)
        self[token_id] = DelegationToken(token, b"hmac of " + token_id.encode())
        return self[token_id]


async def entries(described: DescribedTokens, *tokens: DelegationToken, version: int = 3) -> list[bytes]:
    return list(await described.entries(layout(version), in_batches(*tokens)))


async def in_batches(*tokens: DelegationToken) -> AsyncIterator[list[str]]:
    yield [each.token.token_id for each in tokens]


async def entry(described: DescribedTokens, token: DelegationToken, version: int = 3) -> bytes:
    (found,) = await entries(described, token, version=version)
    return found


async def test_an_entry_is_encoded_once_for_each_layout() -> None:
    held = Held()
    described, token = DescribedTokens(held.get), held.add("a")
    newest = await entry(described, token)
    assert await entry(described, token) is newest
    assert await entry(described, token, version=2) != newest
    assert await entry(described, token) is newest


async def test_a_token_in_another_state_gets_another_entry() -> None:
    held = Held()
    described, token = DescribedTokens(held.get), held.add("a")
    before = await entry(described, token)
    renewed = held.add("a", expiry_ms=3)
    described.token_changed("a", token.token, renewed.token)
    after = await entry(described, renewed)
    assert after != before
    assert await entry(described, renewed) is after


async def test_a_token_that_is_shown_with_the_hmac_of_another_key_gets_another_entry() -> None:
    old, new = SecretKey("old"), SecretKey("new")
    keyring = Keyring(old)
    cache = TokenCache(keyring)
    described = DescribedTokens(cache.get)
    cache.on_change(described.token_changed)
    cache.put(StoredToken(Token("a", ALICE, ALICE, (), 1, 3, 2)))
    for keys, shown in (((new, old), old), ((old, new), new), ((old,), old), ((new,), new)):
        keyring.replace(keys[0], keys[1:])
        known = cache.get("a")
        assert known is not None
        assert known.hmac == shown.hmac("a")
        assert known.hmac in await entry(described, known)


async def test_the_garbage_collector_looks_at_nothing_that_grows_with_the_tokens() -> None:
    held = Held()
    described = DescribedTokens(held.get)
    tokens = [held.add(f"{number:03}") for number in range(100)]
    found = await described.entries(layout(3), in_batches(*tokens))
    gc.collect()
    (kept,) = described._by_layout.values()
    assert len(kept.encoded) == len(tokens)
    assert not any(map(gc.is_tracked, (kept.encoded, *found.batches, *found)))


async def test_a_listing_larger_than_the_room_uses_the_same_entries_each_time() -> None:
    held = Held()
    tokens = [held.add(f"{number:03}") for number in range(100)]
    size = len(await entry(DescribedTokens(held.get), tokens[0])) + KEEPING_BYTES
    described = DescribedTokens(held.get, max_bytes=40 * size)
    first, second = await entries(described, *tokens), await entries(described, *tokens)
    assert first == second
    assert [one is other for one, other in zip(first, second, strict=True)] == [True] * 40 + [False] * 60


async def test_a_token_that_changes_or_goes_makes_room() -> None:
    held = Held()
    tokens = [held.add(f"{number:03}") for number in range(3)]
    size = len(await entry(DescribedTokens(held.get), tokens[0])) + KEEPING_BYTES
    described = DescribedTokens(held.get, max_bytes=2 * size)
    await entries(described, *tokens)
    del held["000"]
    described.token_changed("000", tokens[0].token, None)
    last = await entry(described, tokens[2])
    assert await entry(described, tokens[2]) is last
