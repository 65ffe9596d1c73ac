"""What a node makes of its file, when it reads it again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import pytest

from kafka_dt.config import ConfigError, Loaded, Settings, from_properties, pinned
from kafka_dt.processes.changing import NotChanged
from kafka_dt.processes.control import Answer
from kafka_dt.processes.reloading import Reloader

BEFORE = {"listeners": "PLAINTEXT://:9092", "super.users": "User:admin"}


class Node:
    """What a reloader works with."""

    def __init__(self) -> None:
        self.file = dict(BEFORE)
        self.runs_on: Mapping[str, str] = BEFORE
        self.checked: list[str] = []
        self.refusal: Exception | None = None
        self.changes = 0
        self.reloader = Reloader(
            pinned(from_properties(BEFORE)), reread=self._reread, check=self._check, change=self._change
        )

    def _reread(self) -> Loaded:
        return from_properties(self.file)

    def _check(self, settings: Settings) -> None:
        self.checked.append(settings.super_users)
        if settings.super_users == "unusable":
            raise ConfigError("super.users", "it is\nunusable")

    async def _change(self, properties: Mapping[str, str]) -> None:
        self.changes += 1
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        self.runs_on = properties


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


async def test_changes_are_taken_over_and_named_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    node.file |= {"super.users": "User:ops", "listeners": "PLAINTEXT://:1", "kafka.dt.log.level": "INFO"}
    answer = await node.reloader.reload()
    assert answer == Answer(True, "Changed: super.users. To change, the node must be restarted: listeners")
    assert node.runs_on == {**BEFORE, "super.users": "User:ops"}
    assert [record.getMessage() for record in caplog.records] == [answer.text]
    assert await node.reloader.reload() == Answer(True, "To change, the node must be restarted: listeners")
    assert node.changes == 1


async def test_a_file_without_changes_changes_nothing() -> None:
    node = Node()
    assert await node.reloader.reload() == Answer(True, "No setting has changed")
    assert node.changes == 0


async def test_a_file_that_cannot_be_used_is_one_line_and_reaches_no_worker(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    node.file["super.users"] = "unusable"
    assert await node.reloader.reload() == Answer(False, "the settings stay as they are: super.users: it is unusable")
    assert (node.changes, node.runs_on) == (0, BEFORE)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR


async def test_what_a_worker_refuses_is_tried_again_the_next_time() -> None:
    node = Node()
    node.file["super.users"] = "User:ops"
    node.refusal = NotChanged("worker 1: it hangs")
    assert await node.reloader.reload() == Answer(False, "the settings stay as they are: worker 1: it hangs")
    node.refusal = None
    assert await node.reloader.reload() == Answer(True, "Changed: super.users")


async def test_two_requests_at_once_are_served_one_after_the_other() -> None:
    node = Node()
    node.file["super.users"] = "User:ops"
    first, second = await asyncio.gather(node.reloader.reload(), node.reloader.reload())
    assert (first.text, second.text) == ("Changed: super.users", "No setting has changed")
    assert node.changes == 1
