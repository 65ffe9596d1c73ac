"""Lanes share their work, and end with the error that one of them had."""

from __future__ import annotations

import asyncio

import pytest

from kafka_dt.lanes import run_lanes


class Refused(Exception):
    """Foreseen."""


async def test_lanes_take_from_the_same_work_at_the_same_time() -> None:
    left, done = iter(range(6)), [0, 0, 0]
    numbers = iter(range(3))

    async def lane() -> None:
        number = next(numbers)
        for _ in left:
            done[number] += 1
            await asyncio.sleep(0)

    await run_lanes(lane, 3, raises=Refused)
    assert done == [2, 2, 2]


async def test_a_foreseen_error_of_several_lanes_is_raised_as_itself_and_ends_the_others() -> None:
    ended: list[int] = []
    numbers = iter(range(3))

    async def lane() -> None:
        if (number := next(numbers)) < 2:
            raise Refused(number)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(number)

    with pytest.raises(Refused, match="0"):
        await run_lanes(lane, 3, raises=Refused)
    assert ended == [2]


async def test_an_error_that_nobody_foresaw_comes_with_all_there_are() -> None:
    errors = iter([Refused(), KeyError("unforeseen")])

    async def lane() -> None:
        raise next(errors)

    with pytest.raises(ExceptionGroup) as raised:
        await run_lanes(lane, 2, raises=Refused)
    assert [type(each) for each in raised.value.exceptions] == [Refused, KeyError]
