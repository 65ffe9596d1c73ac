"""Retire keys: the tokens that depend on a key, in a real ZooKeeper without nodes, or with a node's own znode."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from kafka_dt.bulk import Census, census
from kafka_dt.cli import main
from kafka_dt.cli.keys.files import KeyFiles, KeysError, Stage
from kafka_dt.cli.keys.retire import CLOCK_SLACK_MS, Nameless, Retirement
from kafka_dt.config import from_properties
from kafka_dt.stores import WorkerState
from kafka_dt.tokens import Keyring, SecretKey
from kafka_dt.zookeeper.sealing.token_codec import TokenCodec
from kafka_dt.zookeeper.stores.cluster import WorkerRegistry
from kafka_dt.zookeeper.znodes.kafka import TokenZnode
from tests.integration.zookeeper_nodes import client_of, now_ms, settings
from tests.support.tokens.store_contract import new_token

if TYPE_CHECKING:
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

OLD, NOW = SecretKey("o" * 40), SecretKey("n" * 40)
HOUR = 3_600_000
NODE = WorkerState("host", 1, 0, 1001, NOW.id, (NOW.id, OLD.id), True, "0.1")


class Cluster:
    """A ZooKeeper with tokens, and the files of a current and an older key."""

    def __init__(self, directory: Path, client: ZooKeeperClient, connect: str) -> None:
        (directory / "current").write_text("n" * 40)
        (directory / "previous").write_text("o" * 40)
        names = ("delegation.token.secret.key", "current"), ("kafka.dt.secret.keys.previous", "previous")
        self.client = client
        self.connect = connect
        self.files = KeyFiles(from_properties({key: f"file:{directory / name}" for key, name in names}).settings)
        self.keyring = Keyring(NOW, previous=[OLD])

    async def write(self, key_id: str | None, *, sealed_by: SecretKey | None, ago_ms: int = -HOUR) -> str:
        now = now_ms()
        token = replace(new_token(), key_id=key_id, max_timestamp_ms=now + HOUR, expiry_timestamp_ms=now - ago_ms)
        with ThreadPoolExecutor(1) as executor:
            ring = Keyring(sealed_by or NOW)
            codec = TokenCodec(ring, seal=sealed_by is not None, executor=executor, random_bytes=secrets.token_bytes)
            data = await codec.encode(token)
        await self.client.ensure_path(TokenZnode.PARENT)
        await self.client.create(TokenZnode.path(token.token_id), data)
        return token.token_id

    async def retire(
        self, key: SecretKey = OLD, *, expire_tokens: bool = False, nameless: Nameless = Nameless.BLOCK
    ) -> int | None:
        retirement = Retirement(self.client, self.files, key.id, 0.5)
        return await retirement.run(expire_tokens=expire_tokens, nameless=nameless)

    async def ask(self, *arguments: str) -> Result:
        """Run a command."""
        overrides = {
            "zookeeper.connect": self.connect,
            "delegation.token.secret.key": f"file:{self.files.current}",
            "kafka.dt.secret.keys.previous": f"file:{self.files.previous}",
        }
        options = [f"--override={name}={value}" for name, value in overrides.items()]
        return await asyncio.to_thread(CliRunner().invoke, main, ["keys", *arguments, *options])

    async def count(self, *keys: SecretKey) -> Census:
        return await census(self.client, Keyring(keys[0], previous=keys[1:]), now_ms=now_ms)

    async def exists(self, token_id: str) -> bool:
        return await self.client.exists(TokenZnode.path(token_id)) is not None


@pytest.fixture
async def cluster(zookeeper_connect: str, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with client_of(settings(zookeeper_connect)) as client:
        yield Cluster(tmp_path, client, zookeeper_connect)


async def test_what_an_old_key_sealed_is_sealed_again_and_its_expired_tokens_go(cluster: Cluster) -> None:
    kept = await cluster.write(NOW.id, sealed_by=OLD)
    plain = await cluster.write(NOW.id, sealed_by=None)
    expired = await cluster.write(OLD.id, sealed_by=OLD, ago_ms=2 * CLOCK_SLACK_MS)
    assert await cluster.retire() == 1
    assert not await cluster.exists(expired)
    assert cluster.files.read().previous == ()
    found = await cluster.count(NOW)
    assert (found.sealed_by_key, found.plain, found.unreadable) == ({NOW.id: 1}, 1, {})
    assert await cluster.exists(kept)
    assert await cluster.exists(plain)


async def test_a_live_token_keeps_its_key_unless_it_may_be_ended(cluster: Cluster) -> None:
    live, other = await cluster.write(OLD.id, sealed_by=NOW), await cluster.write(NOW.id, sealed_by=NOW)
    with pytest.raises(KeysError, match=f"the key {OLD.id} still has 1 live token: wait until they end"):
        await cluster.retire()
    assert await cluster.exists(live)
    assert cluster.files.read().previous == (OLD,)
    assert await cluster.retire(expire_tokens=True) == 1
    assert not await cluster.exists(live)
    assert await cluster.exists(other)


async def test_a_token_that_ends_now_still_lives_by_another_clock(cluster: Cluster) -> None:
    token_id = await cluster.write(OLD.id, sealed_by=NOW, ago_ms=CLOCK_SLACK_MS // 2)
    with pytest.raises(KeysError, match="1 live token"):
        await cluster.retire()
    assert await cluster.exists(token_id)


async def test_tokens_without_a_key_id_may_be_of_any_key(cluster: Cluster) -> None:
    older = "older " * 10
    cluster.files.previous.write_text("o" * 40 + "\n" + older + "\n")
    nameless = await cluster.write(None, sealed_by=None)
    for key in (OLD, SecretKey(older)):
        for expire_tokens in (False, True):
            with pytest.raises(KeysError, match=f"1 live token without a key id may be of the key {key.id}: wait"):
                await cluster.retire(key, expire_tokens=expire_tokens)
    assert await cluster.retire(nameless=Nameless.KEEP) == 0
    assert await cluster.exists(nameless)
    assert await cluster.retire(SecretKey(older), nameless=Nameless.EXPIRE) == 1
    assert not await cluster.exists(nameless)


async def test_where_no_node_is_live_a_key_changes_only_if_that_is_said(cluster: Cluster) -> None:
    before = cluster.files.read()
    for command in (["rotate"], ["rotate", "--prepare"], ["retire", OLD.id]):
        refused = await cluster.ask(*command)
        assert refused.exit_code == 1
        assert "no node with a secret key is live in this ZooKeeper" in refused.stderr
    assert cluster.files.read() == before
    rotated = await cluster.ask("rotate", "--no-nodes")
    assert "tokens are made with it by 0 workers" in rotated.stdout
    nameless = await cluster.write(None, sealed_by=None)
    assert (await cluster.ask("retire", OLD.id, "--no-nodes")).exit_code == 1
    retired = await cluster.ask("retire", OLD.id, "--no-nodes", "--keep-nameless")
    assert (retired.exit_code, retired.stdout) == (0, f"The key {OLD.id} is retired; 0 tokens deleted\n")
    retired = await cluster.ask("retire", NOW.id, "--no-nodes", "--expire-nameless")
    assert (retired.exit_code, retired.stdout) == (0, f"The key {NOW.id} is retired; 1 token deleted\n")
    assert cluster.files.read().previous == ()
    assert not await cluster.exists(nameless)


async def test_a_key_with_which_a_node_makes_tokens_is_not_retired(cluster: Cluster) -> None:
    registry = WorkerRegistry(cluster.client, "late")
    await registry.announce(replace(NODE, current_key=OLD.id, keys=(OLD.id, NOW.id)))
    with pytest.raises(KeysError, match=f"the key {OLD.id} is the current one \\(host .worker 0, pid 1.\\)"):
        await cluster.retire(expire_tokens=True)
    await registry.close()


async def test_a_node_that_keeps_the_key_is_named_and_the_next_try_goes_on(cluster: Cluster) -> None:
    registry = WorkerRegistry(cluster.client, "far")
    await registry.announce(NODE)
    await cluster.write(OLD.id, sealed_by=OLD)
    for already in ("; tokens deleted already: 1. A node", ". A node"):
        with pytest.raises(KeysError) as stopped:
            await cluster.retire(expire_tokens=True)
        assert f"the key {OLD.id} is still accepted by host (worker 0, pid 1): see that its machine" in str(
            stopped.value
        )
        assert f"run the command again{already}" in str(stopped.value)
        assert cluster.files.read().previous == ()
    await registry.announce(replace(NODE, keys=(NOW.id,)))
    assert await Retirement(cluster.client, cluster.files, OLD.id, 10).run() is None
    await registry.close()


async def test_retiring_a_key_that_is_to_come_calls_the_rotation_off(cluster: Cluster) -> None:
    cluster.files.prepare("x" * 40)
    assert cluster.files.read().stage is Stage.PREPARED
    await cluster.retire(SecretKey("x" * 40))
    assert cluster.files.read().stage is Stage.IDLE
    assert cluster.files.read().previous == (OLD,)
