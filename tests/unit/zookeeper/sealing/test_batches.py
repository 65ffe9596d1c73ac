"""Work for threads: many pieces a hand-over, and a single one is not made to wait for company."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from kafka_dt.zookeeper.sealing.batches import BATCHES_A_THREAD, LARGEST, Batches
from tests.support.token_codecs import HeldExecutor


async def turn() -> None:
    """Let everything happen that does not wait for a thread."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_single_piece_is_handed_over_in_the_next_turn() -> None:
    executor = HeldExecutor()
    result = Batches(executor, threads=2).submit(lambda: "done")
    await asyncio.sleep(0)
    assert len(executor) == 1
    executor.release()
    assert await result == "done"


async def test_few_pieces_are_shared_among_the_threads() -> None:
    executor = HeldExecutor()
    batches = Batches(executor, threads=2)
    results = [batches.submit(partial(int, number)) for number in range(4)]
    await turn()
    assert len(executor) == 4
    executor.release()
    assert await asyncio.gather(*results) == [0, 1, 2, 3]


async def test_many_pieces_go_in_batches_and_the_threads_get_no_more_than_keeps_them_busy() -> None:
    executor = HeldExecutor()
    batches = Batches(executor, threads=2)
    done: list[int] = []
    results = [batches.submit(partial(done.append, number)) for number in range(100)]
    handed_over = []
    while len(done) < 100:
        await turn()
        handed_over.append(len(executor))
        before = len(done)
        executor.release()
        assert len(done) - before <= LARGEST * 2 * BATCHES_A_THREAD
    assert max(handed_over) == 2 * BATCHES_A_THREAD
    assert handed_over == [4, 3]
    assert done == list(range(100))
    await asyncio.gather(*results)


async def test_what_one_piece_raises_does_not_concern_the_others() -> None:
    executor = HeldExecutor()
    batches = Batches(executor, threads=1)
    results = [batches.submit(partial(divmod, 7, divisor)) for divisor in (2, 0, 3, 0, 4)]
    await turn()
    executor.release()
    outcomes = await asyncio.gather(*results[:2], return_exceptions=True)
    await turn()
    executor.release()
    outcomes += await asyncio.gather(*results[2:], return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [tuple, ZeroDivisionError] * 2 + [tuple]


async def test_what_nobody_waits_for_is_not_begun() -> None:
    executor = HeldExecutor()
    batches = Batches(executor, threads=1)
    done: list[int] = []
    results = [batches.submit(partial(done.append, number)) for number in range(3)]
    results[1].cancel()
    await turn()
    executor.release()
    await turn()
    executor.release()
    await asyncio.gather(results[0], results[2])
    assert done == [0, 2]


async def test_who_gives_up_while_a_thread_is_at_it_disturbs_nobody() -> None:
    executor = HeldExecutor()
    batches = Batches(executor, threads=1)
    results = [batches.submit(partial(int, number)) for number in range(2)]
    await turn()
    results[0].cancel()
    executor.release()
    assert await results[1] == 1


async def test_when_the_threads_have_been_stopped_whoever_waits_hears_of_it() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(RuntimeError, match="shutdown"):
        await Batches(executor, threads=1).submit(int)


class _Cancelling(Executor):
    """Is shut down before it begins anything."""

    def submit(self, _: Any, /, *__: Any, **___: Any) -> Future[Any]:
        future: Future[Any] = Future()
        asyncio.get_running_loop().call_soon(future.cancel)
        return future


async def test_when_the_threads_are_stopped_meanwhile_whoever_waits_hears_of_it() -> None:
    with pytest.raises(RuntimeError, match="stopped"):
        await Batches(_Cancelling(), threads=1).submit(int)
