"""A sync serves all reads that were asked for before it was sent, and none that came after."""

from __future__ import annotations

import asyncio

import pytest

from kafka_dt.zookeeper.connection.reads import SharedSync
from kafka_dt.zookeeper.errors import ZooKeeperConnectionLost


class Wire:
    """Takes down what is sent, in order."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.syncs: list[asyncio.Future[None]] = []

    def sync(self, path: str) -> asyncio.Future[None]:
        self.sent.append(path)
        self.syncs.append(asyncio.get_running_loop().create_future())
        return self.syncs[-1]

    async def read(self, sync: SharedSync, name: str) -> None:
        synced = await sync.sent()
        self.sent.append(name)
        await synced


async def one_turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_reads_that_are_asked_for_together_follow_one_sync() -> None:
    wire = Wire()
    sync = SharedSync(wire.sync, "/")
    reads = [asyncio.create_task(wire.read(sync, name)) for name in "abc"]
    await one_turn()
    assert wire.sent == ["/", "a", "b", "c"]
    wire.syncs[0].set_result(None)
    await asyncio.gather(*reads)


async def test_a_read_that_is_asked_for_later_has_a_sync_of_its_own() -> None:
    wire = Wire()
    sync = SharedSync(wire.sync, "/")
    reads = []
    for name in "ab":
        reads.append(asyncio.create_task(wire.read(sync, name)))
        await one_turn()
    assert wire.sent == ["/", "a", "/", "b"]
    for answer in wire.syncs:
        answer.set_result(None)
    await asyncio.gather(*reads)


async def test_a_read_that_is_cancelled_does_not_take_the_others_along() -> None:
    wire = Wire()
    sync = SharedSync(wire.sync, "/")
    early, late, patient = (asyncio.create_task(wire.read(sync, name)) for name in "abc")
    await asyncio.sleep(0)
    early.cancel()
    await one_turn()
    late.cancel()
    await one_turn()
    wire.syncs[0].set_result(None)
    await patient
    assert wire.sent == ["/", "b", "c"]


async def test_a_sync_that_fails_fails_all_that_counted_on_it() -> None:
    wire = Wire()
    sync = SharedSync(wire.sync, "/")
    reads = [asyncio.create_task(wire.read(sync, name)) for name in "ab"]
    await one_turn()
    wire.syncs[0].set_exception(ZooKeeperConnectionLost("lost", sent=True))
    for read in reads:
        with pytest.raises(ZooKeeperConnectionLost):
            await read
