"""What a worker does beside its other work when its keys change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from kafka_dt.node.secret_keys import Membership
from kafka_dt.stores import ClusterState, WorkerPlace
from kafka_dt.tokens import KeyedTokens, Keyring, SecretKey, StoreUnavailable
from tests.support.zookeeper.sealable import KeyFiles

OLD, NEW, OTHER = (SecretKey(letter * 40) for letter in "onx")


class Cluster:
    """A cluster in which a worker may announce itself."""

    async def announce(self, _: object) -> None:
        pass


class Store:
    """A store in which something is not readable, and which is as fast as a test lets it be."""

    def __init__(self, keyring: Keyring) -> None:
        self.connected = True
        self.may_go_on = asyncio.Event()
        self.rereads = 0
        self.untried: set[str] = set()
        keyring.on_change(lambda: self.untried.add("a-token"))

    def on_unknown_key(self, _: object) -> None:
        pass

    async def reread_unreadable(self) -> None:
        self.rereads += 1
        if not self.connected:
            raise StoreUnavailable("the test has cut it off")
        await self.may_go_on.wait()
        self.untried.clear()


class Worker:
    def __init__(self, directory: Path) -> None:
        files = KeyFiles(directory)
        self.current, self.previous = files.current, files.previous
        self.keyring = Keyring(OLD)
        self.store = Store(self.keyring)
        self.membership = Membership(
            files.settings,
            files.read(),
            self.keyring,
            cast(ClusterState, Cluster()),
            cast(KeyedTokens, self.store),
            place=WorkerPlace(1, 2, "a node"),
            broker_id=1001,
        )


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[Worker]:
    worker = Worker(tmp_path)
    await worker.membership.join()
    yield worker
    await worker.membership.close()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_key_files_are_looked_at_while_much_is_read_again(worker: Worker) -> None:
    worker.previous.write_text("n" * 40)
    await worker.membership.look()
    worker.previous.write_text("n" * 40 + "\n" + "x" * 40)
    await worker.membership.look()
    await settle()
    assert worker.keyring.keys == (OLD, NEW, OTHER)
    assert worker.store.rereads == 1


async def test_what_could_not_be_read_again_is_read_at_a_later_look(worker: Worker) -> None:
    worker.store.connected = False
    worker.previous.write_text("n" * 40)
    for _ in range(3):
        await worker.membership.look()
        await settle()
    in_vain = worker.store.rereads
    assert in_vain
    worker.store.connected = True
    worker.store.may_go_on.set()
    for _ in range(3):
        await worker.membership.look()
        await settle()
    assert worker.store.rereads == in_vain + 1
    assert not worker.store.untried


async def test_without_another_ring_nothing_is_read_again(worker: Worker) -> None:
    await worker.membership.look()
    await settle()
    assert worker.store.rereads == 0
