"""A sync beside the event loop: by the system, and by a thread where the system refuses to."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
from caio import linux_aio

from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.syncing import Syncing


class Synced:
    """Syncs files, and waits for the answer."""

    def __init__(self, *, by_system: bool = True) -> None:
        self.answers: asyncio.Queue[SinkFailed | None] = asyncio.Queue()
        self.syncing = Syncing(self.answers.put_nowait, by_system=by_system)

    async def sync(self, descriptor: int) -> SinkFailed | None:
        try:
            self.syncing.begin(descriptor)
        except SinkFailed as error:
            return error
        return await self.answers.get()


@pytest.mark.parametrize("by_system", [True, False])
async def test_a_file_is_synced_and_an_error_is_the_sinks(tmp_path: Path, *, by_system: bool) -> None:
    files = Synced(by_system=by_system)
    with (tmp_path / "file").open("wb") as file:
        for _ in range(3):
            file.write(b"line\n")
            file.flush()
            assert await files.sync(file.fileno()) is None
    reading, writing = os.pipe()
    error = await files.sync(writing)
    assert error is not None
    assert "Invalid argument" in str(error)
    os.close(reading)
    os.close(writing)
    files.syncing.close()
    assert files.answers.empty()


async def test_where_the_system_refuses_a_thread_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_count: int) -> None:
        raise SystemError("Resource temporarily unavailable")

    monkeypatch.setattr(linux_aio, "Context", refuse)
    with caplog.at_level("INFO"):
        files = Synced()
    assert "synced by threads" in caplog.text
    with (tmp_path / "file").open("wb") as file:
        assert await files.sync(file.fileno()) is None
    files.syncing.close()


async def test_a_thread_that_cannot_be_had_is_a_failure_of_the_sink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the batch would be under way for ever, and every client of a strict node would wait for it."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    files = Synced(by_system=False)
    with (tmp_path / "file").open("wb") as file:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            error = await asyncio.wait_for(files.sync(file.fileno()), 60)
        assert str(error) == "can't start new thread"
        assert await files.sync(file.fileno()) is None
    files.syncing.close()


@pytest.mark.parametrize("by_system", [True, False])
async def test_nothing_is_told_after_the_end(tmp_path: Path, *, by_system: bool) -> None:
    files = Synced(by_system=by_system)
    with (tmp_path / "file").open("wb") as file:
        file.write(b"line\n")
        file.flush()
        files.syncing.begin(file.fileno())
        files.syncing.close()
        for _ in range(10):
            await asyncio.sleep(0.001)
    assert files.answers.empty()
