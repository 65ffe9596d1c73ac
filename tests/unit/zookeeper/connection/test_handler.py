"""The bridge to the event loop: order, one wake-up for many, and no call lost."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from kafka_dt.zookeeper.connection.handler import Answer, Inbox

if TYPE_CHECKING:
    from collections.abc import Callable


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts how often it is woken."""

    wake_ups = 0

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: object, **kwargs: object) -> asyncio.Handle:
        self.wake_ups += 1
        return super().call_soon_threadsafe(callback, *args, **kwargs)  # type: ignore[arg-type]


def test_calls_come_in_order_with_one_wake_up() -> None:
    loop = CountingLoop()
    inbox = Inbox(loop)
    heard: list[int] = []
    for number in range(100):
        inbox.post(heard.append, number)
    loop.run_until_complete(asyncio.sleep(0))
    assert heard == list(range(100))
    assert loop.wake_ups == 1
    loop.close()
    inbox.post(heard.append, 100)  # too late, and no error


async def test_a_call_that_fails_does_not_keep_the_others() -> None:
    loop = asyncio.get_running_loop()
    reported: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _, context: reported.append(context))
    inbox = Inbox(loop)
    heard = asyncio.Event()
    inbox.post(int, "no number")
    inbox.post(heard.set)
    await asyncio.wait_for(heard.wait(), 60)
    assert len(reported) == 1


async def test_threads_may_post() -> None:
    inbox = Inbox(asyncio.get_running_loop())
    heard: list[int] = []
    done = asyncio.Event()

    def post() -> None:
        for number in range(1000):
            inbox.post(heard.append, number)

    threads = [threading.Thread(target=post) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    inbox.post(done.set)
    await asyncio.wait_for(done.wait(), 60)
    assert len(heard) == 4000


def test_an_answer_is_told_once_to_those_before_and_after() -> None:
    answer = Answer(threading.Lock())
    told: list[Answer] = []
    answer.rawlink(told.append)
    assert not answer.ready()
    answer.set(5)
    answer.set_exception(ValueError())
    answer.rawlink(told.append)
    assert told == [answer, answer]
    assert answer.successful()
    assert answer.get() == 5


def test_an_answer_may_be_an_exception() -> None:
    answer = Answer(threading.Lock())
    answer.set_exception(ValueError("refused"))
    assert answer.ready()
    assert not answer.successful()
    with pytest.raises(ValueError, match="refused"):
        answer.get()
