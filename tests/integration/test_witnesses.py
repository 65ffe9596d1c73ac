"""What a worker remembers of its own writes to ZooKeeper, and what it notices by that."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_dt.zookeeper.errors import CannotConnect
from kafka_dt.zookeeper.proofs import history
from kafka_dt.zookeeper.proofs.history import accept
from kafka_dt.zookeeper.proofs.witness import KEPT_MS
from kafka_dt.zookeeper.stores.cluster import read_or_create_cluster_id
from kafka_dt.zookeeper.znodes.kafka import ClusterIdZnode
from kafka_dt.zookeeper.znodes.own import HistoryZnode, WitnessZnode
from tests.integration.restored_zookeeper import TEN_MINUTES_MS, Worker, worker_of
from tests.integration.zookeeper_nodes import client_of, eventually, settings


async def test_a_worker_with_a_file_notices_after_its_restart(zookeeper_connect: str, tmp_path: Path) -> None:
    file = tmp_path / "witness-0.json"
    async with client_of(settings(zookeeper_connect)) as operator:
        async with worker_of(zookeeper_connect, file) as worker:
            witness = worker.memory.witness
            assert witness is not None
            await worker.guard.close(worker.client)
        async with worker_of(zookeeper_connect, file) as worker:
            assert worker.memory.witness is not None
            assert worker.memory.witness.name == witness.name
        await operator.delete(WitnessZnode.path(witness.name))
        late = Worker(zookeeper_connect, file)
        async with late.starting():
            await eventually(lambda: "its history went back" in late.guard.trouble)
        assert HistoryZnode.decode((await operator.get(HistoryZnode.PATH)).data).doubted
        await accept(operator)
        async with worker_of(zookeeper_connect, file) as worker:
            assert not worker.must_restart.is_set()
            assert worker.memory.witness is not None
            assert worker.memory.witness.name != witness.name


async def test_a_running_worker_notices_though_its_clock_is_ahead(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as operator, worker_of(zookeeper_connect) as worker:
        assert worker.memory.witness is not None
        written_ms = worker.memory.witness.written_ms
        await worker.memory.keep(replace(worker.memory.witness, written_ms=written_ms - KEPT_MS - TEN_MINUTES_MS))
        await worker.lose_a_write(operator)
        await eventually(lambda: "its history went back" in worker.guard.trouble)


async def test_a_worker_writes_again_when_there_is_a_new_acceptance(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as operator, worker_of(zookeeper_connect) as worker:
        await accept(operator)
        await worker.guard.keep(worker.client)
        await worker.lose_a_write(operator)
        await eventually(lambda: "its history went back" in worker.guard.trouble)


@pytest.mark.parametrize("has_id", [True, False])
async def test_the_memory_of_another_cluster_is_an_error_that_says_what_to_do(
    zookeeper_connect: str, tmp_path: Path, *, has_id: bool
) -> None:
    """As a broker's meta.properties; the file stays as it is, for the way back to the right cluster."""
    file = tmp_path / "witness-0.json"
    async with client_of(settings(zookeeper_connect)) as operator:
        async with worker_of(zookeeper_connect, file) as worker:
            assert worker.memory.witness is not None
            await operator.delete(WitnessZnode.path(worker.memory.witness.name))
        remembered = file.read_text()
        await operator.delete(ClusterIdZnode.PATH)
        if has_id:
            await read_or_create_cluster_id(operator, lambda size: bytes(reversed(range(size))))
        with pytest.raises(
            CannotConnect, match=r"correct zookeeper\.connect, or set another kafka\.dt\.state\.dir; if"
        ):
            await Worker(zookeeper_connect, file).client.start()
        assert file.read_text() == remembered
        assert await operator.exists(HistoryZnode.PATH) is None, "no other worker is made to doubt"


async def test_a_worker_that_remembers_nothing_leaves_no_witness(zookeeper_connect: str) -> None:
    async with worker_of(zookeeper_connect) as worker:
        assert len(await worker.client.children(WitnessZnode.PARENT)) == 1
        await worker.guard.close(worker.client)
        assert await worker.client.children(WitnessZnode.PARENT) == []


async def test_a_worker_without_a_memory_goes_on_with_the_witness_of_its_name(zookeeper_connect: str) -> None:
    for _ in range(3):
        async with worker_of(zookeeper_connect, name="node-0") as worker:
            assert await worker.client.children(WitnessZnode.PARENT) == ["node-0"]


async def test_old_witnesses_are_removed_by_one_worker_of_a_node(
    zookeeper_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "REMOVE_S", 0)
    async with (
        worker_of(zookeeper_connect, removes_old=True) as first,
        worker_of(zookeeper_connect) as second,
    ):
        made = [second.client.create(WitnessZnode.path(f"old-{number}"), b"") for number in range(250)]
        await asyncio.gather(*made)
        for worker in (first, second):
            assert worker.memory.witness is not None
            written_ms = worker.memory.witness.written_ms
            await worker.memory.keep(replace(worker.memory.witness, written_ms=written_ms + KEPT_MS - TEN_MINUTES_MS))
            await worker.guard.keep(worker.client)
            assert len(await worker.client.children(WitnessZnode.PARENT)) == 252, "young ones stay"
            await worker.memory.keep(replace(worker.memory.witness, written_ms=written_ms + KEPT_MS + TEN_MINUTES_MS))
        await second.guard.keep(second.client)
        assert len(await second.client.children(WitnessZnode.PARENT)) == 252
        await first.guard.keep(first.client)
        assert await first.client.children(WitnessZnode.PARENT) == []
