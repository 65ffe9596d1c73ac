"""Test when a node holds its ports: above a rate of connections, and when it has too few file descriptors."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest
import uvloop

from kafka_dt.config import Endpoint
from kafka_dt.server.listeners.gates import PLENTY, RESERVED_FILES, WITHOUT_LOOK, FileGate, Gate, RateGate
from kafka_dt.server.listeners.open_port import OpenPort, bind
from kafka_dt.server.listeners.rates import Rate

WITHIN_S = 60.0


@dataclass
class Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


@dataclass(eq=False)
class HeldPort:
    holds: set[object] = field(default_factory=set)

    def hold(self, gate: object) -> None:
        self.holds.add(gate)

    def release(self, gate: object) -> None:
        self.holds.discard(gate)

    async def released(self) -> None:
        await _until(lambda: not self.holds)


def accept(gate: Gate) -> None:
    gate.accepted(asyncio.BaseTransport())


# A rate


def test_a_rate_has_a_second_of_it_at_once_and_then_one_each_interval() -> None:
    clock = Clock()
    rate = Rate(10, clock)
    waits = [rate.count() for _ in range(12)]
    assert all(wait <= 1e-9 for wait in waits[:9])
    assert waits[9:] == pytest.approx([0.1, 0.2, 0.3])
    clock.now_s += 60
    assert rate.count() <= 0


@pytest.mark.parametrize("per_second", [0.5, 1, 3, 1000])
def test_over_a_long_time_no_more_come_than_the_rate_allows(per_second: float) -> None:
    clock = Clock()
    rate = Rate(per_second, clock)
    count = 0
    while clock.now_s < 200:
        clock.now_s += max(0.0, rate.count())
        count += 1
    assert count <= 100 * per_second + max(per_second, 1) + 1
    assert count >= 100 * per_second


async def test_ports_are_held_until_the_next_connection_may_come_and_new_ones_with_them() -> None:
    gate, port, other = RateGate(Rate(50, asyncio.get_running_loop().time)), HeldPort(), HeldPort()
    gate.add(port)
    for _ in range(52):
        accept(gate)
    gate.add(other)
    assert port.holds == other.holds == {gate}
    gate.remove(other)
    await port.released()
    assert other.holds == {gate}


# File descriptors


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_dt.server.listeners.gates.LOOK_SECONDS", 0.001)
    monkeypatch.setattr("kafka_dt.server.listeners.gates.STAYS_OPEN_SECONDS", 0.05)


class Files:
    """Some ports with a gate, more clients than there are descriptors for, and a limit that leaves few of them.

    The ports accept as those of a node do: with uvloop, one connection of each port in a turn.
    """

    PORTS = 3
    CLIENTS = 60
    TO_SPARE = 20

    def __init__(self, gates: Callable[[], list[Gate]] = list) -> None:
        self.limit = 10**6
        self.looks = 0
        self.served: list[asyncio.Transport] = []
        self.gate = FileGate(self._limit)
        socks = [bind(Endpoint("PLAINTEXT", "127.0.0.1", 0)) for _ in range(self.PORTS)]
        more = [gates() for _ in socks]
        self.ports = [
            OpenPort(sock, None, lambda own=own: _Served(self, own), 100, [self.gate, *own])  # type: ignore[misc]
            for sock, own in zip(socks, more, strict=True)
        ]
        addresses = [sock.getsockname() for sock in socks]
        self.clients = [socket.create_connection(addresses[i % self.PORTS]) for i in range(self.CLIENTS)]

    def _limit(self) -> int:
        self.looks += 1
        return self.limit

    @property
    def most(self) -> int:
        """The first descriptor that is reserved."""
        return self.limit - min(RESERVED_FILES, self.limit // 8)

    def begin(self) -> None:
        """Set the limit, now that the clients have their descriptors and wait in the kernel's queue."""
        self.limit = (max(each.fileno() for each in self.clients) + self.TO_SPARE) * 8 // 7

    def numbers(self) -> list[int]:
        return [each.get_extra_info("socket").fileno() for each in self.served if not each.is_closing()]

    async def looked(self, times: int = 50) -> None:
        """Wait until the gate has looked so often for free descriptors."""
        until = self.looks + times
        await _until(lambda: self.looks >= until)

    def leave(self, count: int) -> None:
        """Let the oldest connections end."""
        left = [each for each in self.served if not each.is_closing()][:count]
        for each in left:
            each.abort()

    def close(self) -> None:
        for port in self.ports:
            port.close()
        for transport in self.served:
            transport.abort()
        for client in self.clients:
            client.close()


class _Served(asyncio.Protocol):
    def __init__(self, files: Files, gates: list[Gate]) -> None:
        self._files = files
        self._gates = gates

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._files.served.append(cast("asyncio.Transport", transport))
        for gate in (self._files.gate, *self._gates):
            gate.accepted(transport)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110 - a gate sends no events
            await asyncio.sleep(0.001)


def with_files(test: Callable[[Files], Awaitable[None]], gates: Callable[[], list[Gate]] = list) -> None:
    """Run a test in the loop that a node has."""

    async def run() -> None:
        files = Files(gates)
        try:
            files.begin()
            await test(files)
        finally:
            files.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


CLOSED = "file descriptors are in use (RLIMIT_NOFILE): no connection is accepted until some are free"
OPEN = "File descriptors are free: connections are accepted again"


@pytest.mark.usefixtures("soon")
def test_no_client_gets_a_reserved_descriptor_however_long_the_ports_are_held(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def test(files: Files) -> None:
        await files.looked()
        served = files.numbers()
        assert served
        assert len(served) < files.CLIENTS
        await files.looked()
        assert files.numbers() == served
        assert max(served) < files.most
        # When the files are closed at the end, the ports may be open once more.
        assert [CLOSED in each for each in caplog.messages] == [True], "it does not say that the ports are open again"

    with_files(test)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("gates", [list, lambda: [RateGate(Rate(200, time.monotonic))]])
def test_clients_that_come_and_go_get_no_reserved_descriptor(gates: Callable[[], list[Gate]]) -> None:
    async def test(files: Files) -> None:
        await files.looked()
        while len(files.served) < files.CLIENTS:
            more = len(files.served) + 1
            files.leave(files.PORTS)
            await _until(lambda more=more: len(files.served) >= more)  # type: ignore[misc]
            assert max(files.numbers()) < files.most

    with_files(test, gates)


@pytest.mark.usefixtures("soon")
def test_ports_are_open_again_when_others_have_gone_and_the_log_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def test(files: Files) -> None:
        while len(files.served) < files.CLIENTS:
            await files.looked(3)
            files.leave(files.CLIENTS)
        files.leave(files.CLIENTS)
        await _until(lambda: OPEN in caplog.messages)

    with_files(test)
    assert [CLOSED in each for each in caplog.messages] == [True, False]


@pytest.mark.usefixtures("soon", "steady_time")
async def test_a_limit_that_is_reached_again_is_said_when_a_minute_is_over_although_no_client_comes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kafka_dt.server.listeners.gates.LOG_AGAIN_SECONDS", 0.3)
    caplog.set_level(logging.INFO)
    limit = 0
    gate, port = FileGate(lambda: limit), HeldPort()
    gate.add(port)
    accept(gate)
    assert port.holds
    limit = 10**6
    await _until(lambda: OPEN in caplog.messages)
    assert not port.holds
    limit = 0
    accept(gate)
    assert len(caplog.messages) == 2
    await _until(lambda: len(caplog.messages) == 3)
    assert CLOSED in caplog.messages[-1]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The file descriptors that a gate has taken to see whether there are free ones: one in each look."""
    taken = []
    take = os.open

    def counted(path: str, flags: int) -> int:
        taken.append(take(path, flags))
        return taken[-1]

    monkeypatch.setattr("kafka_dt.server.listeners.gates.os.open", counted)
    return taken


async def test_a_look_for_free_descriptors_takes_one_whatever_the_number_of_ports(taken: list[int]) -> None:
    gate, ports = FileGate(lambda: 1_000), [HeldPort() for _ in range(200)]
    for port in ports:
        gate.add(port)
    accept(gate)
    assert len(taken) == 1
    assert not any(port.holds for port in ports)


async def test_while_there_are_plenty_of_descriptors_the_gate_does_not_look_at_every_connection(
    taken: list[int],
) -> None:
    gate = FileGate(lambda: 1_000)
    gate.add(HeldPort())
    for _ in range(1 + WITHOUT_LOOK):
        accept(gate)
    assert len(taken) == 1
    accept(gate)
    assert len(taken) == 2


async def test_while_there_are_few_descriptors_the_gate_looks_once_at_each_connection(taken: list[int]) -> None:
    limits = 0

    def limit() -> int:
        nonlocal limits
        limits += 1
        return 400

    gate, port = FileGate(limit), HeldPort()
    gate.add(port)
    with _taken(400 - 400 // 8 - PLENTY // 2):
        accept(gate)
        accept(gate)
    assert not port.holds
    assert (len(taken), limits) == (2, 2)


async def test_a_limit_that_an_operator_lowers_holds_from_the_next_connection_on(taken: list[int]) -> None:
    limit = 2_000
    gate = FileGate(lambda: limit)
    gate.add(HeldPort())
    accept(gate)
    limit = 1_000
    accept(gate)
    assert len(taken) == 2


async def test_while_there_are_few_the_gate_closes_at_the_very_connection_that_leaves_too_few() -> None:
    with socket.socket() as sock:
        limit = (sock.fileno() + PLENTY) * 8 // 7
        highest = limit - limit // 8 - 1
        gate, port = FileGate(lambda: limit), HeldPort()
        gate.add(port)
        taken = []
        try:
            while not port.holds:
                taken.append(sock.dup())
                accept(gate)
            assert highest - 2 <= max(each.fileno() for each in taken) <= highest
        finally:
            for each in taken:
                each.close()
            gate.remove(port)


async def test_descriptors_are_free_below_the_reserved_ones_although_one_just_below_them_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafka_dt.server.listeners.gates.LOOK_SECONDS", 0.001)
    limit = 400
    highest = limit - limit // 8 - 1
    gate, port = FileGate(lambda: limit), HeldPort()
    gate.add(port)
    with _taken(highest), socket.socket() as sock:
        accept(gate)
        assert not port.holds
        lower = [sock.dup() for _ in range(highest)]
        accept(gate)
        assert port.holds, "nothing is free below"
        for each in lower:
            each.close()
        await port.released()


@contextmanager
def _taken(number: int) -> Iterator[None]:
    """Have a file descriptor of this number."""
    with socket.socket() as sock:
        os.dup2(sock.fileno(), number)
    try:
        yield
    finally:
        os.close(number)
