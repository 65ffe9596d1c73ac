"""When ports are held: for a rate of connections, and for want of file descriptors."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kafka_dt.server.gates import FileGate, Gate, RateGate
from kafka_dt.server.rate import Rate

WITHIN_S = 5


@dataclass
class Clock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


@dataclass(eq=False)
class HeldPort:
    holds: set[Gate] = field(default_factory=set)

    def hold(self, gate: Gate) -> None:
        self.holds.add(gate)

    def release(self, gate: Gate) -> None:
        self.holds.discard(gate)

    async def released(self) -> None:
        async with asyncio.timeout(WITHIN_S):
            while self.holds:  # noqa: ASYNC110 - a gate sends no events
                await asyncio.sleep(0.001)


class Accepted:
    """A transport whose socket has a number."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def get_extra_info(self, name: str) -> Any:
        assert name == "socket"
        return self

    def fileno(self) -> int:
        return self._descriptor


def accept(gate: Gate, descriptor: int = 10) -> None:
    gate.accepted(cast("asyncio.Transport", Accepted(descriptor)))


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
    monkeypatch.setattr("kafka_dt.server.gates.LOOK_SECONDS", 0.001)


@pytest.mark.usefixtures("soon")
async def test_ports_are_held_near_the_limit_of_files_with_one_line_until_one_is_free(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    free: list[int | OSError] = [OSError("none"), 1000, 960, 959]
    gate, port = FileGate(lambda: 1024, lambda: _next(free)), HeldPort()
    gate.add(port)
    accept(gate, 959)
    assert not port.holds
    accept(gate, 960)
    accept(gate, 961)
    assert port.holds
    await port.released()
    assert free == []
    assert caplog.messages == [
        "960 of 1024 file descriptors are in use (RLIMIT_NOFILE): no connection is accepted until one is free",
        "File descriptors are free: connections are accepted again",
    ]


@pytest.mark.usefixtures("soon")
async def test_a_limit_that_is_reached_again_and_again_is_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    gate, port = FileGate(lambda: 64, lambda: 10), HeldPort()
    gate.add(port)
    for _ in range(5):
        accept(gate, 60)
        assert port.holds
        await port.released()
    assert len(caplog.messages) == 2


async def test_the_lowest_free_descriptor_is_asked_of_the_system() -> None:
    gate, port = FileGate(lambda: 10**6), HeldPort()
    gate.add(port)
    accept(gate, 10**6 - 1)
    assert port.holds
    await port.released()


def _next(free: list[int | OSError]) -> int:
    found = free.pop(0)
    if isinstance(found, OSError):
        raise found
    return found
