"""Test the audit files of a real node: complete when it ends, whole after a crash, and no delay for its clients."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.support.brokers.broker import USERS
from tests.support.java.properties import write_properties
from tests.support.nodes.audit import AuditFolder
from tests.support.nodes.commands import called
from tests.support.nodes.node import WORKERS, Node, node_properties
from tests.support.processes.process import freeze
from tests.support.processes.waiting import eventually, on_this_machine

LOGINS = 60
SECONDS_MS = 10_000
"""A request that may take longer than this is still waited for when the node is to end."""
NOBODY = "127.0.0.1:1"


def log_in(node: Node, count: int) -> None:
    for _ in range(count):
        node.connect(user="alice").close()


def crash(node: Node) -> None:
    """End all processes of a node at once; without their supervisor workers would end in good order."""
    workers = node.workers()
    for worker in workers:
        freeze(worker)
    node.kill()
    for worker in workers:
        os.kill(worker, signal.SIGKILL)


def lines(folder: Path, pattern: str = "*.jsonl") -> list[dict[str, object]]:
    return [json.loads(line) for path in folder.glob(pattern) for line in path.read_text().splitlines()]


def test_at_its_end_a_node_has_written_everything_and_its_files_are_complete(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    folder = AuditFolder(tmp_path / "audit")
    with Node(tmp_path, node_properties(zookeeper_connect) | folder.properties()) as node:
        log_in(node, LOGINS)
        assert not list(folder.path.glob("*.jsonl"))
    assert not list(folder.path.glob("*.open"))
    found = lines(folder.path)
    assert len(found) == LOGINS
    assert len({event["id"] for event in found}) == LOGINS
    node.check_log()


def test_files_roll_by_age_though_nothing_comes_and_by_size(zookeeper_connect: str, tmp_path: Path) -> None:
    folder = AuditFolder(tmp_path / "audit")
    properties = node_properties(zookeeper_connect) | folder.properties(log_roll_ms=300, log_file_bytes=1024)
    with Node(tmp_path, properties) as node:
        log_in(node, 5)
        eventually(lambda: len(lines(folder.path)) == 5, within_s=10)
        log_in(node, 20)
        eventually(lambda: len(lines(folder.path)) == 25, within_s=10)
    names = [path.name for path in folder.path.glob("*.jsonl")]
    assert len(names) > WORKERS
    assert all(name.startswith("audit-kdt1-") for name in names)


def test_what_a_crash_has_left_is_completed_by_the_next_start(zookeeper_connect: str, tmp_path: Path) -> None:
    folder = AuditFolder(tmp_path / "audit")
    properties = node_properties(zookeeper_connect) | folder.properties()
    with Node(tmp_path / "first", properties) as node:
        log_in(node, LOGINS)
        eventually(lambda: len(lines(folder.path, "*.open")) == LOGINS, within_s=10)
        crash(node)
    left = list(folder.path.glob("*.open"))
    assert left
    assert not list(folder.path.glob("*.jsonl"))
    with left[0].open("ab") as torn:
        torn.write(b'{"version":1,"id":"half an ev')
    with Node(tmp_path / "second", properties) as node:
        eventually(lambda: len(list(folder.path.glob("*.jsonl"))) == len(left), within_s=10)
        assert len(lines(folder.path)) == LOGINS
        log_in(node, 1)
    assert len(lines(folder.path)) == LOGINS + 1
    assert not list(folder.path.glob("*.open"))


def test_a_worker_that_is_replaced_goes_on_in_files_of_its_own(zookeeper_connect: str, tmp_path: Path) -> None:
    folder = AuditFolder(tmp_path / "audit")
    with Node(tmp_path, node_properties(zookeeper_connect) | folder.properties()) as node:
        log_in(node, LOGINS)
        eventually(lambda: len(folder.events()) == LOGINS, within_s=10)
        victim = node.workers()[0]
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: victim not in node.workers() and len(node.workers()) == WORKERS, within_s=30)
        eventually(lambda: bool(list(folder.path.glob("*.jsonl"))), within_s=30)
        log_in(node, LOGINS)
    assert len(lines(folder.path)) >= 2 * LOGINS
    assert not list(folder.path.glob("*.open"))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"log.dir": "{file}/audit"}, "kafka.dt.audit.log.dir: {file} is not a directory"),
        ({"log.roll.ms": "5000"}, "kafka.dt.audit.log.roll.ms: it sets nothing without kafka.dt.audit.log.dir"),
        ({"log.dir": "{folder}", "log.file.bytes": "x"}, "kafka.dt.audit.log.file.bytes: 'x' is not a whole number"),
        ({"kafka.bootstrap.servers": "nowhere"}, "kafka.dt.audit.kafka.bootstrap.servers: 'nowhere' is not of the"),
    ],
)
def test_a_setting_that_cannot_be_used_ends_the_start_before_a_port_opens(
    tmp_path: Path, setting: dict[str, str], message: str
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    places = {"file": str(file), "folder": str(tmp_path)}
    properties = {f"kafka.dt.audit.{key}": value.format(**places) for key, value in setting.items()}
    config = write_properties(tmp_path / "server.properties", node_properties(NOBODY) | properties)
    done = called("serve", "--config", config)
    assert done.returncode == 1
    assert message.format(**places) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("how", "request_timeout_ms", "told"),
    [
        ("refuses", 1000, "events for topic kafka-dt-audit are lost"),
        ("hangs", 1000, "events for topic kafka-dt-audit are lost"),
        ("hangs", 30_000, "topic kafka-dt-audit did not take the last audit events in time"),
    ],
)
def test_brokers_that_cannot_be_reached_hurt_neither_logins_nor_files_nor_the_end(
    zookeeper_connect: str, tmp_path: Path, how: str, request_timeout_ms: int, told: str
) -> None:
    folder = AuditFolder(tmp_path / "audit")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]}" if how == "hangs" else NOBODY
        properties = folder.properties(kafka_bootstrap_servers=servers, kafka_request_timeout_ms=request_timeout_ms)
        with Node(tmp_path, node_properties(zookeeper_connect) | properties) as node:
            log_in(node, LOGINS)
            eventually(lambda: len(folder.events(principal="User:alice")) == LOGINS, within_s=10)
            if request_timeout_ms < SECONDS_MS:
                eventually(lambda: "cannot be written to topic kafka-dt-audit" in node.log(), within_s=60)
            began = time.monotonic()
            assert node.stop() == 0
            assert time.monotonic() - began < on_this_machine(15)
    assert told in node.log()
    assert len(lines(folder.path)) == LOGINS
    node.check_log()


async def test_logins_do_not_wait_for_a_folder_that_is_gone(zookeeper_connect: str, tmp_path: Path) -> None:
    folder = AuditFolder(tmp_path / "audit")
    properties = node_properties(zookeeper_connect) | folder.properties(log_roll_ms=100)
    with Node(tmp_path, properties) as node:
        await asyncio.to_thread(log_in, node, 5)
        await asyncio.to_thread(eventually, lambda: len(lines(folder.path)) == 5, 10)
        moved = folder.path.rename(tmp_path / "elsewhere")
        for _ in range(5):
            async with node.client("alice") as client:
                assert await client.describe() == []
        await asyncio.to_thread(eventually, lambda: "Audit events cannot be written to" in node.log(), 10)
        moved.rename(folder.path)
        await asyncio.to_thread(eventually, lambda: "Audit events are written to" in node.log(), 10)
    found = lines(folder.path)
    assert len([event for event in found if event["type"] == "login"]) == 10
    assert len([event for event in found if event["type"] == "tokens_described"]) == 5
    assert USERS["alice"] not in node.log()
