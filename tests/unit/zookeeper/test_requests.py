"""Places for requests: as many as there are come back, whatever becomes of a request."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kafka_dt.zookeeper.errors import RequestRefused
from kafka_dt.zookeeper.handler import Answer, Inbox
from kafka_dt.zookeeper.requests import Requests


def begin() -> Answer:
    return Answer(threading.Lock())


def fail_at_once() -> Answer:
    raise ValueError("a bug")


def one_at_a_time() -> Requests:
    loop = asyncio.get_running_loop()
    return Requests(loop, Inbox(loop), lambda: True, max_in_flight=1)


async def outcome(future: asyncio.Future[object]) -> object:
    return await asyncio.wait_for(future, 5)


async def test_a_request_that_kazoo_refuses_at_once_fails_and_gives_its_place_back() -> None:
    requests = one_at_a_time()
    for _ in range(3):
        with pytest.raises(RequestRefused, match="/a: ValueError") as caught:
            await outcome(requests.send(fail_at_once, lambda value: value, "/a", None))
        assert isinstance(caught.value.__cause__, ValueError)
    answer = begin()
    sent = requests.send(lambda: answer, lambda value: value, "/b", None)
    answer.set(5)
    assert await outcome(sent) == 5


async def test_a_request_that_is_refused_when_its_turn_comes_fails_and_the_next_goes_on() -> None:
    requests = one_at_a_time()
    first, third = begin(), begin()
    sent = [requests.send(lambda: first, lambda value: value, "/a", None)]
    sent += [requests.send(fail_at_once, lambda value: value, path, None) for path in ("/b", "/c")]
    sent += [requests.send(lambda: third, lambda value: value, "/d", None)]
    first.set(1)
    third.set(3)
    outcomes = await asyncio.wait_for(asyncio.gather(*sent, return_exceptions=True), 5)
    assert [type(each) for each in outcomes] == [int, RequestRefused, RequestRefused, int]
