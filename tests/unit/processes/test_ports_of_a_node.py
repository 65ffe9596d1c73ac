"""The ports of a node: no other program and no other node has them, and they stay taken."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from kafka_dt.config import ConfigError, Endpoint
from kafka_dt.processes import guard
from tests.unit.processes.running_node import Node, alive, running, until


async def test_a_port_that_somebody_listens_on_is_an_error_that_names_it(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        node = Node(tmp_path)
        node.supervisor.endpoints = [Endpoint("PLAINTEXT", "127.0.0.1", taken.getsockname()[1])]
        with pytest.raises(ConfigError, match=r"listeners.*PLAINTEXT://127\.0\.0\.1.*in use"):
            await node.supervisor.run()
    assert node.pids() == []


async def test_a_port_of_another_node_is_not_shared_with_it(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        node = Node(tmp_path)
        node.supervisor.endpoints = [Endpoint("PLAINTEXT", "127.0.0.1", other.getsockname()[1])]
        with pytest.raises(ConfigError, match="in use"):
            await node.supervisor.run()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a port on which no process listens yet")
@pytest.mark.parametrize(
    ("first", "second"),
    [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("", "127.0.0.1"), ("127.0.0.1", "")],
)
async def test_a_node_does_not_share_a_port_with_one_whose_workers_do_not_listen_yet(
    tmp_path: Path, first: str, second: str
) -> None:
    node, other = Node(tmp_path), Node(tmp_path / "other")
    node.supervisor.endpoints = [Endpoint("PLAINTEXT", first, 0)]
    async with running(node):
        free = Endpoint("FREE", "127.0.0.1", 0)
        other.supervisor.endpoints = [free, Endpoint("PLAINTEXT", second, node.ports["PLAINTEXT"])]
        with pytest.raises(ConfigError, match=r"listeners: PLAINTEXT://.* is in use: (another node|Address already)"):
            await other.supervisor.run()
    assert not (tmp_path / "other").exists()


async def test_nodes_may_have_the_same_port_on_different_addresses_and_one_after_the_other(tmp_path: Path) -> None:
    nodes = [Node(tmp_path, count=1) for _ in range(3)]
    nodes[0].supervisor.endpoints = [Endpoint("PLAINTEXT", "127.0.0.1", 0)]
    async with running(nodes[0]):
        port = nodes[0].ports["PLAINTEXT"]
        nodes[1].supervisor.endpoints = [Endpoint("PLAINTEXT", "127.0.0.2", port)]
        async with running(nodes[1]):
            assert nodes[1].ready.is_set()
    nodes[2].supervisor.endpoints = [Endpoint("PLAINTEXT", "", port)]
    async with running(nodes[2]):
        assert nodes[2].ready.is_set()


async def test_the_ports_stay_taken_while_no_worker_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 60)
    node = Node(tmp_path, count=1)
    async with running(node):
        os.kill(node.pids()[0], signal.SIGKILL)
        await until(lambda: not alive(node.pids()[0]))
        with socket.socket() as thief, pytest.raises(OSError, match="in use"):
            thief.bind(("127.0.0.1", node.ports["PLAINTEXT"]))
