"""All workers of a node take over new settings, or none does; those that come later have them too."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path

import pytest

from kafka_dt.processes import guard
from kafka_dt.processes.changing import NotChanged
from tests.unit.processes.running_node import Node, running, until

NEW = {"super.users": "User:ops"}


def orders(node: Node, number: int) -> list[str]:
    path = node.folder / f"orders.{number}"
    return path.read_text().split() if path.exists() else []


async def test_all_workers_check_settings_before_one_takes_them_over(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with running(node):
        await node.supervisor.change(NEW)
        assert [orders(node, number) for number in (0, 1)] == [["prepare", "apply"]] * 2


async def test_what_one_worker_cannot_use_none_takes_over(tmp_path: Path) -> None:
    node = Node(tmp_path, properties={})
    async with running(node):
        with pytest.raises(NotChanged, match=r"^worker 1: no$"):
            await node.supervisor.change(NEW | {"refused": "1"})
        await until(lambda: "forget" in orders(node, 0))
        assert "apply" not in orders(node, 0) + orders(node, 1)
        assert node.supervisor.brief["properties"] == {}


async def test_before_all_workers_serve_nothing_changes(tmp_path: Path) -> None:
    with pytest.raises(NotChanged, match="still starting"):
        await Node(tmp_path).supervisor.change(NEW)


async def test_a_worker_that_is_replaced_later_begins_with_the_new_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    node = Node(tmp_path)
    async with running(node):
        await node.supervisor.change(NEW)
        os.kill(node.pids(0)[0], signal.SIGKILL)
        await until(lambda: len(node.pids(0)) == 2)
        assert NEW in [brief.get("properties") for brief in node.briefs()]


async def test_a_worker_that_was_starting_meanwhile_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    may_serve = tmp_path / "may serve"
    may_serve.touch()
    node = Node(tmp_path, waits_for=str(may_serve))
    async with running(node):
        may_serve.unlink()
        os.kill(node.pids(0)[0], signal.SIGKILL)
        await until(lambda: len(node.pids(0)) == 2)
        await node.supervisor.change(NEW)
        may_serve.touch()
        await until(lambda: NEW in [brief.get("properties") for brief in node.briefs()])
        assert "Worker 0: it began with settings that have changed since" in caplog.text


@pytest.mark.parametrize("killed_while_others_check", [False, True])
async def test_a_worker_that_began_to_serve_while_others_checked_is_replaced(
    killed_while_others_check: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    caplog.set_level(logging.INFO)
    may_serve, checked = tmp_path / "may serve", tmp_path / "checked"
    may_serve.touch()
    node = Node(tmp_path, waits_for=str(may_serve))
    async with running(node):
        may_serve.unlink()
        if not killed_while_others_check:
            os.kill(node.pids(0)[0], signal.SIGKILL)
            await until(lambda: len(node.supervisor._serving) == 1)
        changing = asyncio.create_task(node.supervisor.change(NEW | {"checked_with.1": str(checked)}))
        await until(lambda: "prepare" in orders(node, 1))
        if killed_while_others_check:
            os.kill(node.pids(0)[0], signal.SIGKILL)
        await until(lambda: len(node.pids(0)) == 2)
        may_serve.touch()
        await until(lambda: len(node.supervisor._serving) == 2 and not changing.done())
        checked.touch()
        await changing
        await until(lambda: len(node.pids(0)) == 3)
        assert "Worker 0 has begun with the former settings, and is replaced" in caplog.text
        assert orders(node, 1) == ["prepare", "apply"]


async def test_a_worker_that_ends_instead_of_taking_over_has_them_when_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    node = Node(tmp_path)
    async with running(node):
        await node.supervisor.change(NEW | {"dies": "0"})
        await until(lambda: len(node.pids(0)) == 2)
        assert [brief["properties"]["dies"] for brief in node.briefs() if "properties" in brief] == ["0"]
