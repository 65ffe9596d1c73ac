"""The processes of a real node: how it starts, how it stops, and what happens when one of them is killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kafka_dt.client import ConnectionFailed, TokenClient
from tests.support.brokers.broker import SECRET_KEY, USERS
from tests.support.nodes.node import Node, found_in_memory, node_properties, refuses_connections
from tests.support.processes.process import ProcessFailed, freeze
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import DESCRIBE

CLIENTS = 8
TIMEOUT_S = 30.0
MOST_OF_A_WORKER_KIB = 20 * 1024
"""The memory of a worker that no other process shares; a Python that has imported a worker's program takes 45 MiB."""


@pytest.fixture
def own_node(zookeeper_connect: str, tmp_path: Path) -> Iterator[Node]:
    """A node that the test may do anything to."""
    with Node(tmp_path, node_properties(zookeeper_connect)) as node:
        node.zookeeper = zookeeper_connect
        yield node
    node.check_log()


def alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


@pytest.mark.compiled
def test_a_node_beside_the_compiled_wheel_runs_it(own_node: Node) -> None:
    for pid in own_node.workers():
        mapped = Path(f"/proc/{pid}/maps").read_text()
        assert "kafka_dt_protocol/connection." in mapped or "kafka_dt_protocol__mypyc" in mapped


def stored_tokens(connect: str) -> set[str]:
    kazoo = KazooClient(hosts=connect)
    kazoo.start()
    try:
        return set(kazoo.get_children("/delegation_token/tokens"))
    finally:
        kazoo.stop()
        kazoo.close()


async def create_until_closed(node: Node, created: set[str], enough: asyncio.Event) -> None:
    """Create tokens until the server hangs up; a token counts when its create was answered."""
    with contextlib.suppress(ConnectionFailed):
        async with node.client() as client:
            while True:
                created.add((await client.create()).token_id)
                if len(created) >= 20 * CLIENTS:
                    enough.set()


async def test_sigterm_answers_what_is_under_way_and_closes_the_rest(own_node: Node, zookeeper_connect: str) -> None:
    created: set[str] = set()
    enough = asyncio.Event()
    clients = [asyncio.create_task(create_until_closed(own_node, created, enough)) for _ in range(CLIENTS)]
    async with asyncio.timeout(TIMEOUT_S):
        await enough.wait()
        workers = own_node.workers()
        assert await asyncio.to_thread(own_node.stop) == 0
        await asyncio.gather(*clients)
    assert not any(alive(pid) for pid in workers)
    # The node answered every request that it had begun: each stored token was reported to its client.
    assert await asyncio.to_thread(stored_tokens, zookeeper_connect) == created


def test_sigterm_does_not_wait_for_idle_or_half_open_clients(own_node: Node) -> None:
    with own_node.connect(user="alice") as idle, own_node.connect() as silent, own_node.connect("PLAINTEXT") as half:
        half.send(b"\0\0\0\x20half a frame")
        assert own_node.stop() == 0
        assert idle.closed()
        assert silent.closed()
        assert half.closed()


def test_a_killed_worker_is_replaced_and_the_port_stays(own_node: Node) -> None:
    before = set(own_node.workers())
    with own_node.on_every_worker(lambda: own_node.connect(user="alice")) as connections:
        victim, survivor = sorted(before)
        os.kill(victim, signal.SIGKILL)
        assert connections[victim].closed()
        assert connections[survivor].ask(DESCRIBE, 3, owners=None).error_code.value == 0
        eventually(lambda: len(set(own_node.workers()) - {victim}) == 2, TIMEOUT_S)
        (successor,) = set(own_node.workers()) - before
        with own_node.on_every_worker(lambda: own_node.connect(user="alice")) as again:
            assert set(again) == {survivor, successor}
            assert all(each.ask(DESCRIBE, 3, owners=None).error_code.value == 0 for each in again.values())
        assert connections[survivor].ask(DESCRIBE, 3, owners=None).error_code.value == 0
    own_node.process.wait_for(r"ERROR \[supervisor\] Worker \d: it ended with status -9; it is replaced in", TIMEOUT_S)


def test_a_worker_that_hangs_is_replaced_and_the_port_stays(zookeeper_connect: str, tmp_path: Path) -> None:
    with Node(tmp_path, node_properties(zookeeper_connect, kafka_dt_worker_timeout_ms=5000)) as node:
        frozen = node.workers()[0]
        freeze(frozen)
        node.process.wait_for(r"Worker \d hangs: no sign of life for 5 s; it is killed", TIMEOUT_S)
        node.process.wait_for(r"Worker \d: it ended with status -9; it is replaced in", TIMEOUT_S)
        eventually(lambda: len(set(node.workers()) - {frozen}) == 2, TIMEOUT_S)
        with node.on_every_worker(lambda: node.connect(user="alice")) as connections:
            assert all(each.ask(DESCRIBE, 3, owners=None).error_code.value == 0 for each in connections.values())
    node.check_log()


def test_a_killed_template_disturbs_no_client_and_is_replaced_with_the_next_worker(own_node: Node) -> None:
    before, template = set(own_node.workers()), own_node.template()
    with own_node.on_every_worker(lambda: own_node.connect(user="alice")) as connections:
        os.kill(template, signal.SIGKILL)
        victim, survivor = sorted(before)
        assert all(each.ask(DESCRIBE, 3, owners=None).error_code.value == 0 for each in connections.values())
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: len(set(own_node.workers()) - {victim}) == 2, TIMEOUT_S)
        with own_node.on_every_worker(lambda: own_node.connect(user="alice")) as again:
            assert all(each.ask(DESCRIBE, 3, owners=None).error_code.value == 0 for each in again.values())
        assert connections[survivor].ask(DESCRIBE, 3, owners=None).error_code.value == 0
    assert own_node.template() != template
    own_node.process.wait_for(r"The template of the workers ended with status -9; it is replaced", TIMEOUT_S)


def test_the_template_has_one_thread_no_connection_and_no_secret(own_node: Node) -> None:
    template = own_node.template()
    assert len(list(Path(f"/proc/{template}/task").iterdir())) == 1
    links = sorted(link.readlink().name for link in Path(f"/proc/{template}/fd").iterdir())
    assert len([name for name in links if name.startswith("socket:")]) == 1, links
    assert not [name for name in links if name.startswith(("pipe:", "anon_inode:"))], links
    for secret in (SECRET_KEY, *USERS.values()):
        assert not found_in_memory(template, secret)
        assert found_in_memory(own_node.workers()[0], secret), "the search finds nothing at all"


def test_a_further_worker_takes_little_memory(own_node: Node) -> None:
    for worker in own_node.workers():
        rollup = Path(f"/proc/{worker}/smaps_rollup").read_text().splitlines()
        of_its_own = sum(int(line.split()[1]) for line in rollup if line.startswith("Private_"))
        assert of_its_own <= MOST_OF_A_WORKER_KIB


async def test_a_client_goes_on_at_the_other_worker(own_node: Node) -> None:
    async with own_node.client() as client:
        token = await client.create()
        for pid in own_node.workers():
            os.kill(pid, signal.SIGKILL)
            await asyncio.to_thread(eventually, _replaced(own_node, pid), TIMEOUT_S)
            await _described(client, token.token_id)


def _replaced(node: Node, pid: int) -> Callable[[], bool]:
    return lambda: len(set(node.workers()) - {pid}) == 2


async def _described(client: TokenClient, token_id: str) -> None:
    """Ask until a worker is there; the successor is still on its way."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            with contextlib.suppress(ConnectionFailed):
                assert token_id in {each.token_id for each in await client.describe()}
                return
            await asyncio.sleep(0.05)


def test_workers_end_with_a_supervisor_that_is_killed(own_node: Node) -> None:
    workers = own_node.workers()
    assert len(workers) == 2
    address = own_node.sasl
    own_node.kill()
    eventually(lambda: not any(alive(pid) for pid in workers), TIMEOUT_S)
    assert refuses_connections(address)


@pytest.mark.soak  # the workers have 20 s to drain
def test_a_hanging_worker_of_a_killed_supervisor_does_not_keep_the_port(own_node: Node, tmp_path: Path) -> None:
    port = own_node.sasl.rpartition(":")[2]
    freeze(own_node.workers()[0])
    own_node.kill()
    eventually(lambda: refuses_connections(own_node.sasl), 2 * TIMEOUT_S)
    settings = node_properties(own_node.zookeeper, listeners=f"SASL_PLAINTEXT://127.0.0.1:{port}")
    with Node(tmp_path, _one_listener(settings), "successor") as successor:
        successor.connect(user="alice").close()


def failure_of(node: Node) -> list[str]:
    """Start a node that cannot start; its last words."""
    with pytest.raises(ProcessFailed, match="ended with status 1"):
        node.start()
    node.check_log()
    return [line for line in node.log().splitlines() if not line.startswith("20")]


def test_connections_too_many_of_one_address_are_closed_over_all_listeners(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    properties = node_properties(zookeeper_connect, max_connections_per_ip=2, kafka_dt_workers=1)
    with Node(tmp_path, properties) as node:
        with node.connect("PLAINTEXT") as plain, node.connect(user="alice") as alice:
            with node.connect("PLAINTEXT") as refused:
                assert refused.closed()
            assert plain.ask(DESCRIBE, 1, owners=None).error_code.value == 64
            assert alice.ask(DESCRIBE, 1, owners=()).error_code.value == 0
        assert "Refusing a connection of 127.0.0.1" in node.log()
    node.check_log()


def test_a_port_that_is_taken_is_one_line_that_names_the_setting(zookeeper_connect: str, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = node_properties(zookeeper_connect, listeners=f"SASL_PLAINTEXT://127.0.0.1:{port}")
        (line,) = failure_of(Node(tmp_path, _one_listener(settings)))
    assert "listeners" in line
    assert str(port) in line


def test_a_zookeeper_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        port = nobody.getsockname()[1]
        settings = node_properties(f"127.0.0.1:{port}", zookeeper_connection_timeout_ms=500)
        (line,) = failure_of(Node(tmp_path, settings))
    assert f"127.0.0.1:{port}" in line


def test_sigterm_ends_a_start_that_waits_for_zookeeper(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        silent.settimeout(TIMEOUT_S)
        settings = node_properties(
            f"127.0.0.1:{silent.getsockname()[1]}", kafka_dt_workers=1, zookeeper_connection_timeout_ms=600_000
        )
        node = Node(tmp_path, settings)
        node.process.start()
        asked, _ = silent.accept()
        with contextlib.closing(asked):
            assert node.process.pid is not None
            (worker,) = node.workers()
            node.process.stop()
        assert not alive(worker)
    node.check_log()


def _one_listener(settings: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in settings.items() if not key.startswith("listener.name.reauth.")}
