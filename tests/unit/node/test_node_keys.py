"""A worker's ring of keys follows its files."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from kafka_dt.node.secret_keys import NodeKeys
from kafka_dt.tokens import Keyring, SecretKey
from tests.support.zookeeper.sealable import KeyFiles

OLD, NEW = SecretKey("o" * 40), SecretKey("n" * 40)


class Worker:
    """A worker with both settings in files."""

    def __init__(self, directory: Path) -> None:
        files = KeyFiles(directory)
        self.current, self.previous = files.current, files.previous
        self.keyring = Keyring(OLD)
        self.changes: list[tuple[SecretKey, ...]] = []
        self.keys = NodeKeys(files.read(), self.keyring, self.changed)

    async def changed(self) -> None:
        self.changes.append(self.keyring.keys)


@pytest.fixture
def worker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Worker:
    caplog.set_level(logging.INFO)
    return Worker(tmp_path)


async def test_files_that_stay_change_nothing(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        await worker.keys.refresh()
    assert worker.changes == []
    assert caplog.messages == []


async def test_a_changed_file_changes_the_ring_and_is_told_by_ids(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    worker.previous.write_text("o" * 40)
    worker.current.write_text("n" * 40)
    await worker.keys.refresh()
    assert worker.changes == [(NEW, OLD)]
    assert caplog.messages == [f"The secret keys have changed: {NEW.id} is current; others: {OLD.id}"]


async def test_a_short_key_that_comes_later_is_warned_of_once(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    worker.previous.write_text("short")
    await worker.keys.refresh()
    worker.previous.write_text("short\n" + "n" * 40)
    await worker.keys.refresh()
    assert [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING] == [
        "Secret keys with fewer than 32 characters, which could be guessed: 1"
    ]


async def test_callers_at_the_same_time_share_a_look(worker: Worker) -> None:
    worker.previous.write_text("n" * 40)
    await asyncio.gather(*(worker.keys.refresh() for _ in range(20)))
    assert worker.changes == [(OLD, NEW)]


async def test_an_unknown_key_is_looked_for_at_once_and_once(worker: Worker) -> None:
    worker.previous.write_text("n" * 40)
    for _ in range(20):
        worker.keys.refresh_soon()
    async with asyncio.timeout(60):
        while not worker.changes:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0)
    assert worker.changes == [(OLD, NEW)]


@pytest.mark.parametrize("content", ["", "n" * 40 + "\n" + "o" * 40, None])
async def test_a_file_that_cannot_be_used_is_one_line_until_it_changes(
    worker: Worker, caplog: pytest.LogCaptureFixture, content: str | None
) -> None:
    if content is None:
        worker.current.unlink()
    else:
        worker.current.write_text(content)
    for _ in range(3):
        await worker.keys.refresh()
    (message,) = caplog.messages
    assert message.startswith(
        f"The secret keys stay as they are, the changed ones cannot be used: delegation.token.secret.key: the secret's "
        f"file {worker.current} "
    )
    assert worker.keyring.keys == (OLD,)
    worker.current.write_text("n" * 40)
    await worker.keys.refresh()
    assert worker.changes == [(NEW,)]
    assert not any(secret in text for text in caplog.messages for secret in ("n" * 40, "o" * 40))


async def test_a_file_that_is_put_right_with_the_same_key_is_told(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    before = worker.current.read_text()
    for content in ("", before, before):
        worker.current.write_text(content)
        await worker.keys.refresh()
    _, repaired = caplog.messages
    assert repaired == "The files of the secret keys can be used again; the keys are the same as before"
