"""ZooKeeper goes away under load and comes back: nothing acknowledged is lost, nothing deleted returns, no help."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kio.schema.errors import ErrorCode

from kafka_dt.client import DelegationToken, RequestRefused
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from tests.chaos.token_load import TokenLoad, logs_in
from tests.support.nodes.node import WORKERS, Node, local_port, node_properties
from tests.support.processes.process import hanging
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import DESCRIBE, ConnectionClosed
from tests.support.zookeeper.server import child_zookeeper

_LOG = logging.getLogger(__name__)
"""Measured figures, shown with `--log-cli-level=INFO`."""

CYCLES = 2
SESSION_TIMEOUT_MS = 1_500
MAX_STALENESS_MS = 4_000
TIMEOUT_S = 60.0
AT_ONCE_S = 5.0
"""What "at once" means on a machine that does other things at the same time."""


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[EmbeddedZooKeeper]:
    with child_zookeeper(tmp_path / "zookeeper") as server:
        yield server


@contextlib.contextmanager
def two_nodes(folder: Path, connect: str, **settings: object) -> Iterator[list[Node]]:
    """Nodes that seal their tokens, as they do unless they are told not to."""
    settings["delegation_token_metadata_encryption_enable"] = True
    with contextlib.ExitStack() as stack:
        nodes = []
        for name in ("one", "two"):
            node = Node(folder / name, node_properties(connect, **settings), name)
            nodes.append(stack.enter_context(node))
        yield nodes
        for node in nodes:
            node.check_log()


@contextlib.contextmanager
def connected(connect: str) -> Iterator[KazooClient]:
    kazoo = KazooClient(hosts=connect)
    kazoo.start()
    try:
        yield kazoo
    finally:
        kazoo.stop()
        kazoo.close()


async def known_everywhere(nodes: list[Node]) -> DelegationToken:
    """A token that every worker of every node has met."""
    async with nodes[0].client() as client:
        token = await client.create()
    for node in nodes:
        await asyncio.to_thread(_meet, node, token)
    return token


async def until_reconnected(nodes: list[Node]) -> None:
    """Wait until every worker of every node is connected to ZooKeeper again: only then it takes a token that is new."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            with contextlib.suppress(RequestRefused, ConnectionClosed):
                await known_everywhere(nodes)
                return
            await asyncio.sleep(0.1)


def _meet(node: Node, token: DelegationToken) -> None:
    with node.on_every_worker(lambda: node.connect_by_token(token)):
        pass


async def test_zookeeper_is_killed_and_restarted_under_load(zookeeper: EmbeddedZooKeeper, tmp_path: Path) -> None:
    recovered_s = []
    with two_nodes(tmp_path, zookeeper.address) as nodes:
        veterans = [await known_everywhere(nodes) for _ in range(4)]
        async with TokenLoad(nodes).running() as load:
            for _ in range(CYCLES):
                await load.until_created(30)
                load.calm = False
                await asyncio.to_thread(zookeeper.kill)
                begun = len(load.refusals)
                await load.until_refused(40)
                # Requests that change nothing, and logins with known tokens, still succeed. The exception is a token
                # that shares its revocation counter with a token revoked just before: one in some thousand.
                logins = [await logs_in(node, veteran) for veteran in veterans for node in nodes]
                assert logins.count(False) <= len(nodes)
                await asyncio.to_thread(_described, nodes)
                noticed = load.refusals[begun + 16 :]  # those under way when it was killed aside
                assert max(refusal.seconds for refusal in noticed) < AT_ONCE_S
                restarted = time.monotonic()
                await asyncio.to_thread(zookeeper.start)
                await load.until_created(1)
                recovered_s.append(time.monotonic() - restarted)
                await load.until_created(30)
                await until_reconnected(nodes)
                load.calm = True
        _LOG.info("Both nodes made tokens again after (s): %s, of %d", recovered_s, sum(load.created.values()))
        _check_answers(load)
        with connected(zookeeper.address) as kazoo:
            await load.check(kazoo)


async def test_zookeeper_hangs_longer_than_its_sessions_last(zookeeper: EmbeddedZooKeeper, tmp_path: Path) -> None:
    settings = {
        "kafka_dt_workers": 1,
        "zookeeper_session_timeout_ms": SESSION_TIMEOUT_MS,
        "kafka_dt_zookeeper_max_staleness_ms": MAX_STALENESS_MS,
    }
    with two_nodes(tmp_path, zookeeper.address, **settings) as nodes:
        veteran = await known_everywhere(nodes)
        async with TokenLoad(nodes).running() as load:
            await load.until_created(40)
            load.calm = False
            with hanging(zookeeper.server_pid):
                stopped = time.monotonic()
                assert all([await logs_in(node, veteran) for node in nodes])
                await load.until_refused(40)
                for node in nodes:
                    async with asyncio.timeout(TIMEOUT_S):
                        while await logs_in(node, veteran):  # noqa: ASYNC110 - no event to wait for
                            await asyncio.sleep(0.1)
                    # A node refuses logins once it cannot know which tokens were revoked, and not earlier.
                    assert time.monotonic() - stopped > MAX_STALENESS_MS / 2000
            await load.until_created(30)
            await until_reconnected(nodes)
            load.calm = True
            assert all([await logs_in(node, veteran) for node in nodes])
            await load.until_created(10)
        _check_answers(load)
        with connected(zookeeper.address) as kazoo:
            await load.check(kazoo)


async def test_a_node_that_is_killed_under_load_loses_nothing_that_it_acknowledged(
    zookeeper: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    with two_nodes(tmp_path, zookeeper.address, kafka_dt_workers=1) as (survivor, victim):
        async with victim.client() as client:
            kept = [await client.create() for _ in range(50)]
            expiry = await client.renew(kept[0].hmac, 60_000)
            await client.expire(kept[1].hmac)
            victim.kill()
        async with survivor.client() as client:
            described = {token.token_id: token for token in await client.describe()}
        assert described.keys() == {token.token_id for token in kept} - {kept[1].token_id}
        assert described[kept[0].token_id].expiry_timestamp_ms == expiry
        await asyncio.to_thread(victim.start)
        assert await logs_in(victim, kept[2])
        assert not await logs_in(victim, kept[1])


@contextlib.contextmanager
def one_node(folder: Path, connect: str, **settings: object) -> Iterator[Node]:
    with Node(folder / "node", node_properties(connect, **settings)) as node:
        yield node
    node.check_log()


async def test_a_worker_that_dies_during_an_outage_is_back_when_zookeeper_is(
    zookeeper: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    with one_node(tmp_path, zookeeper.address, zookeeper_connection_timeout_ms=1_000) as node:
        veteran = await known_everywhere([node])
        zookeeper.kill()
        victim, survivor = node.workers()
        os.kill(victim, signal.SIGKILL)
        # Its successor cannot start either; the other worker goes on alone.
        await asyncio.to_thread(node.process.wait_for, r"Worker \d: .*ZooKeeper.*; it is replaced in", TIMEOUT_S)
        assert survivor in node.workers()
        await asyncio.to_thread(zookeeper.start)
        assert await logs_in(node, veteran)
        await asyncio.to_thread(eventually, lambda: _all_serve(node, veteran), TIMEOUT_S)
        async with node.client() as client:
            await client.expire(veteran.hmac)


@pytest.mark.parametrize("silent", [False, True], ids=["gone", "silent"])
def test_a_node_stops_without_zookeeper(zookeeper: EmbeddedZooKeeper, tmp_path: Path, silent: bool) -> None:
    with one_node(tmp_path, zookeeper.address) as node:
        workers = node.workers()
        if not silent:
            zookeeper.kill()
        with hanging(zookeeper.server_pid) if silent else contextlib.nullcontext():
            assert node.stop() == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def _all_serve(node: Node, token: DelegationToken) -> bool:
    """Whether both workers are there and take a login."""
    if len(node.workers()) < WORKERS:
        return False
    found = set()
    for _ in range(20):
        with node.connect_by_token(token) as connection:
            found.add(node.worker_of(local_port(connection)))
    return len(found) == WORKERS


def _check_answers(load: TokenLoad) -> None:
    assert {refusal.error.code for refusal in load.refusals} == {ErrorCode.request_timed_out}
    assert ErrorCode.request_timed_out.retriable
    assert load.refused_logins == []
    assert load.logins > 20
    assert len(load.deleted) > 5


def _described(nodes: list[Node]) -> None:
    for node in nodes:
        with node.connect(user="alice") as connection:
            assert connection.ask(DESCRIBE, 3, owners=None).error_code.value == 0
