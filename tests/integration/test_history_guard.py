"""A history that is in doubt: which workers believe nothing any more, and which acceptance ends the doubt."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.operations import Create, SetData
from kafka_dt.zookeeper.errors import InvalidZnode, MembersDiffer, NoNode, ZooKeeperConnectionLost
from kafka_dt.zookeeper.proofs import history
from kafka_dt.zookeeper.proofs.history import accept
from kafka_dt.zookeeper.znodes.own import History, HistoryZnode, WitnessZnode
from tests.integration.restored_zookeeper import TEN_MINUTES_MS, WITHIN_S, Worker, two_in_doubt, worker_of
from tests.integration.zookeeper_nodes import client_of, eventually, now_ms, settings
from tests.support.processes.process import hanging
from tests.support.zookeeper.server import child_zookeeper


async def test_a_worker_whose_writes_are_there_is_admitted_again(zookeeper_connect: str) -> None:
    async with worker_of(zookeeper_connect) as worker:
        for _ in range(3):
            worker.client.readmit()
            assert not worker.client.connected
            await eventually(lambda: worker.client.connected)
            await worker.guard.keep(worker.client)
        assert not worker.must_restart.is_set()


async def test_a_worker_that_remembers_nothing_hears_of_a_doubt_and_goes_on_after_the_operators_word(
    zookeeper_connect: str,
) -> None:
    async with two_in_doubt(zookeeper_connect) as (operator, one, other):
        assert not one.client.connected
        assert not other.client.connected
        with pytest.raises(ZooKeeperConnectionLost, match="until an operator accepts its history"):
            await other.client.exists("/")
        late = Worker(zookeeper_connect)
        async with late.starting() as starting:
            await eventually(lambda: "kafka-dt accept-restore" in late.guard.trouble)
            await accept(operator)
            await starting
        await one.must_restart.wait()
        await other.must_restart.wait()
        assert not one.client.connected, "its successor begins anew"
        async with worker_of(zookeeper_connect) as successor:
            assert successor.client.connected


async def test_a_worker_that_has_read_what_another_one_doubts_believes_none_of_it(zookeeper_connect: str) -> None:
    """Also when it was not connected at the time of the doubt. The other one has read nothing since the restore."""
    async with (
        client_of(settings(zookeeper_connect)) as operator,
        worker_of(zookeeper_connect) as one,
        worker_of(zookeeper_connect) as other,
        worker_of(zookeeper_connect) as late,
    ):
        await one.lose_a_write(operator)
        await eventually(lambda: "its history went back" in one.guard.trouble)
        await other.guard.keep(other.client)
        late.client.readmit()
        await other.forgot_proofs.wait()
        await late.forgot_proofs.wait()
        assert not one.forgot_proofs.is_set()


async def test_a_worker_that_comes_late_finds_that_the_restore_was_accepted(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as operator, worker_of(zookeeper_connect) as worker:
        await accept(operator)
        await worker.lose_a_write(operator)
        await worker.must_restart.wait()


async def test_an_earlier_word_of_the_operator_does_not_count(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as operator:
        await accept(operator)
        async with worker_of(zookeeper_connect) as worker:
            await worker.lose_a_write(operator)
            await eventually(lambda: "its history went back" in worker.guard.trouble)


async def test_an_acceptance_counts_though_the_leaders_clock_is_behind(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as operator, worker_of(zookeeper_connect) as worker:
        assert worker.memory.witness is not None
        await worker.memory.keep(replace(worker.memory.witness, written_ms=now_ms() + TEN_MINUTES_MS))
        await worker.lose_a_write(operator)
        await eventually(lambda: "its history went back" in worker.guard.trouble)
        await accept(operator)
        await asyncio.wait_for(worker.must_restart.wait(), WITHIN_S)
        assert not HistoryZnode.decode((await operator.get(HistoryZnode.PATH)).data).doubted


async def test_an_acceptance_before_the_start_counts_though_the_leaders_clock_is_behind(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    file = tmp_path / "witness-0.json"
    async with client_of(settings(zookeeper_connect)) as operator:
        async with worker_of(zookeeper_connect, file) as worker:
            assert worker.memory.witness is not None
            await worker.memory.keep(replace(worker.memory.witness, written_ms=now_ms() + TEN_MINUTES_MS))
            await operator.delete(WitnessZnode.path(worker.memory.witness.name))
        await accept(operator)
        async with worker_of(zookeeper_connect, file) as worker:
            assert not worker.must_restart.is_set()


@pytest.mark.parametrize("left", [None, History()], ids=["without a word", "with an earlier word"])
async def test_a_second_restore_that_takes_the_mark_away_ends_no_doubt(
    zookeeper_connect: str, left: History | None
) -> None:
    """Neither for the worker that has lost a write, nor for one that has lost none."""
    async with two_in_doubt(zookeeper_connect) as (operator, one, other):
        await one.client.close()
        await operator.delete(HistoryZnode.PATH)
        if left is not None:
            await operator.create(HistoryZnode.PATH, HistoryZnode.encode(left))
        await _doubted_again(operator)
        assert not other.must_restart.is_set()
        await accept(operator)
        await asyncio.wait_for(other.must_restart.wait(), WITHIN_S)


async def _doubted_again(operator: ZooKeeperClient) -> None:
    async with asyncio.timeout(WITHIN_S):
        while True:
            with suppress(NoNode):
                if HistoryZnode.decode((await operator.get(HistoryZnode.PATH)).data).doubted:
                    return
            await asyncio.sleep(0.05)


async def test_a_restore_to_an_earlier_acceptance_is_doubted(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as operator:
        await accept(operator)
        earlier = (await operator.get(HistoryZnode.PATH)).data
        await accept(operator)
        async with worker_of(zookeeper_connect) as worker:
            await operator.multi([SetData(HistoryZnode.PATH, earlier)])
            await worker.lose_a_write(operator)
            await eventually(lambda: "its history went back" in worker.guard.trouble)
            assert not worker.must_restart.is_set()


async def test_an_acceptance_ends_with_an_error_where_the_members_of_the_ensemble_differ(
    zookeeper_connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when only some were restored: one member lacks the znode that the leader has."""

    async def nothing(_: ZooKeeperClient) -> None:
        return None

    async with client_of(settings(zookeeper_connect)) as operator:
        await accept(operator)
        monkeypatch.setattr(history, "_znode", nothing)
        with pytest.raises(MembersDiffer, match="put the same copy in place on each member"):
            await asyncio.wait_for(accept(operator), WITHIN_S)


async def test_an_operator_can_mend_an_unreadable_word_about_the_history(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as operator, worker_of(zookeeper_connect) as worker:
        await operator.ensure_path(HistoryZnode.PATH)
        with pytest.raises(InvalidZnode):
            await worker.guard.keep(worker.client)
        await accept(operator)
        await worker.guard.keep(worker.client)


async def test_a_server_that_restarts_during_a_large_request_is_used_again(tmp_path: Path) -> None:
    """What waited behind the request does not hold up the look at the new connection."""
    with child_zookeeper(tmp_path) as server:
        async with worker_of(server.address) as worker:
            with hanging(server.server_pid):
                large = worker.client.multi([Create("/large", bytes(20_000))])
                behind = [worker.client.exists(f"/behind-{number}") for number in range(3)]
                await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            await eventually(lambda: worker.client.connected)
            outcomes = await asyncio.wait_for(asyncio.gather(large, *behind, return_exceptions=True), WITHIN_S)
            assert isinstance(outcomes[0], ZooKeeperConnectionLost)
            assert await worker.client.exists("/behind") is None


async def test_a_request_over_a_small_jute_maxbuffer_keeps_no_worker_away(tmp_path: Path) -> None:
    with child_zookeeper(tmp_path, system_properties={"jute.maxbuffer": "60000"}) as server:
        async with worker_of(server.address) as worker:
            large = worker.client.multi([Create("/large", bytes(100_000))])
            behind = [worker.client.exists(f"/behind-{number}") for number in range(3)]
            with pytest.raises(ZooKeeperConnectionLost):
                await large
            # What was sent before the server hung up is lost with the connection; the rest is asked on the next one.
            outcomes = await asyncio.wait_for(asyncio.gather(*behind, return_exceptions=True), WITHIN_S)
            assert all(each is None or isinstance(each, ZooKeeperConnectionLost) for each in outcomes)
            await eventually(lambda: worker.client.connected)
            assert await worker.client.exists("/behind") is None
