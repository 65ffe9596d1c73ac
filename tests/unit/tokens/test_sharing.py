import asyncio

import pytest

from kafka_dt.tokens.sharing import ITEMS_A_TURN, KeyedLocks, SharedRun, in_turns


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
        async with locks.hold("a"), asyncio.timeout(1), locks.hold("b"):
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
