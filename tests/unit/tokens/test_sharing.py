"""Long work pauses by the clock, and little of it is under way at once."""

from __future__ import annotations

import asyncio
import math
import traceback
from typing import Any

import pytest

from kafka_dt.tokens.sharing import (
    BATCH,
    ITEMS_A_TURN,
    LONG_ITEMS,
    SHORT_ITEMS,
    SLICE_S,
    KeyedLocks,
    LongWork,
    SharedRun,
    Turns,
    in_turns,
)

LONG = LONG_ITEMS + 1


class Work:
    """Counts its runs, each of which ends when the test says so."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.gate = asyncio.Event()

    async def __call__(self) -> None:
        self.begun += 1
        await self.gate.wait()
        self.ended += 1


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


class TestSharedRun:
    async def test_concurrent_callers_share_a_run(self) -> None:
        work = Work()
        work.gate.set()
        shared = SharedRun(work)
        await asyncio.gather(*(shared.join() for _ in range(100)))
        assert work.begun == 1

    async def test_a_caller_never_gets_a_run_that_had_begun_before(self) -> None:
        work = Work()
        shared = SharedRun(work)
        first = asyncio.create_task(shared.join())
        await settle()
        later = [asyncio.create_task(shared.join()) for _ in range(100)]
        await settle()
        assert (work.begun, work.ended) == (1, 0)

        work.gate.set()
        await asyncio.gather(first, *later)

        assert work.begun == 2

    async def test_runs_follow_each_other(self) -> None:
        work = Work()
        work.gate.set()
        shared = SharedRun(work)
        for number in range(3):
            await shared.join()
            assert work.ended == number + 1

    async def test_a_failure_reaches_every_caller_and_the_next_run_is_new(self) -> None:
        outcomes = [OSError("once")]

        async def work() -> None:
            await asyncio.sleep(0)
            if outcomes:
                raise outcomes.pop()

        shared = SharedRun(work)
        results = await asyncio.gather(shared.join(), shared.join(), return_exceptions=True)
        assert [type(result) for result in results] == [OSError, OSError]
        await shared.join()

    async def test_a_caller_that_waited_for_a_run_that_failed_gets_its_own(self) -> None:
        runs: list[int] = []

        async def work() -> None:
            runs.append(len(runs))
            await asyncio.sleep(0)
            if len(runs) == 1:
                raise OSError("the first one")

        shared = SharedRun(work)
        first = asyncio.create_task(shared.join())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second = asyncio.create_task(shared.join())
        with pytest.raises(OSError, match="the first one"):
            await first
        await second
        assert runs == [0, 1]

    async def test_the_traceback_that_a_caller_gets_does_not_grow_with_the_callers(self) -> None:
        async def work() -> None:
            await asyncio.sleep(0)
            raise OSError("the connection is gone")

        shared = SharedRun(work)
        failures = await asyncio.gather(*(shared.join() for _ in range(10)), return_exceptions=True)
        (failure,) = set(failures)
        assert isinstance(failure, OSError)
        names = [frame.name for frame in traceback.extract_tb(failure.__traceback__)]
        assert names == ["join", "_run_after", "work"]

    def test_a_run_that_fails_as_the_loop_ends_is_not_reported_as_unhandled(self) -> None:
        unhandled: list[dict[str, Any]] = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                raise OSError("the connection is gone")

        async def ends_early() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
            caller = asyncio.create_task(SharedRun(work).join())
            await settle()
            caller.cancel()

        asyncio.run(ends_early())
        assert unhandled == []

    async def test_a_caller_that_is_cancelled_does_not_take_the_others_along(self) -> None:
        work = Work()
        shared = SharedRun(work)
        impatient, patient = (asyncio.create_task(shared.join()) for _ in range(2))
        await settle()
        impatient.cancel()
        await settle()
        work.gate.set()
        await patient
        assert impatient.cancelled()
        assert work.begun == 1


class TestKeyedLocks:
    async def test_holders_of_one_key_follow_each_other_in_order(self) -> None:
        locks = KeyedLocks()
        order: list[int] = []

        async def change(number: int) -> None:
            async with locks.hold("a"):
                order.append(number)
                await settle()
                order.append(number)

        await asyncio.gather(*(change(number) for number in range(5)))
        assert order == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]

    async def test_other_keys_do_not_wait(self) -> None:
        locks = KeyedLocks()
        async with locks.hold("a"), asyncio.timeout(60), locks.hold("b"):
            assert len(locks) == 2

    async def test_nothing_is_kept_when_nobody_holds_a_key(self) -> None:
        locks = KeyedLocks()
        with pytest.raises(OSError, match="in the body"):
            async with locks.hold("a"):
                raise OSError("in the body")
        async with locks.hold("a"):
            waiting = asyncio.create_task(_hold(locks))
            await settle()
            waiting.cancel()
            await settle()
        assert len(locks) == 0


async def _hold(locks: KeyedLocks) -> None:
    async with locks.hold("a"):
        pass


@pytest.mark.parametrize("count", [0, 1, ITEMS_A_TURN, ITEMS_A_TURN + 1, 3 * ITEMS_A_TURN])
async def test_a_walk_gives_out_everything_and_lets_others_have_their_turn(count: int) -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(other())
    walked = [item async for items in in_turns(range(count)) for item in items]
    others.cancel()
    assert walked == list(range(count))
    assert turns >= (count - 1) // ITEMS_A_TURN


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

    async def begin(self, number: int, items: int = LONG, asker: str = "bob") -> None:
        self.ends[number] = asyncio.Event()
        self.tasks[number] = asyncio.create_task(self._work(number, items, asker))
        await asyncio.sleep(0)

    async def end(self, number: int) -> None:
        self.ends[number].set()
        await self.tasks[number]
        await asyncio.sleep(0)

    async def _work(self, number: int, items: int, asker: str) -> None:
        async with self.long_work.share(items, asker):
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


@pytest.mark.parametrize("items", [LONG, LONG_ITEMS])
async def test_who_asks_for_much_work_has_one_piece_of_it_done_before_that_of_others(items: int) -> None:
    worker = Worker()
    for number in range(5):
        await worker.begin(number, items)
    await worker.begin(5, items, "alice")
    for number in (0, 5, 1, 2, 3, 4):
        await worker.end(number)
    assert worker.begun == [0, 5, 1, 2, 3, 4]


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
