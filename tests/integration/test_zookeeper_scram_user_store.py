"""SCRAM users changed in a real ZooKeeper, as brokers read them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from kafka_dt.identity.credentials.scram_changes import NoSuchCredential
from kafka_dt.tokens import StoreUnavailable
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.operations import SetData, Znode
from kafka_dt.zookeeper.errors import NoNode
from kafka_dt.zookeeper.stores.scram_users import ATTEMPTS, ZooKeeperScramUsers, ZooKeeperScramUserStore
from kafka_dt_protocol.sasl import ScramCredential, ScramMechanism, derive_credential
from tests.integration.zookeeper_nodes import client_of, eventually, now_ms, settings

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
AWKWARD = "Zoë / ~*%+ <default>"


def credential(mechanism: ScramMechanism, password: str = "secret") -> ScramCredential:
    return derive_credential(mechanism, password, b"salt", 4096)


@dataclass
class Node:
    client: ZooKeeperClient
    users: ZooKeeperScramUsers
    store: ZooKeeperScramUserStore

    async def set(self, user: str, *mechanisms: ScramMechanism, password: str = "secret") -> None:
        await self.store.change(user, [], {each: credential(each, password) for each in mechanisms})

    async def config(self, name: str) -> dict[str, Any] | None:
        try:
            document = json.loads((await self.client.get(f"/config/users/{name}")).data)
        except NoNode:
            return None
        assert document["version"] == 1
        config: dict[str, Any] = document["config"]
        return config

    async def announced(self) -> list[Any]:
        names = sorted(await self.client.children("/config/changes"))
        return [json.loads((await self.client.get(f"/config/changes/{name}")).data) for name in names]


@asynccontextmanager
async def node_of(connect: str) -> AsyncIterator[Node]:
    async with client_of(settings(connect)) as client:
        users = ZooKeeperScramUsers(client, now_ms=now_ms)
        await users.start()
        try:
            yield Node(client, users, ZooKeeperScramUserStore(client, users))
        finally:
            await users.close()


async def test_a_user_is_written_and_announced_as_a_broker_does(zookeeper_connect: str) -> None:
    async with node_of(zookeeper_connect) as node:
        await node.set("alice", SHA_256)
        config = await node.config("alice")
        assert config is not None
        assert list(config) == ["SCRAM-SHA-256"]
        assert config["SCRAM-SHA-256"].startswith("salt=c2FsdA==,stored_key=")
        assert config["SCRAM-SHA-256"].endswith("=,iterations=4096")
        assert await node.announced() == [{"version": 2, "entity_path": "users/alice"}]


async def test_logins_know_of_a_change_when_it_is_answered(zookeeper_connect: str) -> None:
    async with node_of(zookeeper_connect) as node:
        await node.set(AWKWARD, SHA_256, SHA_512)
        assert node.users.credential(AWKWARD, SHA_512) == credential(SHA_512)
        assert await node.store.all() == {AWKWARD: {each: credential(each) for each in ScramMechanism}}
        await node.store.change(AWKWARD, [SHA_512], {SHA_256: credential(SHA_256, "another")})
        assert node.users.credential(AWKWARD, SHA_512) is None
        assert node.users.credential(AWKWARD, SHA_256) == credential(SHA_256, "another")


async def test_other_nodes_hear_of_it(zookeeper_connect: str) -> None:
    async with node_of(zookeeper_connect) as here, node_of(zookeeper_connect) as there:
        await here.set("alice", SHA_256)
        await eventually(lambda: there.users.credential("alice", SHA_256) is not None, 5)
        await here.store.change("alice", [SHA_256], {})
        await eventually(lambda: there.users.credential("alice", SHA_256) is None, 5)


async def test_a_user_who_has_nothing_left_is_removed(zookeeper_connect: str) -> None:
    async with node_of(zookeeper_connect) as node:
        await node.set("alice", SHA_256)
        await node.store.change("alice", [SHA_256], {})
        assert await node.config("alice") is None
        assert await node.store.all() == {}


async def test_quotas_of_the_user_stay(zookeeper_connect: str) -> None:
    async with node_of(zookeeper_connect) as node:
        quota = {"producer_byte_rate": "1024.0"}
        await node.client.create("/config/users/alice", json.dumps({"version": 1, "config": quota}).encode())
        await node.set("alice", SHA_512)
        assert await node.config("alice") == quota | {
            "SCRAM-SHA-512": (await node.config("alice") or {})["SCRAM-SHA-512"]
        }
        await node.store.change("alice", [SHA_512], {})
        assert await node.config("alice") == quota


async def test_quotas_of_client_ids_below_the_user_stay(zookeeper_connect: str) -> None:
    async with node_of(zookeeper_connect) as node:
        await node.set("alice", SHA_256)
        await node.client.ensure_path("/config/users/alice/clients")
        await node.store.change("alice", [SHA_256], {})
        assert await node.config("alice") == {}
        assert await node.client.children("/config/users/alice") == ["clients"]


@pytest.mark.parametrize("content", [b"", b"no JSON", b"[]", b'{"version":1,"config":7}'])
async def test_a_znode_that_is_not_readable_counts_as_empty(zookeeper_connect: str, content: bytes) -> None:
    async with node_of(zookeeper_connect) as node:
        await node.client.create("/config/users/alice", content)
        with pytest.raises(NoSuchCredential):
            await node.store.change("alice", [SHA_256], {})
        await node.set("alice", SHA_256)
        assert node.users.credential("alice", SHA_256) is not None


async def test_a_credential_that_is_not_there_cannot_be_deleted(zookeeper_connect: str) -> None:
    async with node_of(zookeeper_connect) as node:
        await node.set("alice", SHA_256)
        with pytest.raises(NoSuchCredential):
            await node.store.change("alice", [SHA_512], {SHA_256: credential(SHA_256, "another")})
        with pytest.raises(NoSuchCredential):
            await node.store.change("bob", [SHA_512], {})
        assert node.users.credential("alice", SHA_256) == credential(SHA_256)
        assert len(await node.announced()) == 1


async def test_nothing_is_lost_when_two_nodes_change_a_user_at_once(zookeeper_connect: str) -> None:
    async with node_of(zookeeper_connect) as one, node_of(zookeeper_connect) as other:
        for round_ in range(10):
            user = f"user-{round_}"
            await asyncio.gather(one.set(user, SHA_256), other.set(user, SHA_512))
            assert (await one.config(user) or {}).keys() == {"SCRAM-SHA-256", "SCRAM-SHA-512"}


class Meddler(ZooKeeperClient):
    """Changes the user between every reading and writing of it."""

    def get(self, path: str, **options: Any) -> asyncio.Future[Znode]:
        future = super().get(path, **options)
        if path == "/config/users/alice":
            super().multi([SetData(path, b"{}")])
        return future


async def test_a_user_that_never_rests_is_given_up(zookeeper_connect: str) -> None:
    async with node_of(zookeeper_connect) as node:
        await node.set("alice", SHA_256)
        client = Meddler(settings(zookeeper_connect))
        await client.start()
        try:
            store = ZooKeeperScramUserStore(client, node.users)
            with pytest.raises(StoreUnavailable):
                await store.change("alice", [], {SHA_256: credential(SHA_256)})
        finally:
            await client.close()
        assert len(await node.announced()) == 1
        assert (await node.client.get("/config/users/alice")).stat.version == ATTEMPTS


@pytest.mark.parametrize(
    ("user", "storable"),
    [("alice", True), (AWKWARD, True), ("/", True), (".", False), ("..", False), ("x" * 2000, False), ("", False)],
)
async def test_a_name_that_no_znode_can_have_is_no_users(zookeeper_connect: str, user: str, *, storable: bool) -> None:
    async with node_of(zookeeper_connect) as node:
        assert node.store.can_store(user) is storable


async def test_without_zookeeper_nothing_is_changed_or_told(zookeeper_connect: str) -> None:
    async with node_of(zookeeper_connect) as node:
        await node.client.close()
        with pytest.raises(StoreUnavailable):
            await node.set("alice", SHA_256)
        with pytest.raises(StoreUnavailable):
            await node.store.all()
