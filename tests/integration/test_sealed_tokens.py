"""Sealed tokens in a real ZooKeeper: the format holds, the keys decide who reads them, the order of changes stays."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from kafka_dt.tokens import (
    GuardedChanges,
    Keyring,
    SecretKey,
    StoreUnavailable,
    Token,
    TokenCache,
    TokenLimits,
    TokenManager,
)
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.operations import Create, Delete, SetData
from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode, TokenZnode
from tests.integration.zookeeper_nodes import caught_up, client_of, eventually, node_of, now_ms, settings
from tests.support.processes.tcp_gate import TcpGate
from tests.support.tokens.store_contract import new_token
from tests.support.zookeeper import kip395
from tests.support.zookeeper.token_codecs import FOREIGN, HeldExecutor, codec_of

SECRET = "the secret key of the sealed tokens"
OLD_SECRET = "the one before"
KEY, OLD_KEY = SecretKey(SECRET), SecretKey(OLD_SECRET)


def token_of(key: SecretKey = KEY) -> Token:
    return new_token(key_id=key.id)


def sealing(key: SecretKey = KEY, *previous: SecretKey, **how: Any) -> Any:
    return codec_of(Keyring(key, previous=previous), **{"seal": True} | how)


@pytest.fixture
async def zookeeper(zookeeper_connect: str) -> AsyncIterator[ZooKeeperClient]:
    """A client that looks behind the nodes, and writes what they would not."""
    async with client_of(settings(zookeeper_connect)) as client:
        await client.ensure_path(TokenChangeZnode.PARENT)
        await client.ensure_path(TokenZnode.PARENT)
        yield client


async def content(zookeeper: ZooKeeperClient, token: Token) -> bytes:
    return (await zookeeper.get(TokenZnode.path(token.token_id))).data


async def test_the_independent_decoder_opens_what_the_store_wrote(
    zookeeper_connect: str, zookeeper: ZooKeeperClient
) -> None:
    async with node_of(settings(zookeeper_connect), codec=sealing()) as node:
        token = token_of()
        created = await node.store.create(token)
        first = await content(zookeeper, token)
        document = json.loads(kip395.decode(first, SECRET))
        assert document == {
            "version": 3,
            "owner": "User%3Aalice",
            "tokenRequester": "User%3Aadmin",
            "renewers": ["User%3Abob", "User%3Acarol%2C%20%2A%7E"],
            "issueTimestamp": token.issue_timestamp_ms,
            "maxTimestamp": token.max_timestamp_ms,
            "expiryTimestamp": token.expiry_timestamp_ms,
            "tokenId": token.token_id,
            "keyId": KEY.id,
        }
        await node.store.update(token.expiring_at(7), created.version)
        second = await content(zookeeper, token)
        assert json.loads(kip395.decode(second, SECRET)) == document | {"expiryTimestamp": 7}
        assert base64.b64decode(first)[4:20] != base64.b64decode(second)[4:20], "each write has a salt of its own"
        with pytest.raises(kip395.NotSealed):
            kip395.decode(second, OLD_SECRET)


async def test_what_the_independent_program_seals_is_served(zookeeper_connect: str, zookeeper: ZooKeeperClient) -> None:
    token = token_of()
    data = kip395.encode(TokenZnode.encode(token), SECRET, b"0123456789abcdef")
    await zookeeper.create(TokenZnode.path(token.token_id), data)
    async with node_of(settings(zookeeper_connect), codec=sealing()) as node:
        assert node.token(token.token_id) == token


async def test_with_the_switch_off_tokens_are_written_plain_and_sealed_ones_are_read(
    zookeeper_connect: str, zookeeper: ZooKeeperClient
) -> None:
    connect = settings(zookeeper_connect)
    async with node_of(connect, codec=sealing()) as on, node_of(connect, codec=sealing(seal=False)) as off:
        sealed, plain = token_of(), token_of()
        await on.store.create(sealed)
        await off.store.create(plain)
        await asyncio.gather(on.store.catch_up(), off.store.catch_up())
        assert on.token(plain.token_id) == off.token(plain.token_id) == plain
        assert on.token(sealed.token_id) == off.token(sealed.token_id) == sealed
        assert await content(zookeeper, plain) == TokenZnode.encode(plain)
        await off.store.update(sealed.expiring_at(7), 0)
        assert await content(zookeeper, sealed) == TokenZnode.encode(sealed.expiring_at(7))


async def _spoil(zookeeper: ZooKeeperClient, tokens: list[Token]) -> dict[str, str]:
    """Write tokens that cannot be served; the reason for each."""
    flipped = bytearray(kip395.encode(TokenZnode.encode(tokens[0]), SECRET, bytes(16)))
    flipped[100] = ord("A") if flipped[100] != ord("A") else ord("B")
    spoilt = [
        (bytes(flipped), "its MAC fits none of the secret keys"),
        (kip395.encode(b"x", SECRET, bytes(16))[:4] + b"Ag==", "version 2 of sealed bytes is not known"),
        (kip395.encode(TokenZnode.encode(tokens[0]), SECRET, bytes(16)), "it names another token"),
        (
            kip395.encode(TokenZnode.encode(replace(tokens[3], key_id=FOREIGN.id)), SECRET, bytes(16)),
            f"the key {FOREIGN.id} that made it is none of the secret keys",
        ),
        (kip395.encode(b"{", SECRET, bytes(16)), "not JSON"),
    ]
    for token, (data, _) in zip(tokens, spoilt, strict=True):
        await zookeeper.create(TokenZnode.path(token.token_id), data)
    return {token.token_id: reason for token, (_, reason) in zip(tokens, spoilt, strict=True)}


async def test_what_cannot_be_read_is_counted_and_never_deleted_and_the_others_are_served(
    zookeeper_connect: str, zookeeper: ZooKeeperClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    good = token_of()
    await zookeeper.create(TokenZnode.path(good.token_id), kip395.encode(TokenZnode.encode(good), SECRET, bytes(16)))
    reasons = await _spoil(zookeeper, [token_of() for _ in range(5)])
    keyring = Keyring(KEY)
    async with node_of(settings(zookeeper_connect), codec=codec_of(keyring, seal=True)) as node:
        cache = TokenCache(keyring)
        node.store.on_change(cache.apply)
        changes = GuardedChanges(node.store, cache, keyring, TokenLimits(), now_ms=now_ms, random_bytes=bytes)
        manager = TokenManager(node.store, changes, cache, TokenLimits(), now_ms=now_ms)
        assert node.store.unreadable == reasons
        assert node.store.unreadable_tokens == 5
        assert [await node.store.read(token_id) for token_id in reasons] == [None] * len(reasons)
        await node.store.read(good.token_id)
        assert await manager.remove_expired() == 1, "the good one, which ended long ago"
        assert set(await zookeeper.children(TokenZnode.PARENT)) == set(reasons)
        await node.store.reread_unreadable()
        assert node.store.unreadable == reasons
    texts = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert texts.count("5 delegation tokens are not readable, and not served") == 1
    for token_id, reason in reasons.items():
        assert texts.count(f"the delegation token {TokenZnode.path(token_id)} is not readable: {reason}") == 1
    assert SECRET not in caplog.text


async def test_a_key_that_comes_later_opens_what_could_not_be_read(
    zookeeper_connect: str, zookeeper: ZooKeeperClient
) -> None:
    token, keyring = token_of(OLD_KEY), Keyring(KEY)
    await zookeeper.create(
        TokenZnode.path(token.token_id), kip395.encode(TokenZnode.encode(token), OLD_SECRET, bytes(16))
    )
    async with node_of(settings(zookeeper_connect), codec=codec_of(keyring, seal=True)) as node:
        asked: list[str] = []
        node.store.on_unknown_key(lambda: asked.append("keys"))
        assert list(node.store.unreadable) == [token.token_id]
        keyring.replace(KEY, [OLD_KEY])
        await node.store.reread_unreadable()
        assert node.store.unreadable_tokens == 0
        assert node.token(token.token_id) == token
        assert node.store.unreadable == {}
        assert asked == []
        await zookeeper.multi(
            [
                SetData(TokenZnode.path(token.token_id), TokenZnode.encode(replace(token, key_id=FOREIGN.id))),
                Create(TokenChangeZnode.PREFIX, TokenChangeZnode.encode(token.token_id), sequence=True),
            ]
        )
        await eventually(lambda: asked == ["keys"])
        assert node.states[token.token_id] is None


async def test_a_key_that_comes_while_zookeeper_is_away_opens_what_could_not_be_read(
    zookeeper_connect: str, zookeeper: ZooKeeperClient
) -> None:
    """In the same session nothing is compared when the connection is back."""
    token, keyring = token_of(OLD_KEY), Keyring(KEY)
    await zookeeper.create(
        TokenZnode.path(token.token_id), kip395.encode(TokenZnode.encode(token), OLD_SECRET, bytes(16))
    )
    server, _, chroot = zookeeper_connect.partition("/")
    host, _, port = server.rpartition(":")
    async with TcpGate(host, int(port)) as gate:
        connect = settings(f"127.0.0.1:{gate.port}/{chroot}", session_timeout_ms=10_000)
        async with node_of(connect, codec=codec_of(keyring, seal=True)) as node:
            gate.shut()
            await eventually(lambda: not node.store.connected)
            keyring.replace(KEY, [OLD_KEY])
            with pytest.raises(StoreUnavailable):
                await node.store.reread_unreadable()
            gate.open()
            await caught_up(node)
            assert list(node.store.untried) == [token.token_id]
            stored = await node.store.read(token.token_id)
            assert stored is not None
            assert stored.token == node.token(token.token_id) == token
            assert not node.store.untried


class CountingExecutor(Executor):
    """Threads, and how often they were given something."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(2)
        self.given = 0

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.given += 1
        return self._threads.submit(work, *args, **kwargs)


async def test_comparing_everything_opens_only_what_has_changed(
    zookeeper_connect: str, zookeeper: ZooKeeperClient
) -> None:
    threads = CountingExecutor()
    async with (
        node_of(settings(zookeeper_connect), codec=sealing()) as other,
        node_of(settings(zookeeper_connect), codec=sealing(executor=threads)) as node,
    ):
        own, read, renewed = [token_of() for _ in range(20)], [token_of() for _ in range(20)], token_of()
        await asyncio.gather(*(node.store.create(token) for token in own))
        await asyncio.gather(*(other.store.create(token) for token in [*read, renewed]))
        await node.store.catch_up()
        before = threads.given
        # A change whose announcement has been purged: everything has to be compared.
        await other.store.update(renewed.expiring_at(7), 0)
        await zookeeper.multi(
            [
                Create(TokenChangeZnode.PREFIX, b"", sequence=True),
                Delete(f"{TokenChangeZnode.PREFIX}{len(own) + len(read) + 2:010d}"),
                Create(TokenChangeZnode.PREFIX, b"", sequence=True),
            ]
        )
        await node.store.catch_up()
        assert node.token(renewed.token_id) == renewed.expiring_at(7)
        assert threads.given - before <= 2
        assert all(node.token(token.token_id) == token for token in [*own, *read])


async def test_catching_up_waits_for_what_is_being_opened(zookeeper_connect: str) -> None:
    executor = HeldExecutor()
    async with (
        node_of(settings(zookeeper_connect), codec=sealing()) as other,
        node_of(settings(zookeeper_connect), codec=sealing(executor=executor)) as node,
    ):
        token = token_of()
        await other.store.create(token)
        catching_up = asyncio.create_task(node.store.catch_up())
        await eventually(lambda: len(executor) > 0)
        assert not catching_up.done()
        executor.release()
        await catching_up
        assert node.token(token.token_id) == token


async def test_a_token_that_is_deleted_while_it_is_opened_does_not_come_back(zookeeper_connect: str) -> None:
    executor = HeldExecutor()
    async with (
        node_of(settings(zookeeper_connect), codec=sealing()) as other,
        node_of(settings(zookeeper_connect), codec=sealing(executor=executor)) as node,
    ):
        token, later = token_of(), token_of()
        await other.store.create(token)
        await eventually(lambda: len(executor) > 0)
        # The other node's deletion is news that waits behind the opening; a read sees it at once.
        await other.store.delete(token.token_id, 0)
        assert await node.store.read(token.token_id) is None
        await other.store.create(later)
        catching_up = asyncio.create_task(node.store.catch_up())
        await eventually(lambda: len(executor) > 1)
        executor.release()
        await catching_up
        assert node.token(later.token_id) == later
        assert node.states[token.token_id] is None
