"""A node that is asked by another process to read its settings again."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import uvloop

from kafka_dt.processes import control
from kafka_dt.processes.control import Answer, NoAnswer, NotRunning, ask, listening

DONE = Answer(True, "Changed: super.users")


async def reload() -> Answer:
    return DONE


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_node_is_found_by_the_path_of_its_file_and_answers(tmp_path: Path, new_loop: object) -> None:
    async def once() -> Answer:
        async with listening(tmp_path / "server.properties", reload):
            return await asyncio.to_thread(ask, tmp_path / "folder" / ".." / "server.properties")

    with asyncio.Runner(loop_factory=new_loop) as runner:  # type: ignore[arg-type]
        assert runner.run(once()) == DONE


async def test_no_node_is_found_before_and_after_and_on_another_file(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    async with listening(tmp_path / "other.properties", reload):
        with pytest.raises(NotRunning, match=f"no node of this machine runs on {config}; give the path .* ps -ef"):
            await asyncio.to_thread(ask, config)
    with pytest.raises(NotRunning):
        await asyncio.to_thread(ask, tmp_path / "other.properties")


async def test_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_user_of", lambda _: os.geteuid() + 1)
    async with listening(tmp_path / "server.properties", reload):
        answer = await asyncio.to_thread(ask, tmp_path / "server.properties")
    assert answer == Answer(False, "only root and the user of the node may do that")


async def test_a_second_node_on_one_file_runs_and_says_that_it_cannot_be_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tmp_path / "server.properties"
    with caplog.at_level(logging.WARNING):
        async with listening(config, reload), listening(config, reload):
            assert await asyncio.to_thread(ask, config) == DONE
    (record,) = caplog.records
    assert f"another one runs on {config}" in record.getMessage()


@pytest.mark.parametrize("resets", [False, True], ids=["ends", "resets"])
def test_a_node_that_ends_before_it_answers_is_said_to_have_ended(tmp_path: Path, *, resets: bool) -> None:
    config = tmp_path / "server.properties"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as node, ThreadPoolExecutor(1) as threads:
        node.bind(control._name(config))
        node.listen()
        asking = threads.submit(ask, config)
        asked, _ = node.accept()
        if resets:
            asked.sendall(b"{")
            asked.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        asked.close()
        with pytest.raises(NoAnswer):
            asking.result(60)


def test_a_node_that_hangs_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "PATIENCE_S", 0.01)
    config = tmp_path / "server.properties"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as node:
        node.bind(control._name(config))
        node.listen()
        with pytest.raises(NoAnswer, match=r"has not answered for 0.01 s"):
            ask(config)
