"""The health of a real node: its state by name, with the reason, over HTTP and by `kafka-dt health`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from tests.support.nodes.commands import called
from tests.support.nodes.metrics import MetricsEndpoint, metrics_properties
from tests.support.nodes.node import Node, node_properties
from tests.support.processes.ports import free_ports
from tests.support.processes.tcp_gate import TcpGate
from tests.support.processes.waiting import eventually

WITHIN_S = 30.0
MAX_STALENESS_MS = 3_000
DRAIN_DELAY_MS = 600_000
STALE = re.compile(r"worker [01]: changes of tokens have not been heard of for \d+ s, the limit is 3 s")


def health(*arguments: object) -> tuple[int, str, str]:
    done = called("health", *arguments)
    return done.returncode, done.stdout, done.stderr


async def within(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(eventually, condition, WITHIN_S)


def serves(endpoint: MetricsEndpoint) -> bool:
    with suppress(OSError):
        return endpoint.get("/livez") == (200, "alive\n")
    return False


async def test_a_node_tells_its_states_from_its_start_to_its_end(zookeeper_connect: str, tmp_path: Path) -> None:
    endpoint = MetricsEndpoint(free_ports(1))
    address, _, chroot = zookeeper_connect.partition("/")
    host, _, port = address.rpartition(":")
    async with TcpGate(host, int(port)) as gate:
        properties = node_properties(
            f"127.0.0.1:{gate.port}/{chroot}",
            kafka_dt_zookeeper_max_staleness_ms=MAX_STALENESS_MS,
            kafka_dt_drain_delay_ms=DRAIN_DELAY_MS,
            zookeeper_connection_timeout_ms=600_000,
        )
        node = Node(tmp_path, properties | metrics_properties(endpoint.port))
        gate.shut()
        with node.process.starting() as process:
            await within(lambda: serves(endpoint))
            assert await asyncio.to_thread(endpoint.readiness) == (503, ["starting", "no worker serves yet"])
            gate.open()
            await within(lambda: endpoint.readiness() == (200, ["ready"]))
            assert await asyncio.to_thread(health, "--config", node.configuration) == (0, "ready\n", "")

            gate.shut()
            await within(lambda: endpoint.readiness()[1][0] == "stale")
            status, (_, *reasons) = await asyncio.to_thread(endpoint.readiness)
            assert status == 503
            assert reasons
            assert all(STALE.fullmatch(reason) for reason in reasons), reasons
            assert await asyncio.to_thread(serves, endpoint)
            gate.open()
            await within(lambda: endpoint.readiness() == (200, ["ready"]))

            assert process.pid is not None
            os.kill(process.pid, signal.SIGTERM)
            await within(lambda: endpoint.readiness() == (503, ["draining", "the node was told to stop"]))
            code, said, _ = await asyncio.to_thread(health, "--url", endpoint.url, "--output", "json")
            assert code == 1
            assert json.loads(said) == {"ready": False, "state": "draining", "reasons": ["the node was told to stop"]}
            assert "until then the node serves, and /readyz says that it is draining" in node.log()
            os.kill(process.pid, signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, WITHIN_S) == 0
            node.stop()
    code, said, _ = await asyncio.to_thread(health, "--url", endpoint.url)
    assert (code, said.splitlines()[0]) == (1, "down")


def test_a_node_without_the_listener_cannot_be_asked(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("listeners=PLAINTEXT://127.0.0.1:0\n")
    code, said, complaint = health("--config", config)
    assert (code, said) == (1, "")
    assert complaint == "Error: kafka.dt.metrics.listener: it is none, so the node cannot be asked\n"


def test_what_is_no_node_is_not_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        answering = Thread(target=answer_nonsense, args=(other,))
        answering.start()
        assert health("--url", f"http://127.0.0.1:{port}")[:2] == (
            1,
            f"down\n127.0.0.1:{port} is no metrics listener: status 404\n",
        )
        answering.join()


def answer_nonsense(listening: socket.socket) -> None:
    client, _ = listening.accept()
    with client:
        client.recv(4096)
        client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--url", "ftp://x"),
        ("--url", "http://x:port"),
        ("--url", "http://x:65536"),
        ("--url", "http://[::1"),
        ("--url", "http://a..b:1"),
        ("--url", f"http://{'a' * 64}:1"),
        ("--url", "http://a b:1"),
        ("--url", "http://x", "--config", __file__),
    ],
)
def test_wrong_usage_has_its_own_status(arguments: tuple[str, ...]) -> None:
    assert health(*arguments)[0] == 2
