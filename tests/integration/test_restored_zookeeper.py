"""A ZooKeeper that was restored from a backup: nodes notice, and wait for an operator."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kafka_dt.cli import main
from kafka_dt.client import DelegationToken, TokenClientError
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.operations import Create, SetData
from kafka_dt.zookeeper.connection.settings import ZooKeeperSettings
from kafka_dt.zookeeper.errors import CannotConnect, ConnectionLost, InvalidZnode, MembersDiffer, NoNode
from kafka_dt.zookeeper.proofs import history
from kafka_dt.zookeeper.proofs.history import HistoryGuard, accept
from kafka_dt.zookeeper.proofs.witness import KEPT_MS, WitnessMemory
from kafka_dt.zookeeper.stores.cluster import read_or_create_cluster_id
from kafka_dt.zookeeper.znodes.kafka import ClusterIdZnode, TokenChangeZnode
from kafka_dt.zookeeper.znodes.own import PARENT, History, HistoryZnode, WitnessZnode
from tests.integration.zookeeper_nodes import SESSION_TIMEOUT_MS, client_of, eventually, now_ms, settings
from tests.support.ensemble import Ensemble
from tests.support.nodes import WORKERS, Node, node_properties
from tests.support.process import hanging
from tests.support.raw import ConnectionClosed, LoginRefused
from tests.support.zookeeper import child_zookeeper

WITHIN_S = 60.0
TEN_MINUTES_MS = 600_000


def logs_in(node: Node, token: DelegationToken) -> bool:
    try:
        node.connect_by_token(token).close()
    except (LoginRefused, ConnectionClosed, OSError):
        return False
    return True


def versions_of_witnesses(address: str) -> dict[str, int]:
    kazoo = KazooClient(address)
    kazoo.start()
    try:
        names = kazoo.get_children(WitnessZnode.PARENT)
        return {name: kazoo.get(WitnessZnode.path(name))[1].version for name in names}
    except NoNodeError:
        return {}
    finally:
        kazoo.stop()
        kazoo.close()


async def all_witnesses_written(address: str, after: dict[str, int], workers: int = 2) -> None:
    """Wait until each worker has written its witness, and again if it had before."""

    def written() -> bool:
        now = versions_of_witnesses(address)
        return len(now) == workers and all(now[name] > after.get(name, 0) for name in now)

    deadline = time.monotonic() + WITHIN_S
    while not await asyncio.to_thread(written):
        assert time.monotonic() < deadline


async def test_a_restored_zookeeper_revives_no_revoked_token_until_an_operator_accepts_it(tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    with child_zookeeper(tmp_path / "zookeeper") as server:
        properties = node_properties(server.address, zookeeper_session_timeout_ms=SESSION_TIMEOUT_MS)
        with Node(tmp_path / "node", properties) as node:
            async with node.client() as client:
                revoked, live = await client.create(), await client.create()
            await all_witnesses_written(server.address, {})
            await asyncio.to_thread(server.stop)
            shutil.copytree(server.data_dir / "data", backup)
            await asyncio.to_thread(server.start)
            before = versions_of_witnesses(server.address)
            await _expired(node, revoked)
            await all_witnesses_written(server.address, before)

            await asyncio.to_thread(server.stop)
            shutil.rmtree(server.data_dir / "data")
            shutil.copytree(backup, server.data_dir / "data")
            await asyncio.to_thread(server.start)
            node.process.wait_for("ZooKeeper is not used: its history went back", WITHIN_S)
            assert logs_in(node, live), "what was heard before is good for kafka.dt.zookeeper.max.staleness.ms"
            assert not any(logs_in(node, revoked) for _ in range(4))

            command = ["accept-restore", "--config", str(node.configuration)]
            done = CliRunner().invoke(main, command)
            assert done.exit_code == 2
            assert "say --yes" in done.output
            done = await asyncio.to_thread(CliRunner().invoke, main, [*command, "--yes"])
            assert done.exit_code == 0, done.output
            assert "accepted as it is, with 2 tokens" in done.output
            await eventually(lambda: logs_in(node, revoked), WITHIN_S)
        node.check_log()


async def _expired(node: Node, token: DelegationToken) -> None:
    """Revoke a token, on a node that has just got its ZooKeeper back."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            async with node.client() as client:
                await client.expire(token.hmac, -1)
        except TokenClientError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
        else:
            return


@pytest.mark.soak
async def test_an_ensemble_that_was_restored_is_noticed_though_it_begins_a_new_epoch(tmp_path: Path) -> None:
    folders = [tmp_path / "ensemble" / f"member-{number}" / "data" / "version-2" for number in (1, 2, 3)]
    with Ensemble(tmp_path / "ensemble") as ensemble:

        def restart(meanwhile: Callable[[], object]) -> None:
            for member in ensemble.members:
                member.kill()
            meanwhile()
            for member in ensemble.members:
                member.start()
            ensemble.followers()

        def restore() -> None:
            for folder in folders:
                shutil.rmtree(folder)
                shutil.copytree(tmp_path / "backup", folder)

        async with worker_of(ensemble.connect) as worker:
            await asyncio.to_thread(restart, lambda: None)
            await eventually(lambda: worker.client.connected, WITHIN_S)
            assert not worker.guard.trouble, "a new leader alone is no reason to doubt"
            await asyncio.to_thread(shutil.copytree, folders[0], tmp_path / "backup")
            await worker.client.ensure_path(TokenChangeZnode.PARENT)  # as a change does
            await worker.guard.keep(worker.client)
            await asyncio.to_thread(restart, restore)
            await eventually(lambda: "its history went back" in worker.guard.trouble, WITHIN_S)
            assert not worker.client.connected


class Worker:
    """A worker's guard and its client."""

    def __init__(self, connect: str, file: Path | None = None, name: str = "", *, removes_old: bool = False) -> None:
        self.outdated = asyncio.Event()
        self.distrusted = asyncio.Event()
        self.memory = WitnessMemory(file)
        name = name or secrets.token_hex(8)
        self.guard = HistoryGuard(
            self.memory,
            name,
            outdated=self.outdated.set,
            distrusted=self.distrusted.set,
            now_ms=now_ms,
            removes_old=removes_old,
        )
        limits = ZooKeeperSettings(connect, session_timeout_ms=SESSION_TIMEOUT_MS, connection_timeout_ms=2000)
        self.client = ZooKeeperClient(limits, self.guard)

    @asynccontextmanager
    async def starting(self) -> AsyncIterator[asyncio.Task[None]]:
        """Have the client start; it is closed at the end."""
        task = asyncio.create_task(self.client.start())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.client.close()

    async def lose_a_write(self, other: ZooKeeperClient) -> None:
        """Have ZooKeeper lack what this worker has written, and let it look."""
        assert self.memory.witness is not None
        path = WitnessZnode.path(self.memory.witness.name)
        await other.delete(path)
        await other.create(path, b"")
        self.client.readmit()


@asynccontextmanager
async def worker_of(
    connect: str, file: Path | None = None, name: str = "", *, removes_old: bool = False
) -> AsyncIterator[Worker]:
    worker = Worker(connect, file, name, removes_old=removes_old)
    await worker.client.start()
    try:
        await read_or_create_cluster_id(worker.client, lambda size: bytes(range(size)))
        await worker.guard.keep(worker.client)
        yield worker
    finally:
        await worker.client.close()


@asynccontextmanager
async def two_in_doubt(connect: str) -> AsyncIterator[tuple[ZooKeeperClient, Worker, Worker]]:
    """Give an operator's client, a worker that has lost a write, and one that has lost none and has heard of it."""
    async with client_of(settings(connect)) as operator, worker_of(connect) as one, worker_of(connect) as other:
        await one.lose_a_write(operator)
        await eventually(lambda: "its history went back" in one.guard.trouble)
        await other.guard.keep(other.client)
        await eventually(lambda: "its history went back" in other.guard.trouble)
        yield operator, one, other


async def test_a_worker_whose_writes_are_there_is_admitted_again(zookeeper_connect: str) -> None:
    async with worker_of(zookeeper_connect) as worker:
        for _ in range(3):
            worker.client.readmit()
            assert not worker.client.connected
            await eventually(lambda: worker.client.connected)
            await worker.guard.keep(worker.client)
        assert not worker.outdated.is_set()


async def test_a_worker_that_remembers_nothing_hears_of_a_doubt_and_goes_on_after_the_operators_word(
    zookeeper_connect: str,
) -> None:
    async with two_in_doubt(zookeeper_connect) as (operator, one, other):
        assert not one.client.connected
        assert not other.client.connected
        late = Worker(zookeeper_connect)
        async with late.starting() as starting:
            await eventually(lambda: "kafka-dt accept-restore" in late.guard.trouble)
            await accept(operator)
            await starting
        await one.outdated.wait()
        await other.outdated.wait()
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
        await other.distrusted.wait()
        await late.distrusted.wait()
        assert not one.distrusted.is_set()


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
            assert not worker.outdated.is_set()
            assert worker.memory.witness is not None
            assert worker.memory.witness.name != witness.name


async def test_a_node_that_starts_in_doubt_waits_for_the_operator_and_goes_on(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    """It waits for longer than it may take to connect, and its ports are its own meanwhile."""
    timeout_ms = 1_000
    properties = node_properties(zookeeper_connect, zookeeper_connection_timeout_ms=timeout_ms)
    node = Node(tmp_path, properties)
    async with client_of(settings(zookeeper_connect)) as operator:
        await operator.ensure_path(PARENT)
        await operator.create(HistoryZnode.PATH, HistoryZnode.encode(History(doubted=True)))
        starting = asyncio.create_task(asyncio.to_thread(node.start))
        try:
            await eventually(lambda: node.log().count("ZooKeeper is not used: its history went back") == WORKERS)
            await asyncio.sleep(2 * timeout_ms / 1000)
            assert not starting.done()
            await accept(operator)
            await starting
            node.connect(user="alice").close()
        finally:
            await asyncio.to_thread(node.stop)
    node.check_log()


async def test_a_worker_that_comes_late_finds_that_the_restore_was_accepted(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as operator, worker_of(zookeeper_connect) as worker:
        await accept(operator)
        await worker.lose_a_write(operator)
        await worker.outdated.wait()


async def test_an_earlier_word_of_the_operator_does_not_count(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as operator:
        await accept(operator)
        async with worker_of(zookeeper_connect) as worker:
            await worker.lose_a_write(operator)
            await eventually(lambda: "its history went back" in worker.guard.trouble)


async def test_a_running_worker_notices_though_its_clock_is_ahead(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as operator, worker_of(zookeeper_connect) as worker:
        assert worker.memory.witness is not None
        written_ms = worker.memory.witness.written_ms
        await worker.memory.keep(replace(worker.memory.witness, written_ms=written_ms - KEPT_MS - TEN_MINUTES_MS))
        await worker.lose_a_write(operator)
        await eventually(lambda: "its history went back" in worker.guard.trouble)


async def test_an_acceptance_counts_though_the_leaders_clock_is_behind(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as operator, worker_of(zookeeper_connect) as worker:
        assert worker.memory.witness is not None
        await worker.memory.keep(replace(worker.memory.witness, written_ms=now_ms() + TEN_MINUTES_MS))
        await worker.lose_a_write(operator)
        await eventually(lambda: "its history went back" in worker.guard.trouble)
        await accept(operator)
        await asyncio.wait_for(worker.outdated.wait(), WITHIN_S)
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
            assert not worker.outdated.is_set()


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
        assert not other.outdated.is_set()
        await accept(operator)
        await asyncio.wait_for(other.outdated.wait(), WITHIN_S)


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
            assert not worker.outdated.is_set()


async def test_a_worker_writes_again_when_there_is_a_new_acceptance(zookeeper_connect: str) -> None:
    async with client_of(settings(zookeeper_connect)) as operator, worker_of(zookeeper_connect) as worker:
        await accept(operator)
        await worker.guard.keep(worker.client)
        await worker.lose_a_write(operator)
        await eventually(lambda: "its history went back" in worker.guard.trouble)


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


async def test_a_node_says_that_it_could_not_notice_a_restore(zookeeper_connect: str, tmp_path: Path) -> None:
    with Node(tmp_path, node_properties(zookeeper_connect, kafka_dt_workers=1)) as node:
        async with client_of(settings(zookeeper_connect)) as operator:
            await operator.create(HistoryZnode.PATH, b"not readable")
        await asyncio.to_thread(node.process.wait_for, "A restored ZooKeeper would not be noticed now", WITHIN_S)


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
            assert isinstance(outcomes[0], ConnectionLost)
            assert await worker.client.exists("/behind") is None


async def test_a_request_over_a_small_jute_maxbuffer_keeps_no_worker_away(tmp_path: Path) -> None:
    with child_zookeeper(tmp_path, system_properties={"jute.maxbuffer": "60000"}) as server:
        async with worker_of(server.address) as worker:
            large = worker.client.multi([Create("/large", bytes(100_000))])
            behind = [worker.client.exists(f"/behind-{number}") for number in range(3)]
            with pytest.raises(ConnectionLost):
                await large
            assert await asyncio.wait_for(asyncio.gather(*behind), WITHIN_S) == [None] * 3
            await eventually(lambda: worker.client.connected)


async def test_a_worker_without_a_memory_goes_on_with_the_witness_of_its_name(zookeeper_connect: str) -> None:
    for _ in range(3):
        async with worker_of(zookeeper_connect, name="node-0") as worker:
            assert await worker.client.children(WitnessZnode.PARENT) == ["node-0"]


@pytest.mark.soak
async def test_a_worker_that_takes_the_place_of_a_killed_one_goes_on_with_its_witness(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    with Node(tmp_path, node_properties(zookeeper_connect, kafka_dt_workers=1)) as node:
        await all_witnesses_written(zookeeper_connect, {}, workers=1)
        before = versions_of_witnesses(zookeeper_connect)
        os.kill(node.workers()[0], signal.SIGKILL)
        await all_witnesses_written(zookeeper_connect, before, workers=1)


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
