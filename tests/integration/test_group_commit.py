"""Group commit with a real ZooKeeper: what callers hear of changes that share a `multi`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.operations import Create, Delete, SetData
from kafka_dt.zookeeper.errors import MultiFailed, NodeExists, VersionMismatch, ZooKeeperConnectionLost
from kafka_dt.zookeeper.stores.group_commit import UNDER_WAY, GroupCommit
from tests.integration.zookeeper_nodes import eventually, settings
from tests.support.processes.process import hanging
from tests.support.zookeeper.server import child_zookeeper

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from kafka_dt.zookeeper.connection.operations import Operation, Stat
    from kafka_dt.zookeeper.connection.requests import Arrived
    from kafka_dt.zookeeper.errors import ZooKeeperError

WITHIN_S = 60.0


class Client(ZooKeeperClient):
    """Counts the operations of each multi."""

    sent: list[int]

    def multi(
        self, operations: Sequence[Operation], *, arrived: Arrived | None = None
    ) -> asyncio.Future[list[str | Stat | None]]:
        self.sent.append(len(operations))
        return super().multi(operations, arrived=arrived)


@pytest.fixture
async def client(zookeeper_connect: str) -> AsyncIterator[Client]:
    client = Client(settings(zookeeper_connect))
    client.sent = []
    await client.start()
    await client.ensure_path("/changes")
    client.sent.clear()
    yield client
    await client.close()


def outcome(results: Sequence[str | Stat | None] | None, error: ZooKeeperError | None) -> Any:
    """Return the results, of paths the last name."""
    if error is not None:
        raise error
    return [result.rpartition("/")[2] if isinstance(result, str) else result for result in results or ()]


def made(name: str) -> list[Operation]:
    return [Create(f"/{name}", name.encode()), Create("/changes/change_", name.encode(), sequence=True)]


async def carried_out(writes: GroupCommit, changes: Sequence[Sequence[Operation]]) -> list[Any]:
    under_way = [writes.multi(change, arrived=outcome) for change in changes]
    return await asyncio.wait_for(asyncio.gather(*under_way, return_exceptions=True), WITHIN_S)


async def test_each_caller_hears_the_results_of_its_own_operations(client: Client) -> None:
    names = [f"t{number}" for number in range(50)]
    results = await carried_out(GroupCommit(client), [made(name) for name in names])
    for name, (token, change) in zip(names, results, strict=True):
        assert token == name
        assert (await client.get(f"/{name}")).data == name.encode()
        assert (await client.get(f"/changes/{change}")).data == name.encode()


async def test_changes_that_wait_share_a_multi(client: Client) -> None:
    await carried_out(GroupCommit(client), [made(f"t{number}") for number in range(50)])
    assert sum(client.sent) == 100
    assert len(client.sent) < 10


async def test_a_lone_change_is_sent_alone(client: Client) -> None:
    writes = GroupCommit(client)
    for number in range(3):
        await carried_out(writes, [made(f"t{number}")])
    assert client.sent == [2, 2, 2]


async def test_a_group_has_no_more_bytes_than_any_server_takes(client: Client) -> None:
    await carried_out(GroupCommit(client), [[Create(f"/t{number}", bytes(6_000))] for number in range(9)])
    assert max(client.sent) == 2


async def test_a_large_change_is_alone_in_its_multi(client: Client) -> None:
    large: list[Operation] = [Create("/large", bytes(20_000))]
    results = await carried_out(GroupCommit(client), [made("a"), large, made("b")])
    assert [result[0] for result in results] == ["a", "large", "b"]
    assert 1 in client.sent


async def test_a_refused_change_does_not_take_others_with_it(client: Client) -> None:
    await client.create("/there", b"")
    changes: list[Sequence[Operation]] = [
        made("a"),
        made("there"),
        [SetData("/there", b"new", 7)],
        [Delete("/there", 0), Create("/changes/change_", b"there", sequence=True)],
        made("b"),
    ]
    a, exists, other_version, deleted, b = await carried_out(GroupCommit(client), changes)
    assert isinstance(exists, MultiFailed)
    assert (exists.index, type(exists.cause)) == (0, NodeExists)
    assert isinstance(other_version, MultiFailed)
    assert (other_version.index, type(other_version.cause)) == (0, VersionMismatch)
    assert (a[0], b[0], deleted[0]) == ("a", "b", None)
    assert await client.exists("/there") is None
    assert len(await client.children("/changes")) == 3


async def test_a_caller_that_gives_up_does_not_stop_the_others(client: Client) -> None:
    writes = GroupCommit(client)
    heard: list[str] = []

    def arrived(results: Sequence[str | Stat | None] | None, error: ZooKeeperError | None) -> Any:
        (path,) = outcome(results, error)
        heard.append(path)
        return path

    gone, stays = (writes.multi([Create(path, b"")], arrived=arrived) for path in ("/gone", "/stays"))
    gone.cancel()
    assert await asyncio.wait_for(stays, WITHIN_S) == "stays"
    assert heard == ["gone", "stays"]


async def test_every_caller_hears_of_a_lost_connection(tmp_path: Path) -> None:
    with child_zookeeper(tmp_path) as server:
        client = ZooKeeperClient(settings(server.address))
        await client.start()
        try:
            await client.ensure_path("/changes")
            writes = GroupCommit(client)
            with hanging(server.server_pid):
                outcomes = asyncio.create_task(carried_out(writes, [made(f"t{number}") for number in range(200)]))
                await asyncio.sleep(0)
                await asyncio.to_thread(server.kill)
            errors = await outcomes
            assert all(isinstance(error, ZooKeeperConnectionLost) for error in errors)
            assert 0 < sum(error.sent for error in errors) < len(errors)
            await asyncio.to_thread(server.start)
            await eventually(lambda: client.connected)
            results = await carried_out(writes, [made(f"u{number}") for number in range(10 * UNDER_WAY)])
            assert [result[0] for result in results] == [f"u{number}" for number in range(10 * UNDER_WAY)]
        finally:
            await client.close()
