"""Live workers announce themselves in a real ZooKeeper, and only those."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kafka_dt.stores import WorkerState
from kafka_dt.zookeeper.errors import InvalidZnode
from kafka_dt.zookeeper.stores.cluster import WorkerRegistry, live_brokers, live_workers, read_or_create_salt_secret
from kafka_dt.zookeeper.znodes.own import WorkerZnode
from tests.integration.zookeeper_nodes import client_of, eventually, settings
from tests.support.processes.tcp_gate import TcpGate

if TYPE_CHECKING:
    from kafka_dt.zookeeper.connection.client import ZooKeeperClient

STATE = WorkerState("host", 1, 0, 1001, "aa", ("aa",), True, "0.1")
CHANGED = replace(STATE, current_key="bb", keys=("bb", "aa"))
SHORT_SESSION_MS = 1000
WITHIN_S = 30


async def until_nodes_are(client: ZooKeeperClient, expected: list[WorkerState]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while (found := await live_workers(client)) != expected:
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.02)


async def test_a_node_is_seen_while_it_lives_and_as_it_is(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as watching:
        assert await live_workers(watching) == []
        async with client_of(settings(zookeeper_connect)) as client, client_of(settings(zookeeper_connect)) as second:
            registry, other = WorkerRegistry(client, "one"), WorkerRegistry(second, "two")
            await registry.announce(STATE)
            assert await live_workers(watching) == [STATE]
            await other.announce(replace(STATE, worker=1))
            assert await live_workers(watching) == [STATE, replace(STATE, worker=1)]
            await registry.announce(CHANGED)
            await until_nodes_are(watching, [CHANGED, replace(STATE, worker=1)])
            await registry.close()
            await other.close()
        await until_nodes_are(watching, [])


async def test_a_new_session_announces_the_node_again(zookeeper_connect: str) -> None:
    host, _, port = zookeeper_connect.partition("/")[0].rpartition(":")
    async with TcpGate(host, int(port)) as gate, client_of(settings(zookeeper_connect)) as watching:
        through = f"127.0.0.1:{gate.port}/{zookeeper_connect.partition('/')[2]}"
        async with client_of(settings(through, SHORT_SESSION_MS)) as client:
            registry = WorkerRegistry(client, "one")
            await registry.announce(STATE)
            session_id = client.session_id
            gate.shut()
            await eventually(lambda: not client.connected)
            await until_nodes_are(watching, [])
            await registry.announce(CHANGED)
            gate.open()
            await until_nodes_are(watching, [CHANGED])
            assert client.session_id != session_id
            await registry.close()


async def test_a_lost_connection_changes_nothing_and_what_changed_meanwhile_is_made_up_for(
    zookeeper_connect: str,
) -> None:
    host, _, port = zookeeper_connect.partition("/")[0].rpartition(":")
    async with TcpGate(host, int(port)) as gate, client_of(settings(zookeeper_connect)) as watching:
        through = f"127.0.0.1:{gate.port}/{zookeeper_connect.partition('/')[2]}"
        async with client_of(settings(through, 10_000)) as client:
            registry = WorkerRegistry(client, "one")
            await registry.announce(STATE)
            session_id = client.session_id
            gate.shut()
            await eventually(lambda: not client.connected)
            await registry.announce(CHANGED)
            assert await live_workers(watching) == [STATE]
            gate.open()
            await until_nodes_are(watching, [CHANGED])
            assert client.session_id == session_id
            await registry.close()


async def test_a_znode_that_an_earlier_session_left_is_taken_over(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as watching, client_of(settings(zookeeper_connect)) as client:
        await watching.ensure_path(WorkerZnode.PARENT)
        await watching.create(WorkerZnode.path("one"), b"of another session", ephemeral=True)
        with pytest.raises(InvalidZnode, match="node_one: not JSON"):
            await live_workers(watching)
        registry = WorkerRegistry(client, "one")
        await registry.announce(STATE)
        stat = await watching.exists(WorkerZnode.path("one"))
        assert stat is not None
        assert stat.ephemeral_owner == client.session_id
        assert await live_workers(watching) == [STATE]
        await registry.close()


async def test_live_brokers_are_those_that_registered_themselves(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as client:
        assert await live_brokers(client) == []
        await client.ensure_path("/brokers/ids")
        await client.create("/brokers/ids/7", b"{}", ephemeral=True)
        assert await live_brokers(client) == ["7"]


async def test_all_nodes_have_the_salt_secret_that_one_of_them_made(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as client, client_of(settings(zookeeper_connect)) as other:
        made = await asyncio.gather(
            read_or_create_salt_secret(client, lambda count: b"a" * count),
            read_or_create_salt_secret(other, lambda count: b"b" * count),
        )
        assert made[0] == made[1]
        assert await read_or_create_salt_secret(other, bytes) == made[0]
