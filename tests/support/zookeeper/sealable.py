"""Tokens, their znodes and files of keys as the tests of bulk work and of keys use them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from kafka_dt.config import SecretKeyFiles, Settings, from_properties
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


class KeyFiles:
    """A file of the current key and one of the previous keys. At first there are forty `o` and no previous key."""

    def __init__(self, directory: Path) -> None:
        self.current, self.previous = directory / "current", directory / "previous"
        self.current.write_text("o" * 40)
        self.previous.write_text("")
        self.settings: Settings = from_properties(
            {
                "delegation.token.secret.key": f"file:{self.current}",
                "kafka.dt.secret.keys.previous": f"file:{self.previous}",
            }
        ).settings

    def read(self) -> SecretKeyFiles:
        """Return what a node reads the files by."""
        return SecretKeyFiles(self.settings)
