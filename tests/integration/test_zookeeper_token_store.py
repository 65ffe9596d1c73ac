"""Tokens in a real ZooKeeper: the contract of the store, Kafka's layout, brokers and strangers beside us."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.security import OPEN_ACL_UNSAFE

from kafka_dt.tokens import GuardedChanges, Keyring, TokenCache, TokenLimits
from kafka_dt.tokens.creation_limits import CreationLimits
from kafka_dt.tokens.errors import StoreUnavailable, TokenLimitExceeded, TokenTooLarge
from kafka_dt.tokens.principal import Principal
from kafka_dt.zookeeper.connection.operations import Create, Delete, SetData
from kafka_dt.zookeeper.errors import NoNode
from kafka_dt.zookeeper.stores.change_purger import PurgeLimits
from kafka_dt.zookeeper.stores.tokens import ZooKeeperTokenStore
from kafka_dt.zookeeper.znodes.kafka import TokenZnode
from tests.integration.zookeeper_nodes import (
    CHANGES,
    NO_PROOF_MS,
    OF_A_STRANGER,
    announce,
    caught_up,
    client_of,
    eventually,
    node_of,
    now_ms,
    settings,
    stranger,
)
from tests.support.processes.waiting import on_this_machine
from tests.support.tokens.nodes import SECRET_KEY, Clock
from tests.support.tokens.store_contract import Place, TokenStoreContract, VersionedStoreContract, new_token
from tests.support.zookeeper.server import child_zookeeper
from tests.support.zookeeper.token_codecs import codec_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from kafka_dt.zookeeper.connection.client import ZooKeeperClient


@pytest.mark.parametrize("seal", [False, True], ids=["plain", "sealed"])
class TestZooKeeperVersions(VersionedStoreContract):
    @pytest.fixture
    async def stores(
        self, zookeeper_connect: str, *, seal: bool
    ) -> AsyncIterator[tuple[ZooKeeperTokenStore, ZooKeeperTokenStore]]:
        async with client_of(settings(zookeeper_connect)) as one, client_of(settings(zookeeper_connect)) as other:
            codec = codec_of(seal=seal)
            stores = ZooKeeperTokenStore(one, codec, now_ms=now_ms), ZooKeeperTokenStore(other, codec, now_ms=now_ms)
            yield stores
            for store in stores:
                await store.close()


@pytest.mark.parametrize("seal", [False, True], ids=["plain", "sealed"])
class TestZooKeeperTokenStore(TokenStoreContract):
    @pytest.fixture
    async def places(self, zookeeper_connect: str, clock: Clock, *, seal: bool) -> AsyncIterator[tuple[Place, Place]]:
        keyring = Keyring(SECRET_KEY)
        codec = codec_of(keyring, seal=seal)
        async with client_of(settings(zookeeper_connect)) as one, client_of(settings(zookeeper_connect)) as other:
            stores = ZooKeeperTokenStore(one, codec, now_ms=now_ms), ZooKeeperTokenStore(other, codec, now_ms=now_ms)
            first, second = (_place(store, keyring, clock) for store in stores)
            for store in stores:
                await store.load()
            yield first, second
            for store in stores:
                await store.close()


def _place(store: ZooKeeperTokenStore, keyring: Keyring, clock: Clock) -> Place:
    cache = TokenCache(keyring)
    store.on_change(cache.apply)
    changes = GuardedChanges(store, cache, keyring, TokenLimits(), now_ms=clock, random_bytes=os.urandom)
    return Place(store, changes, cache)


async def _broker_writes(client: ZooKeeperClient, token_id: str, data: bytes | None) -> None:
    """What a broker does for a change: write the token's znode without a guard, then announce it."""
    path = TokenZnode.path(token_id)
    if data is None:
        await client.delete(path)
    elif await client.exists(path) is None:
        await client.create(path, data)
    else:
        await client.multi([SetData(path, data)])
    await announce(client, token_id.encode())


async def _changes(client: ZooKeeperClient) -> list[bytes]:
    names = sorted(await client.children(CHANGES))
    return [(await client.get(f"{CHANGES}/{name}")).data for name in names]


async def test_what_is_written_is_a_brokers_layout(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as node:
        token = new_token()
        await node.store.create(token)
        renewed = await node.store.update(token.expiring_at(token.expiry_timestamp_ms + 1), 0)
        znode = await node.client.get(f"/delegation_token/tokens/{token.token_id}")
        assert json.loads(znode.data) == {
            "version": 3,
            "owner": "User%3Aalice",
            "tokenRequester": "User%3Aadmin",
            "renewers": ["User%3Abob", "User%3Acarol%2C%20%2A%7E"],
            "issueTimestamp": token.issue_timestamp_ms,
            "maxTimestamp": token.max_timestamp_ms,
            "expiryTimestamp": token.expiry_timestamp_ms + 1,
            "tokenId": token.token_id,
        }
        await node.store.delete(token.token_id, renewed.version)
        with pytest.raises(NoNode):
            await node.client.get(f"/delegation_token/tokens/{token.token_id}")
        assert sorted(await node.client.children(CHANGES)) == [f"token_change_000000000{n}" for n in range(3)]
        assert await _changes(node.client) == [token.token_id.encode()] * 3


async def test_a_refused_change_writes_nothing(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as node:
        token = new_token()
        await node.store.create(token)
        for refused in (node.store.create(token), node.store.update(token, 5), node.store.delete(token.token_id, 5)):
            with pytest.raises(Exception, match="token"):
                await refused
        assert len(await _changes(node.client)) == 1


async def test_a_change_is_seen_by_another_node_within_a_second(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as one, node_of(settings(zookeeper_connect)) as other:
        token = new_token()
        await one.store.create(token)
        assert await eventually(lambda: other.token(token.token_id) == token) < on_this_machine(1)
        renewed = token.expiring_at(token.expiry_timestamp_ms + 1)
        await one.store.update(renewed, 0)
        assert await eventually(lambda: other.token(token.token_id) == renewed) < on_this_machine(1)
        await one.store.delete(token.token_id, 1)
        assert await eventually(lambda: other.states[token.token_id] is None) < on_this_machine(1)


async def test_a_look_without_news_reads_one_znode_and_the_next_change_is_heard_of_all_the_same(
    zookeeper_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch for the next change stays from look to look, and is set again on each connection."""
    asked: list[str] = []

    def counted(path: str, **arguments: Any) -> Any:
        asked.append(path)
        return exists(path, **arguments)

    async def hears_of_the_next_change() -> None:
        await node.store.catch_up()
        asked.clear()
        for _ in range(3):
            await node.store.catch_up()
        # The node may look once more by itself.
        assert len(asked) >= 3
        assert set(asked) == {CHANGES}
        token = new_token()
        await other.store.create(token)
        assert await eventually(lambda: node.token(token.token_id) == token) < on_this_machine(1)

    async with (
        node_of(settings(zookeeper_connect), max_staleness_ms=NO_PROOF_MS) as node,
        node_of(settings(zookeeper_connect)) as other,
    ):
        exists = node.client.exists
        monkeypatch.setattr(node.client, "exists", counted)
        await hears_of_the_next_change()
        await hears_of_the_next_change()
        node.client._session.handler.hang_up()
        await eventually(lambda: not node.client.connected)
        await eventually(lambda: node.client.connected)
        await hears_of_the_next_change()


async def test_under_load_every_change_is_seen_and_own_ones_are_not_read_again(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as one, node_of(settings(zookeeper_connect)) as other:
        tokens = [new_token() for _ in range(2000)]
        await asyncio.gather(*(one.store.create(token) for token in tokens))
        await other.store.catch_up()
        await one.store.catch_up()
        assert all(other.token(token.token_id) == token for token in tokens)
        assert one.reports == len(tokens)
        await caught_up(one, other)


async def test_what_a_broker_changes_is_seen(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as node, client_of(settings(zookeeper_connect)) as broker:
        token = new_token()
        token_id = token.token_id
        await _broker_writes(broker, token_id, TokenZnode.encode(token))
        assert await eventually(lambda: node.token(token_id) == token) < on_this_machine(1)
        renewed = token.expiring_at(1)
        await _broker_writes(broker, token_id, TokenZnode.encode(renewed))
        assert await eventually(lambda: node.token(token_id) == renewed) < on_this_machine(1)
        await _broker_writes(broker, token_id, None)
        assert await eventually(lambda: node.states[token_id] is None) < on_this_machine(1)
        await _broker_writes(broker, token_id, TokenZnode.encode(token))
        assert await eventually(lambda: node.token(token_id) == token) < on_this_machine(1)


async def test_a_brokers_write_does_not_undo_a_guarded_change_unseen(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as node, client_of(settings(zookeeper_connect)) as broker:
        token = new_token()
        await node.store.create(token)
        await _broker_writes(broker, token.token_id, TokenZnode.encode(token.expiring_at(7)))
        with pytest.raises(Exception, match="no longer at version 0"):
            await node.store.update(token, 0)
        read = await node.store.read(token.token_id)
        assert read is not None
        assert (read.token.expiry_timestamp_ms, read.version) == (7, 1)


async def test_tokens_that_are_not_readable_are_skipped_with_one_error(
    zookeeper_connect: str, caplog: pytest.LogCaptureFixture
) -> None:
    good = [new_token() for _ in range(3)]
    bad = {
        "no-json": b"{",
        "empty": b"",
        "version-4": TokenZnode.encode(replace(good[0], token_id="version-4")).replace(b'"version":3', b'"version":4'),
        "no-colon": TokenZnode.encode(replace(good[0], token_id="no-colon")).replace(b"User%3Aalice", b"alice"),
        "another": TokenZnode.encode(good[0]),
    }
    async with client_of(settings(zookeeper_connect)) as broker:
        await broker.ensure_path(CHANGES)
        await broker.ensure_path(TokenZnode.PARENT)
        for name, data in bad.items():
            await broker.create(TokenZnode.path(name), data)
        await broker.create(TokenZnode.path(good[0].token_id), TokenZnode.encode(good[0]))
        caplog.set_level(logging.ERROR)
        async with node_of(settings(zookeeper_connect)) as node:
            assert node.token(good[0].token_id) == good[0]
            for name, data in bad.items():
                await _broker_writes(broker, name, data)
            await _broker_writes(broker, good[1].token_id, TokenZnode.encode(good[1]))
            await eventually(lambda: node.token(good[1].token_id) == good[1])
            assert not any(node.token(name) for name in bad)
            assert [await node.store.read(name) for name in bad] == [None] * len(bad)
            # Each was written twice, and read more often.
            errors = [record for record in caplog.records if record.levelno == logging.ERROR]
            assert len(errors) == 2 * len(bad)
            # A token that was known and is not readable any more counts as gone.
            await _broker_writes(broker, good[1].token_id, b"broken")
            await eventually(lambda: node.states[good[1].token_id] is None)


async def test_a_token_whose_acl_refuses_this_node_harms_no_other(
    zookeeper_connect: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with node_of(settings(zookeeper_connect)) as node, node_of(settings(zookeeper_connect)) as other:
        denied, path = new_token(), ""
        await other.store.create(denied)
        await eventually(lambda: node.token(denied.token_id) == denied)
        caplog.set_level(logging.ERROR)
        with stranger(zookeeper_connect) as kazoo:
            path = TokenZnode.path(denied.token_id)
            kazoo.set_acls(path, OF_A_STRANGER)
            for data in (denied.token_id.encode(), b"hidden"):
                kazoo.create(f"{CHANGES}/token_change_", data, sequence=True, acl=OF_A_STRANGER)
            await announce(other.client, denied.token_id.encode())
            later = new_token()
            await other.store.create(later)
            await eventually(lambda: node.token(later.token_id) == later)
            await eventually(lambda: node.states[denied.token_id] is None)
            await caught_up(node)
            assert list(node.store.unreadable) == [denied.token_id]
            async with node_of(settings(zookeeper_connect)) as restarted:
                assert restarted.token(later.token_id) == later
                assert restarted.token(denied.token_id) is None
            assert [record.getMessage() for record in caplog.records].count(
                f"the delegation token {path} is not readable: its ACL in ZooKeeper does not let this node read it"
            ) == len((node, other, restarted))
            kazoo.add_auth("digest", "stranger:secret")
            kazoo.set_acls(path, OPEN_ACL_UNSAFE)
        assert await node.store.read(denied.token_id) is not None
        assert node.token(denied.token_id) == denied


async def test_odd_announcements_do_no_harm(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as node, client_of(settings(zookeeper_connect)) as broker:
        for content in (b"unknown", b"", b"\xff\xfe", b"..", b".", b"a/../b", b"/", b"\x00", b"x" * 5000, "é".encode()):
            await announce(broker, content)
        await broker.create(f"{CHANGES}/odd", b"name")
        token = new_token()
        await _broker_writes(broker, token.token_id, TokenZnode.encode(token))
        assert await eventually(lambda: node.token(token.token_id) == token) < on_this_machine(1)


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "../../cluster/id", "\x00", "x" * 100_000, "\ud800", "🐘"])
async def test_a_text_that_is_no_id_is_not_looked_up(zookeeper_connect: str, text: str) -> None:
    async with node_of(settings(zookeeper_connect)) as node:
        assert await node.store.read(text) is None


async def test_a_gap_in_the_changes_means_comparing_everything(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as node, client_of(settings(zookeeper_connect)) as broker:
        kept, gone, made = new_token(), new_token(), new_token()
        await node.store.create(kept)
        await node.store.create(gone)
        # Changes whose announcements are purged before the node can read them.
        await broker.multi(
            [
                Create(TokenZnode.path(made.token_id), TokenZnode.encode(made)),
                Delete(TokenZnode.path(gone.token_id)),
                SetData(TokenZnode.path(kept.token_id), TokenZnode.encode(kept.expiring_at(3))),
                Create(f"{CHANGES}/token_change_", b"", sequence=True),
                Delete(f"{CHANGES}/token_change_0000000002"),
            ]
        )
        await announce(broker, b"")
        await eventually(lambda: node.token(made.token_id) == made)
        await node.store.catch_up()
        assert node.states[gone.token_id] is None
        assert node.token(kept.token_id) == kept.expiring_at(3)


async def test_a_parent_that_is_made_anew_means_comparing_everything(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as node, client_of(settings(zookeeper_connect)) as broker:
        token, later = new_token(), new_token()
        await node.store.create(token)
        await broker.multi(
            [
                Delete(f"{CHANGES}/token_change_0000000000"),
                Delete(CHANGES),
                Delete(TokenZnode.path(token.token_id)),
                Delete(TokenZnode.PARENT),
            ]
        )
        await eventually(lambda: node.states[token.token_id] is None)
        await node.store.catch_up()
        await node.store.create(later)
        assert (await node.store.read(later.token_id)) is not None


async def test_own_changes_are_purged_by_number(zookeeper_connect: str) -> None:
    limits = PurgeLimits(max_own=10, interval_ms=50)
    async with node_of(settings(zookeeper_connect), limits) as node, node_of(settings(zookeeper_connect)) as other:
        for _ in range(5):
            await asyncio.gather(*(node.store.create(new_token()) for _ in range(60)))
        deadline = time.monotonic() + 60
        while len(await node.client.children(CHANGES)) > 10:
            assert time.monotonic() < deadline
        assert len(await node.client.children(CHANGES)) == 10
        await eventually(lambda: len(other.states) == 300)


async def test_own_changes_are_purged_by_age_also_beside_another_purger(zookeeper_connect: str) -> None:
    limits = PurgeLimits(retention_ms=200, interval_ms=100)
    async with node_of(settings(zookeeper_connect), limits) as node:
        for _ in range(5):
            await node.store.create(new_token())
        await node.client.delete(f"{CHANGES}/token_change_0000000002")
        deadline = time.monotonic() + 60
        while await node.client.children(CHANGES):
            assert time.monotonic() < deadline


async def test_what_others_have_left_behind_is_purged_when_it_is_old(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as broker:
        await broker.ensure_path(CHANGES)
        for _ in range(250):
            await announce(broker, b"old")
        limits = PurgeLimits(leftover_age_ms=1, interval_ms=50)
        async with node_of(settings(zookeeper_connect)):
            assert len(await broker.children(CHANGES)) == 250
        async with node_of(settings(zookeeper_connect), limits):
            deadline = time.monotonic() + 60
            while await broker.children(CHANGES):
                assert time.monotonic() < deadline


async def test_a_closed_connection_refuses_at_once(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as client:
        store = ZooKeeperTokenStore(client, codec_of(seal=True), now_ms=now_ms)
        await store.load()
        await store.close()
    assert not store.connected
    assert store.staleness_ms() > 0
    requests = (store.read("a"), store.create(new_token()), store.delete("a", 0), store.catch_up(), store.load())
    for request in requests:
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(request, 60)


async def test_a_token_that_zookeeper_would_not_take_harms_nobody_else(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as node:
        large = new_token(renewers=(Principal.user("r" * 1000),) * 600)
        too_large = new_token(renewers=(Principal.user("r" * 1000),) * 1200)
        others = [asyncio.ensure_future(node.store.create(new_token())) for _ in range(20)]
        with pytest.raises(TokenTooLarge) as caught:
            await node.store.create(too_large)
        assert caught.value.size > 1_200_000 > caught.value.limit
        await asyncio.gather(*others)
        await node.store.create(large)
        assert node.token(large.token_id) == large
        assert node.token(too_large.token_id) is None


@pytest.mark.parametrize("seal", [False, True])
async def test_a_new_token_of_more_bytes_than_the_limit_is_refused(zookeeper_connect: str, *, seal: bool) -> None:
    async with client_of(settings(zookeeper_connect)) as client:
        limits = CreationLimits(token_bytes=1_500)
        store = ZooKeeperTokenStore(client, codec_of(seal=seal), now_ms=now_ms, creations=limits)
        await store.load()
        small, encoded_three_times = new_token(), new_token(renewers=(Principal.user("*" * 500),))
        await store.create(small)
        with pytest.raises(TokenLimitExceeded) as refused:
            await store.create(encoded_three_times)
        assert (refused.value.setting, refused.value.limit) == ("kafka.dt.token.bytes.max", 1_500)
        assert await client.children(TokenZnode.PARENT) == [small.token_id]
        await store.close()


async def test_a_token_over_a_small_jute_maxbuffer_fails_no_other_create(tmp_path: Path) -> None:
    with child_zookeeper(tmp_path, system_properties={"jute.maxbuffer": "60000"}) as server:
        async with node_of(settings(f"{server.address}/small")) as node:
            large = new_token(renewers=(Principal.user("r" * 1000),) * 100)
            before = [asyncio.ensure_future(node.store.create(new_token())) for _ in range(20)]
            creating = asyncio.ensure_future(node.store.create(large))
            after = [asyncio.ensure_future(node.store.create(new_token())) for _ in range(20)]
            await asyncio.gather(*before, *after)
            with pytest.raises(StoreUnavailable):
                await creating
            await eventually(lambda: node.store.connected)
            with pytest.raises(TokenTooLarge) as refused:
                await node.store.create(large)
            assert refused.value.limit < 60_000
            await node.store.create(new_token())


async def test_parents_are_made_without_data_as_a_broker_does(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as node:
        kazoo = node.client._session.kazoo
        for path in ("/delegation_token", CHANGES, TokenZnode.PARENT):
            answer = kazoo.get_async(node.client._full(path))
            await eventually(answer.ready)
            assert answer.get()[0] is None
