"""Entries of described tokens are used again as long as they are true, and kept in bounded number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kafka_dt.server.handlers.described import DescribedTokens
from kafka_dt.tokens import DelegationToken, Principal, Token
from protocol import APIS, ApiKey, element_type

ALICE = Principal.user("alice")
RESPONSES = APIS[ApiKey.DESCRIBE_DELEGATION_TOKEN].response


def layout(version: int) -> Any:
    return element_type(RESPONSES[version], "tokens")


def held(token_id: str) -> DelegationToken:
    return DelegationToken(Token(token_id, ALICE, ALICE, (), 1, 3, 2), b"hmac of " + token_id.encode())


def test_an_entry_is_encoded_once_for_each_layout() -> None:
    entries, token = DescribedTokens(), held("a")
    newest = entries.entry(layout(3), token)
    assert entries.entry(layout(3), token) is newest
    assert entries.entry(layout(2), token) != newest
    assert entries.entry(layout(3), token) is newest


def test_a_token_in_another_state_gets_another_entry() -> None:
    entries, token = DescribedTokens(), held("a")
    before = entries.entry(layout(3), token)
    renewed = replace(token, token=replace(token.token, expiry_timestamp_ms=3))
    assert entries.entry(layout(3), renewed) != before


def test_the_oldest_entries_go_first() -> None:
    entries, tokens = DescribedTokens(max_entries=2), [held(name) for name in "abc"]
    first, second, _ = [entries.entry(layout(3), token) for token in tokens]
    assert entries.entry(layout(3), tokens[1]) is second
    again = entries.entry(layout(3), tokens[0])
    assert again == first
    assert again is not first
