"""The companion of a node's workers, such as the process of the metrics, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_dt.config import ConfigError, Endpoint
from kafka_dt.processes import guard
from kafka_dt.processes.supervisor import Companion, WorkerFailed
from tests.unit.processes.running_node import Node, alive, running, until

COMPANION = 9
"""The number of the companion in the names of its files."""


def with_companion(node: Node, endpoint: Endpoint = Endpoint("http", "127.0.0.1", 0)) -> Node:  # noqa: B008 - immutable
    brief = {"folder": str(node.folder), "number": COMPANION}
    node.supervisor.companion = Companion("The companion", "its.setting", endpoint, brief)
    return node


async def test_a_companion_is_told_its_port_and_nothing_of_the_workers_brief(tmp_path: Path) -> None:
    node = with_companion(Node(tmp_path))
    async with running(node):
        (companion,) = (brief for brief in node.briefs() if brief["number"] == COMPANION)
        assert companion["ports"] == node.ports
        assert set(node.ports) == {"PLAINTEXT", "SASL", "http"}
        assert "secret" not in companion


async def test_a_companion_that_dies_is_replaced_and_the_workers_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    node = with_companion(Node(tmp_path))
    async with running(node) as task:
        (companion,), others = node.pids(COMPANION), (node.pids(0), node.pids(1))
        os.kill(companion, signal.SIGKILL)
        await until(lambda: len(node.pids(COMPANION)) == 2)
        assert (node.pids(0), node.pids(1)) == others
        assert not task.done()
        assert "The companion: it ended with status -9; it is replaced" in caplog.text
        assert not any(node.supervisor.metrics.totals()), "it is no worker"


async def test_a_companion_ends_after_the_workers(tmp_path: Path) -> None:
    node = with_companion(Node(tmp_path, stubborn=True))
    node.supervisor.grace_s = 0.5
    async with running(node) as task:
        (companion,) = node.pids(COMPANION)
        serving = [*node.pids(0), *node.pids(1)]
        node.supervisor._stop_at(signal.SIGTERM)
        while any(alive(pid) for pid in serving):
            assert alive(companion)
            await asyncio.sleep(0.01)
        await task
    assert node.drained() == {companion}


async def test_a_companion_that_cannot_start_is_an_error_like_a_worker(tmp_path: Path) -> None:
    node = with_companion(Node(tmp_path))
    assert node.supervisor.companion is not None
    brief = {**node.supervisor.companion.brief, "refuse": "there is no key store"}
    node.supervisor.companion = replace(node.supervisor.companion, brief=brief)
    with pytest.raises(WorkerFailed, match=r"^there is no key store$"):
        await node.supervisor.run()


async def test_the_port_of_a_companion_is_claimed_by_the_name_of_its_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        node = with_companion(Node(tmp_path), Endpoint("http", "127.0.0.1", taken.getsockname()[1]))
        with pytest.raises(ConfigError, match=r"^its\.setting: http://127\.0\.0\.1:\d+ is in use"):
            await node.supervisor.run()
    assert node.pids() == []
