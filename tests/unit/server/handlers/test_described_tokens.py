"""Entries of described tokens are used again as long as they are true, and kept as long as there is room."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from kafka_dt.server.handlers.described import KEEPING_BYTES, DescribedTokens
from kafka_dt.tokens import DelegationToken, Principal, Token
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


async def in_batches(*tokens: DelegationToken) -> AsyncIterator[tuple[DelegationToken, ...]]:
    yield tokens


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
    renewed = replace(token, token=replace(token.token, expiry_timestamp_ms=3))
    assert await entry(described, renewed) != before
    held["a"] = renewed
    described.token_changed("a", token.token, renewed.token)
    after = await entry(described, renewed)
    assert after != before
    assert await entry(described, renewed) is after
    assert await entry(described, token) == before


async def test_a_token_that_is_known_by_another_key_gets_another_entry_although_the_cache_tells_of_no_change() -> None:
    held = Held()
    described, token = DescribedTokens(held.get), held.add("a")
    before = await entry(described, token)
    held["a"] = replace(token, hmac=b"another")
    after = await entry(described, held["a"])
    assert after != before
    assert await entry(described, held["a"]) is after


async def test_the_garbage_collector_looks_at_nothing_that_grows_with_the_tokens() -> None:
    held = Held()
    described = DescribedTokens(held.get)
    tokens = [held.add(f"{number:03}") for number in range(100)]
    found = await described.entries(layout(3), in_batches(*tokens))
    gc.collect()
    (kept,) = described._by_layout.values()
    assert len(kept.encoded) == len(tokens)
    assert not any(map(gc.is_tracked, (kept.encoded, kept.hmacs, *found.batches, *found)))


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


async def test_an_entry_of_a_token_that_has_changed_meanwhile_is_not_kept() -> None:
    held = Held()
    described, found = DescribedTokens(held.get, max_bytes=10_000), held.add("a")
    held.add("a", expiry_ms=3)
    assert await entry(described, found) is not await entry(described, found)
    del held["a"]
    assert await entry(described, found) is not await entry(described, found)
