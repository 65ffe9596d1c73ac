"""Work that can wait is done while the event loop and the processors have nothing else to do, one piece at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kafka_dt.idle import LONGEST_LOOK_S, MOST_BUSY, SHORTEST_LOOK_S, SLICE_S, IdleTime


class Machine:
    """Clocks that go on only in sleeps and in work."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self.now_s = 100.0
        self.cpu_s = 5.0
        self.load = 0.0
        """Which part of a processor the requests of the event loop use."""
        self.looks: list[float] = []
        self.looked = asyncio.Event()
        self.done: list[str] = []
        self.idle = IdleTime(executor, clock=lambda: self.now_s, loop_cpu=lambda: self.cpu_s, sleep=self.sleep)

    async def run(self, work: Callable[[], Any]) -> Any:
        async with self.idle.turn():
            return await self.idle.run(work)

    async def sleep(self, seconds: float) -> None:
        self.looks.append(seconds)
        self.now_s += seconds
        self.cpu_s += seconds * self.load
        self.looked.set()
        await asyncio.sleep(0)

    def work(self, name: str = "work", *, takes_s: float = 0.002, waits_s: float = 0.0) -> str:
        self.now_s += takes_s + waits_s
        self.cpu_s += takes_s
        self.done.append(name)
        return name


@pytest.fixture
def machine() -> Iterator[Machine]:
    with ThreadPoolExecutor(2) as executor:
        yield Machine(executor)


async def test_work_is_done_after_a_look_and_goes_on_for_a_slice(machine: Machine) -> None:
    pieces = int(SLICE_S / 0.002)
    for _ in range(pieces):
        assert await machine.run(machine.work) == "work"
    assert machine.looks == [SHORTEST_LOOK_S]
    await machine.run(machine.work)
    await machine.run(machine.work)
    assert machine.looks == [SHORTEST_LOOK_S] * 2


async def test_nothing_is_done_while_requests_use_the_event_loop(machine: Machine) -> None:
    machine.load = 1.5 * MOST_BUSY
    waiting = asyncio.create_task(machine.run(machine.work))
    for _ in range(10):
        machine.looked.clear()
        await machine.looked.wait()
    assert machine.done == []
    assert machine.looks[:5] == [SHORTEST_LOOK_S * 2**number for number in range(5)]
    assert max(machine.looks) == LONGEST_LOOK_S
    machine.load = 0.5 * MOST_BUSY
    await waiting
    assert machine.done == ["work"]


async def test_work_that_waited_for_a_processor_is_followed_by_a_longer_look(machine: Machine) -> None:
    await machine.run(lambda: machine.work(waits_s=0.01))
    await machine.run(lambda: machine.work(waits_s=0.01))
    await machine.run(machine.work)
    assert machine.looks == [SHORTEST_LOOK_S, 2 * SHORTEST_LOOK_S, 4 * SHORTEST_LOOK_S]
    machine.now_s += 1
    await machine.run(machine.work)
    assert machine.looks[3:] == [SHORTEST_LOOK_S]


async def test_callers_take_turns(machine: Machine) -> None:
    async def caller(name: str) -> None:
        for _ in range(3):
            await machine.run(lambda: machine.work(name))

    await asyncio.gather(caller("one"), caller("another"))
    assert machine.done == ["one", "another"] * 3


async def test_an_error_of_the_work_is_its_callers_and_others_go_on(machine: Machine) -> None:
    def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await machine.run(fail)
    assert await machine.run(machine.work) == "work"


async def test_a_caller_that_has_gone_does_not_hold_up_the_others(machine: Machine) -> None:
    machine.load = 1.0
    gone = asyncio.create_task(machine.run(lambda: machine.work("gone")))
    stays = asyncio.create_task(machine.run(lambda: machine.work("stays")))
    await machine.looked.wait()
    gone.cancel()
    machine.load = 0.0
    assert await stays == "stays"
    assert machine.done == ["stays"]
