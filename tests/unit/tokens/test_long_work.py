"""Long work pauses by the clock, and little of it is under way at once."""

from __future__ import annotations

import asyncio
import math

import pytest

from kafka_dt.tokens.long_work import BATCH, LONG_ITEMS, SHORT_ITEMS, SLICE_S, LongWork, Turns

LONG = LONG_ITEMS + 1


class Clock:
    """Each look at it takes `cost_s`."""

    def __init__(self, cost_s: float = 0.0) -> None:
        self.now_s = 0.0
        self.cost_s = cost_s

    def __call__(self) -> float:
        self.now_s += self.cost_s
        return self.now_s


async def pauses(items: int, cost_s: float) -> int:
    """Count how often others have their turn while a walk over items goes on, of which a batch takes that long."""
    turns, walked, seen = Turns(Clock(cost_s)), 0, []

    async def walk() -> None:
        nonlocal walked
        async for batch in turns.take(range(items)):
            walked += len(batch)

    task = asyncio.create_task(walk())
    while not task.done():
        await asyncio.sleep(0)
        seen.append(walked)
    assert walked == items
    return len(set(seen) - {items})


@pytest.mark.parametrize("items", [0, 1, BATCH, BATCH + 1, 10 * BATCH + 3])
async def test_every_item_is_given_once_and_in_order(items: int) -> None:
    given = [item async for batch in Turns(Clock()).take(range(items)) for item in batch]
    assert given == list(range(items))


async def test_work_that_takes_no_time_does_not_pause() -> None:
    assert await pauses(100 * BATCH, cost_s=0) == 0


@pytest.mark.parametrize("cost_s", [SLICE_S / 4, SLICE_S, 10 * SLICE_S])
async def test_work_pauses_when_a_slice_of_time_is_over(cost_s: float) -> None:
    batches = 100
    a_slice = math.ceil(SLICE_S / cost_s) + 1
    assert await pauses(batches * BATCH, cost_s) >= batches // a_slice - 1


class Worker:
    """Pieces of work that go on until they are told to end, in the order in which they get a place."""

    def __init__(self) -> None:
        self.long_work = LongWork(Clock())
        self.begun: list[int] = []
        self.ends: dict[int, asyncio.Event] = {}
        self.tasks: dict[int, asyncio.Task[None]] = {}

    async def begin(self, number: int, items: int = LONG) -> None:
        self.ends[number] = asyncio.Event()
        self.tasks[number] = asyncio.create_task(self._work(number, items))
        await asyncio.sleep(0)

    async def end(self, number: int) -> None:
        self.ends[number].set()
        await self.tasks[number]
        await asyncio.sleep(0)

    async def _work(self, number: int, items: int) -> None:
        async with self.long_work.share(items):
            self.begun.append(number)
            await self.ends[number].wait()


@pytest.mark.parametrize("items", [LONG, LONG_ITEMS])
async def test_one_piece_of_work_is_under_way_at_once_first_come_first_served(items: int) -> None:
    worker = Worker()
    for number in range(5):
        await worker.begin(number, items)
    assert worker.begun == [0]
    for number in range(5):
        await worker.end(number)
        assert worker.begun == list(range(min(5, number + 2)))


@pytest.mark.parametrize("items", [SHORT_ITEMS, LONG_ITEMS])
async def test_shorter_work_does_not_wait_for_long_work(items: int) -> None:
    worker = Worker()
    for number in range(5):
        await worker.begin(number)
    await worker.begin(5, items)
    assert worker.begun == [0, 5]
    for number in range(6):
        await worker.end(number)


async def test_short_work_does_not_wait_for_any() -> None:
    worker = Worker()
    for number in range(5):
        await worker.begin(number, SHORT_ITEMS)
    assert worker.begun == [0, 1, 2, 3, 4]
    for number in range(5):
        await worker.end(number)


async def test_work_that_is_called_off_leaves_its_place_and_the_queue() -> None:
    worker = Worker()
    for number in range(4):
        await worker.begin(number)
    for number in (1, 0):  # one that waits, and one that has the place
        worker.tasks[number].cancel()
        await asyncio.wait([worker.tasks[number]])
    await asyncio.sleep(0)
    assert worker.begun == [0, 2]
    for number in (2, 3):
        await worker.end(number)
    assert worker.begun == [0, 2, 3]
