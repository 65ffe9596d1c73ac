"""What a node whose clock is wrong does to a real ZooKeeper: it deletes nothing that others still need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafka_dt.cli import main
from kafka_dt.cli.keys import retire as keys_retire
from kafka_dt.tokens import GuardedChanges, Keyring, Principal, SecretKey, TokenCache, TokenLimits, TokenManager
from kafka_dt.zookeeper.connection.operations import Create
from kafka_dt.zookeeper.stores.change_purger import ChangePurger, PurgeLimits
from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode
from tests.integration.zookeeper_nodes import client_of, node_of, now_ms, settings
from tests.support.tokens.nodes import HOUR, Clock
from tests.support.zookeeper.sealable import DAY_MS, OLD_KEY
from tests.support.zookeeper.sealed_cluster import recent, sealed_cluster
from tests.support.zookeeper.token_codecs import codec_of


async def test_a_node_whose_clock_is_ahead_purges_no_changes_of_others(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as client:
        await client.ensure_path(TokenChangeZnode.PARENT)
        await client.multi([Create(TokenChangeZnode.PREFIX, b"of a broker", sequence=True)])
        await ChangePurger(client, TokenChangeZnode.PARENT, PurgeLimits(), lambda: now_ms() + HOUR).purge_leftovers()
        assert len(await client.children(TokenChangeZnode.PARENT)) == 1


async def test_a_node_whose_clock_is_ahead_removes_no_live_tokens(zookeeper_connect: str) -> None:
    keyring = Keyring(SecretKey("k" * 32))
    async with node_of(settings(zookeeper_connect), codec=codec_of(keyring)) as node:
        cache = TokenCache(keyring)
        node.store.on_change(cache.apply)
        clock = Clock(now_ms())
        changes = GuardedChanges(node.store, cache, keyring, TokenLimits(), now_ms=clock, random_bytes=os.urandom)
        manager = TokenManager(node.store, changes, cache, TokenLimits(), now_ms=clock)
        alice = Principal.user("alice")
        made = await manager.create(alice, alice, (), 5 * 60_000)
        clock.now_ms += 10 * 60_000
        assert await manager.remove_expired() == 0
        assert await node.store.read(made.token.token_id) is not None


async def test_the_time_of_the_store_is_that_of_now(zookeeper_connect: str) -> None:
    async with node_of(settings(zookeeper_connect)) as node:
        for _ in range(2):
            assert abs(await node.store.time_ms() - now_ms()) < 30_000


def test_a_key_is_not_retired_by_a_clock_that_is_ahead(
    zookeeper_connect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sealed_cluster(zookeeper_connect, tmp_path) as cluster:
        live = recent(1, key_id=OLD_KEY.id)
        cluster.znodes.write([live], OLD_KEY)
        monkeypatch.setattr(keys_retire, "now_ms", lambda: now_ms() + 2 * DAY_MS)
        retire = ["keys", "retire", OLD_KEY.id, "--no-nodes", "--config", str(cluster.configuration)]
        done = CliRunner().invoke(main, retire)
        assert done.exit_code == 1
        assert "ahead of that of the token store: set the clocks right" in done.stderr
        assert cluster.znodes.ids() == {live.token_id}
