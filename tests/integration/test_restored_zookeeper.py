"""A ZooKeeper that was restored from a backup: nodes notice, and wait for an operator."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kafka_dt.cli import main
from kafka_dt.client import DelegationToken, TokenClientError
from kafka_dt.config import from_properties
from kafka_dt.idle import IdleTime
from kafka_dt.stores import StoreNeeds, WorkerPlace
from kafka_dt.tokens import Keyring, TokenCache, TokenLimits
from kafka_dt.tokens.store import NEVER_MS
from kafka_dt.zookeeper.node import node_stores
from kafka_dt.zookeeper.proofs.history import accept
from kafka_dt.zookeeper.sealing.derivations import MEMORY_BYTES, Derivations
from kafka_dt.zookeeper.znodes.kafka import TokenChangeZnode
from kafka_dt.zookeeper.znodes.own import PARENT, History, HistoryZnode, WitnessZnode
from tests.integration.restored_zookeeper import WITHIN_S, worker_of
from tests.integration.zookeeper_nodes import SESSION_TIMEOUT_MS, client_of, eventually, now_ms, settings
from tests.support.nodes.node import WORKERS, Node, node_properties
from tests.support.protocol.raw import ConnectionClosed, LoginRefused
from tests.support.zookeeper.ensemble import Ensemble
from tests.support.zookeeper.server import child_zookeeper


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


async def test_a_node_says_that_it_could_not_notice_a_restore(zookeeper_connect: str, tmp_path: Path) -> None:
    with Node(tmp_path, node_properties(zookeeper_connect, kafka_dt_workers=1)) as node:
        async with client_of(settings(zookeeper_connect)) as operator:
            await operator.create(HistoryZnode.PATH, b"not readable")
        await asyncio.to_thread(node.process.wait_for, "A restored ZooKeeper would not be noticed now", WITHIN_S)


@pytest.mark.soak
async def test_a_worker_that_takes_the_place_of_a_killed_one_goes_on_with_its_witness(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    with Node(tmp_path, node_properties(zookeeper_connect, kafka_dt_workers=1)) as node:
        await all_witnesses_written(zookeeper_connect, {}, workers=1)
        before = versions_of_witnesses(zookeeper_connect)
        os.kill(node.workers()[0], signal.SIGKILL)
        await all_witnesses_written(zookeeper_connect, before, workers=1)


async def test_the_tokens_of_a_node_count_as_stale_while_the_history_is_in_doubt(zookeeper_connect: str) -> None:
    """Though no write of this worker is missing: it may have read revoked tokens before another worker noticed."""
    properties = {"zookeeper.connect": zookeeper_connect, "delegation.token.secret.key": "the secret key"}
    node_settings = from_properties(properties).settings
    derivations = Derivations(bytearray(MEMORY_BYTES))
    with ThreadPoolExecutor(1) as executor:
        keyring = Keyring("the secret key")
        needs = StoreNeeds(keyring, TokenCache(keyring), TokenLimits(), executor, IdleTime(executor))
        stores = node_stores(node_settings, WorkerPlace(0, 1, "node"), derivations, needs, now_ms=now_ms)
        async with client_of(settings(zookeeper_connect)) as operator:
            await stores.cluster.start()
            await stores.tokens.load()
            assert stores.tokens.staleness_ms() < WITHIN_S * 1_000
            await operator.ensure_path(PARENT)
            await operator.create(HistoryZnode.PATH, HistoryZnode.encode(History(doubted=True)))
            await stores.cluster.keep()
            await eventually(lambda: stores.tokens.staleness_ms() == NEVER_MS)
        await stores.close()
        await stores.cluster.close()
