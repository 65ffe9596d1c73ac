"""A sync beside the event loop: by the system, and by a thread where the system refuses to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from caio import linux_aio_asyncio

from kafka_dt.audit.delivery import SinkFailed
from kafka_dt.audit.syncing import Syncing


@pytest.mark.parametrize("by_system", [True, False])
async def test_a_file_is_synced_and_an_error_is_the_sinks(tmp_path: Path, *, by_system: bool) -> None:
    syncing = Syncing(by_system=by_system)
    with (tmp_path / "file").open("wb") as file:
        file.write(b"line\n")
        file.flush()
        await syncing.sync(file.fileno())
    reading, writing = os.pipe()
    with pytest.raises(SinkFailed, match="Invalid argument"):
        await syncing.sync(writing)
    os.close(reading)
    os.close(writing)
    syncing.close()


async def test_where_the_system_refuses_a_thread_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_count: int) -> None:
        raise SystemError("Resource temporarily unavailable")

    monkeypatch.setattr(linux_aio_asyncio, "AsyncioContext", refuse)
    with caplog.at_level("INFO"):
        syncing = Syncing()
    assert "synced by threads" in caplog.text
    with (tmp_path / "file").open("wb") as file:
        await syncing.sync(file.fileno())
    syncing.close()
