"""A real node derives the credentials of new tokens before they log in, while it is idle, and shares them."""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from kafka_dt.client import DelegationToken
from kafka_dt.identity.credentials import shared
from kafka_dt.identity.credentials.shared import SharedCredentials
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.nodes.node import Node
from tests.support.processes.waiting import again_if_lost, eventually
from tests.support.protocol.raw import LoginRefused, RawConnection

IDLE_S = 60.0
"""Within this time a node derives a few credentials, also on a machine that is busy."""
API_VERSIONS = 18
PIPELINED = 1_000
"""How many requests a client sends at once: two calls for it, and some tenths of a second's work for a worker."""
BEHIND = 3
"""How many times as many wait at a worker, so that it is busy while the client gets no turn."""


class Memory(SharedCredentials):
    """The memory of a real node, as the test reads it."""

    __slots__ = ()

    def entries(self, token: DelegationToken) -> list[bytes]:
        """The entries of a token, whatever they were derived from: a test does not know the salts."""
        name = shared._name(token.token_id)
        slots = (bytes(self._memory[place : place + shared._SLOT_BYTES]) for place in self._places(name))
        return [slot for slot in slots if shared._is_whole(slot)]

    def has(self, token: DelegationToken) -> bool:
        return len(self.entries(token)) == len(ScramMechanism)

    def spoil(self, token: DelegationToken) -> None:
        """Put keys in the places of a token's with which no login succeeds."""
        spoiled: list[tuple[slice, bytes]] = []
        for entry in self.entries(token):
            content = entry[: 2 * shared._DIGEST_BYTES + 8].ljust(shared._CONTENT.size, b"\0")
            start = bytes(self._memory).index(entry)
            spoiled.append((slice(start, start + len(entry)), content + shared._digest(content)))
        while any(self._memory[place] != entry for place, entry in spoiled):
            for place, entry in spoiled:
                self._memory[place] = entry
            time.sleep(1)  # the other worker may still derive it


@pytest.fixture
def memory(node: Node) -> Iterator[Memory]:
    """What the workers of the node share."""
    files = Path(f"/proc/{node.workers()[0]}/fd")
    path = next(file for file in files.iterdir() if "kafka-dt credentials" in str(file.readlink()))
    descriptor = os.open(path, os.O_RDWR)
    try:
        with mmap.mmap(descriptor, 0) as mapped:
            yield Memory(mapped)
    finally:
        os.close(descriptor)


async def created(node: Node, count: int) -> list[DelegationToken]:
    async with node.client() as client:
        return [await client.create() for _ in range(count)]


@pytest.mark.parametrize("mechanism", ScramMechanism)
async def test_the_first_logins_of_a_token_at_every_worker_derive_nothing(
    node: Node, memory: Memory, mechanism: ScramMechanism
) -> None:
    good, spoiled = await created(node, 2)
    eventually(lambda: memory.has(good) and memory.has(spoiled), within_s=IDLE_S)
    with node.on_every_worker(partial(node.connect_by_token, good, mechanism)):
        pass
    memory.spoil(spoiled)
    # A worker that derived would let the token in.
    for _ in range(10):
        with pytest.raises(LoginRefused):
            node.connect_by_token(spoiled, mechanism)


async def test_the_memory_forgets_a_token_that_is_deleted(node: Node, memory: Memory) -> None:
    (token,) = await created(node, 1)
    eventually(lambda: memory.has(token), within_s=IDLE_S)
    async with node.client() as client:
        await client.expire(token.hmac)
    eventually(lambda: not memory.entries(token), within_s=10)


@contextmanager
def busy(node: Node) -> Iterator[None]:
    """Have each worker answer requests all the time."""
    done = threading.Event()

    def ask(connection: RawConnection) -> None:
        request = connection.encode(API_VERSIONS, 0)
        frame = struct.pack(">i", len(request)) + request
        connection.send(frame)
        answered_bytes = 4 + len(connection.receive_frame())
        for _ in range(BEHIND):
            connection.send(frame * PIPELINED)
        while not done.is_set():
            connection.send(frame * PIPELINED)
            connection.receive(answered_bytes * PIPELINED)

    with ExitStack() as stack:
        connections = stack.enter_context(node.on_every_worker(partial(node.connect, "PLAINTEXT")))
        threads = [threading.Thread(target=ask, args=(each,)) for each in connections.values()]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            done.set()
            for thread in threads:
                thread.join()


def test_a_busy_node_derives_later(node: Node, memory: Memory) -> None:
    def create_at_a_busy_node() -> None:
        with busy(node):
            tokens = asyncio.run(created(node, 100))
            derived = sum(map(memory.has, tokens))
        eventually(lambda: all(map(memory.has, tokens)), within_s=IDLE_S)
        assert derived < len(tokens) / 2

    again_if_lost(create_at_a_busy_node)  # while this process gets no turn, the node is idle
