"""Tokens and their znodes, plain and sealed, as the tests of bulk work and of keys use them."""

from __future__ import annotations

import os
from dataclasses import replace

from kafka_dt.tokens import Keyring, Principal, SecretKey, Token
from kafka_dt.zookeeper.sealing.sealed import seal
from kafka_dt.zookeeper.znodes.kafka import TokenZnode

OLD_KEY, NEW_KEY, FOREIGN_KEY = (
    SecretKey(f"{name} secret key of at least 32 characters") for name in ("one", "two", "foreign")
)
RING = Keyring(NEW_KEY, previous=[OLD_KEY])
NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000


def token(number: int = 0, *, owner: str = "alice", renewers: tuple[str, ...] = (), **fields: object) -> Token:
    """A token of the new key, issued at NOW_MS."""
    principal = Principal.user(owner)
    made = Token(
        token_id=f"token-{number:05d}",
        owner=principal,
        requester=principal,
        renewers=tuple(map(Principal.user, renewers)),
        issue_timestamp_ms=NOW_MS,
        max_timestamp_ms=NOW_MS + 7 * DAY_MS,
        expiry_timestamp_ms=NOW_MS + DAY_MS,
        key_id=NEW_KEY.id,
    )
    return replace(made, **fields)  # type: ignore[arg-type]  # fields of a Token


def plain(of: Token) -> bytes:
    return TokenZnode.encode(of)


def sealed(of: Token, key: SecretKey = NEW_KEY) -> bytes:
    return seal(key, TokenZnode.encode(of), os.urandom(16))
