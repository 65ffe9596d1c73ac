"""Many tokens in a ZooKeeper, written as a broker would have left them there.

    prepared = PreparedTokens(folder, 100_000)
    prepared.copy_to(data_dir)          # of an EmbeddedZooKeeper that is not running
    prepared.ids                        # token ids; their secrets follow from SECRET_KEY

Written once and kept in the folder, because 100,000 znodes take half a minute; each server gets a copy of its own.
A few owners have exactly as many tokens as `OWNERS` says, for measurements of describe; `AUDITOR` may describe theirs
by ACL. All live for weeks.
"""

from __future__ import annotations

import base64
import hmac
import os
import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient

from kafka_dt.identity.acls.binding import (
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kafka_dt.tokens import Principal, Token
from kafka_dt.tokens.keyring import SecretKey
from kafka_dt.zookeeper.embedded.server import HEAP_MB, EmbeddedZooKeeper
from kafka_dt.zookeeper.sealing.sealed import SALT_BYTES, seal
from kafka_dt.zookeeper.znodes.acls import AclZnode
from kafka_dt.zookeeper.znodes.kafka import TokenZnode
from tests.support.brokers.broker import SECRET_KEY

OWNERS: Final = {"ten": 10, "thousand": 1_000, "tenthousand": 10_000}
"""Who has how many tokens, as far as there are enough; `EVERYBODY_ELSE` has the rest."""
EVERYBODY_ELSE: Final = "bulk"
AUDITOR: Final = "auditor"

_KEY: Final = SecretKey(SECRET_KEY)
_BATCH: Final = 200
_SESSION_S: Final = 40.0
"""The most that a ZooKeeper grants: it stands still for seconds while it copies a million znodes."""
_DAY_S: Final = 24 * 3600
_LIFE_S: Final = 30 * _DAY_S
_MAX_AGE_S: Final = 20 * _DAY_S
"""Tokens that were prepared earlier are prepared anew: they would end soon."""


class PreparedTokens:
    """The data directory of a ZooKeeper with tokens in it.

    Args:
        folder: where it is kept.
        count: how many tokens.
        sealed: whether they are sealed as kafka-dt does it by default.
    """

    def __init__(self, folder: Path, count: int, *, sealed: bool = False) -> None:
        self._folder = folder / f"tokens-{count}{'-sealed' * sealed}"
        self._write = _sealed if sealed else TokenZnode.encode
        self.count = count
        self.ids = token_ids(count)

    def copy_to(self, data_dir: Path) -> None:
        """Give a server that is not running these tokens and nothing else; prepares them if need be."""
        complete = self._folder / "complete"
        if not complete.exists() or time.time() - complete.stat().st_mtime > _MAX_AGE_S:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._prepare()
            complete.touch()
        shutil.rmtree(data_dir, ignore_errors=True)
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copytree(self._folder / "data", data_dir / "data")

    def _prepare(self) -> None:
        with EmbeddedZooKeeper(self._folder, heap_mb=heap_mb(self.count)) as server:
            kazoo = KazooClient(hosts=server.address, timeout=_SESSION_S)
            kazoo.start()
            try:
                self._write_tokens(kazoo)
                _write_acls(kazoo)
            finally:
                kazoo.stop()
                kazoo.close()

    def _write_tokens(self, kazoo: KazooClient) -> None:
        kazoo.ensure_path(TokenZnode.PARENT)
        now_ms = time.time_ns() // 1_000_000
        owners = owners_of(self.count)
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            for begin in range(0, self.count, _BATCH):
                named = zip(self.ids[begin : begin + _BATCH], owners[begin : begin + _BATCH], strict=True)
                part = [_token(token_id, owner, now_ms) for token_id, owner in named]
                batch = kazoo.transaction()
                for token, data in zip(part, threads.map(self._write, part), strict=True):
                    batch.create(TokenZnode.path(token.token_id), data)
                for result in batch.commit():
                    if isinstance(result, Exception):
                        raise result


def heap_mb(count: int) -> int:
    """Say how much a ZooKeeper with so many tokens may take: it has all of them in memory, at some 2 KiB each."""
    return HEAP_MB + count // 400


def token_ids(count: int) -> list[str]:
    """Make the ids of so many tokens, always the same ones."""
    choice = random.Random(count)  # noqa: S311 - not a secret
    return [base64.urlsafe_b64encode(choice.randbytes(16)).rstrip(b"=").decode() for _ in range(count)]


def password_of(token_id: str) -> str:
    """Give what a client logs in with: the HMAC as base64."""
    return base64.b64encode(hmac.digest(SECRET_KEY.encode(), token_id.encode(), "sha512")).decode()


def owners_of(count: int) -> list[str]:
    """Say who owns each of so many tokens; an owner of `OWNERS` whose tokens would be more than half gets none."""
    owners: list[str] = []
    for owner, share in OWNERS.items():
        if share <= count // 2:
            owners += [owner] * share
    return owners + [EVERYBODY_ELSE] * (count - len(owners))


def _token(token_id: str, owner: str, now_ms: int) -> Token:
    principal = Principal("User", owner)
    end_ms = now_ms + _LIFE_S * 1000
    return Token(
        token_id=token_id,
        owner=principal,
        requester=principal,
        renewers=(),
        issue_timestamp_ms=now_ms,
        max_timestamp_ms=end_ms,
        expiry_timestamp_ms=end_ms,
    )


def _sealed(token: Token) -> bytes:
    return seal(_KEY, TokenZnode.encode(replace(token, key_id=_KEY.id)), os.urandom(SALT_BYTES))


def _write_acls(kazoo: KazooClient) -> None:
    entry = AccessControlEntry(Principal("User", AUDITOR), "*", AclOperation.DESCRIBE_TOKENS, AclPermissionType.ALLOW)
    for owner in OWNERS:
        pattern = ResourcePattern(ResourceType.USER, f"User:{owner}", PatternType.LITERAL)
        kazoo.create(AclZnode.path(pattern), AclZnode.encode((entry,)), makepath=True)
