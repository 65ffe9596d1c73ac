"""Work that strangers may ask for without end: what is done, what is dropped, and in which order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from kafka_dt.identity.credentials.newest_first import NewestFirst, TooMuchWaits
from tests.support.server.fake_transport import turns

MOST_WAITING = 5


class Bench:
    """A queue of one worker, which waits before each piece of work until it may go on."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self.kept: dict[str, str] = {}
        self.done: list[str] = []
        self.go_on = threading.Semaphore(0)
        self.queue: NewestFirst[str, str] = NewestFirst(
            executor, self.kept.__setitem__, at_once=1, most_waiting=MOST_WAITING
        )

    async def ask(self, *keys: str) -> list[asyncio.Task[str]]:
        """Ask for work, in this order."""
        tasks = [asyncio.create_task(self.queue.run(key, self._work(key))) for key in keys]
        await turns(3)
        return tasks

    def _work(self, key: str) -> Callable[[], str]:
        def work() -> str:
            assert self.go_on.acquire(timeout=60)
            self.done.append(key)
            if key == "broken":
                raise ValueError(key)
            return key.upper()

        return work

    async def finish(self, *tasks: asyncio.Task[str]) -> list[str | BaseException]:
        self.go_on.release(100)
        return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with ThreadPoolExecutor(2) as executor:
        yield Bench(executor)


async def test_the_newest_comes_first(bench: Bench) -> None:
    tasks = await bench.ask("first", "a", "b", "c")
    assert await bench.finish(*tasks) == ["FIRST", "A", "B", "C"]
    assert bench.done == ["first", "c", "b", "a"]


async def test_who_is_asked_for_again_is_the_newest(bench: Bench) -> None:
    tasks = await bench.ask("first", "a", "b", "a")
    await bench.finish(*tasks)
    assert bench.done == ["first", "a", "b"]


async def test_work_is_done_once_for_all_who_ask(bench: Bench) -> None:
    tasks = await bench.ask("first", "first", "a", "a")
    assert await bench.finish(*tasks) == ["FIRST", "FIRST", "A", "A"]
    assert bench.done == ["first", "a"]
    assert bench.kept == {"first": "FIRST", "a": "A"}


async def test_work_that_nobody_waits_for_any_more_is_not_done(bench: Bench) -> None:
    first, gone, also_gone, stays = await bench.ask("first", "a", "b", "b")
    for task in (gone, also_gone):
        task.cancel()
    await turns()
    assert await bench.finish(first, stays) == ["FIRST", "B"]
    assert bench.done == ["first", "b"]


async def test_work_that_has_begun_is_kept_though_nobody_waits(bench: Bench) -> None:
    (first,) = await bench.ask("first")
    first.cancel()
    await turns()
    (other,) = await bench.ask("other")
    await bench.finish(other)
    assert bench.kept == {"first": "FIRST", "other": "OTHER"}


async def test_the_oldest_is_dropped_when_too_much_waits(bench: Bench) -> None:
    tasks = await bench.ask("first", *(str(number) for number in range(MOST_WAITING + 2)))
    outcomes = await bench.finish(*tasks)
    assert [type(each) for each in outcomes[1:3]] == [TooMuchWaits] * 2
    assert outcomes[3:] == [str(number) for number in range(2, MOST_WAITING + 2)]
    assert not {"0", "1"} & set(bench.done)


async def test_work_that_fails_fails_for_who_asked_and_no_other(bench: Bench) -> None:
    tasks = await bench.ask("first", "broken", "a")
    outcomes = await bench.finish(*tasks)
    assert isinstance(outcomes[1], ValueError)
    assert (outcomes[0], outcomes[2]) == ("FIRST", "A")
    with suppress(ValueError):
        await bench.queue.run("broken", bench._work("broken"))
    assert bench.done.count("broken") == 2, "what failed is tried again when it is asked for again"
