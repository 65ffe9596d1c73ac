"""New settings for workers: what a worker answers, and what the supervisor makes of its answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping

import pytest

from kafka_dt.processes.changing import ANSWER, NotChanged, Orders, obey

SETTINGS = {"super.users": "User:admin"}


class Worker:
    """A worker's side in a task, and its supervisor's orders to it."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        self.orders = Orders(self.reader.feed_data, lambda: None, patience_s=10)
        self.runs_on: Mapping[str, str] = {}
        self.refuses = ""
        self.task = asyncio.create_task(obey(self.reader, self._prepare, self._answer))

    def _prepare(self, properties: Mapping[str, str]) -> Callable[[], None]:
        if self.refuses:
            raise ValueError(self.refuses)

        def take_over() -> None:
            self.runs_on = properties

        return take_over

    def _answer(self, line: str) -> None:
        assert line.startswith(ANSWER)
        self.orders.answered(line.removeprefix(ANSWER))


async def test_settings_are_taken_over_when_they_have_been_checked() -> None:
    worker = Worker()
    await worker.orders.prepare(SETTINGS)
    assert worker.runs_on == {}
    await worker.orders.apply()
    assert worker.runs_on == SETTINGS
    worker.reader.feed_eof()
    await worker.task


async def test_settings_that_cannot_be_used_are_refused_with_the_reason() -> None:
    worker = Worker()
    worker.refuses = "super.users: no"
    with pytest.raises(NotChanged, match=r"^super\.users: no$"):
        await worker.orders.prepare(SETTINGS)
    worker.reader.feed_eof()
    await worker.task


async def test_what_is_forgotten_is_not_taken_over_later() -> None:
    worker = Worker()
    await worker.orders.prepare(SETTINGS)
    worker.orders.forget()
    worker.reader.feed_data(json.dumps({"number": 3, "apply": True}).encode() + b"\n")
    worker.reader.feed_eof()
    await worker.task
    assert worker.runs_on == {}


async def test_a_worker_that_ends_or_hangs_has_not_taken_over_anything() -> None:
    written: list[bytes] = []
    gone = Orders(written.append, lambda: None, patience_s=10)
    waiting = asyncio.create_task(gone.prepare(SETTINGS))
    await asyncio.sleep(0)
    gone.gone()
    with pytest.raises(NotChanged, match="it has ended"):
        await waiting
    with pytest.raises(NotChanged, match=r"it did not answer within 0\.01 s"):
        await Orders(written.append, lambda: None, patience_s=0.01).prepare(SETTINGS)
    assert [json.loads(line) for line in written] == [{"number": 1, "prepare": SETTINGS}] * 2


async def test_an_answer_that_comes_too_late_is_not_that_of_the_next_order() -> None:
    orders = Orders(lambda _: None, lambda: None, patience_s=0.01)
    with pytest.raises(NotChanged, match="did not answer"):
        await orders.prepare(SETTINGS)
    next_one = asyncio.create_task(orders.prepare({}))
    await asyncio.sleep(0)
    orders.answered("1 ok")
    assert not next_one.done()
    orders.answered("2 no")
    with pytest.raises(NotChanged, match=r"^no$"):
        await next_one
