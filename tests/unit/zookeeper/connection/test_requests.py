"""Places for requests: as many as there are come back, whatever becomes of a request."""

from __future__ import annotations

import asyncio
import threading

import pytest
from kazoo.exceptions import ConnectionLoss

from kafka_dt.zookeeper.connection import requests as requests_module
from kafka_dt.zookeeper.connection.handler import Answer, Inbox
from kafka_dt.zookeeper.connection.requests import REFUSED_FOR_S, SURE_BYTES, RequestSizes, ZooKeeperRequests
from kafka_dt.zookeeper.errors import RequestTooLarge, ZooKeeperConnectionLost, ZooKeeperRefusal

LIMIT = 1_000_000
LARGE = 200_000


def begin() -> Answer:
    return Answer(threading.Lock())


def fail_at_once() -> Answer:
    raise ValueError("a bug")


def one_at_a_time() -> ZooKeeperRequests:
    loop = asyncio.get_running_loop()
    return ZooKeeperRequests(loop, Inbox(loop), lambda: True, max_in_flight=1, sizes=RequestSizes(LIMIT))


async def outcome(future: asyncio.Future[object]) -> object:
    return await asyncio.wait_for(future, 60)


async def test_a_request_that_kazoo_refuses_at_once_fails_and_gives_its_place_back() -> None:
    requests = one_at_a_time()
    for _ in range(3):
        with pytest.raises(ZooKeeperRefusal, match="/a: ValueError") as caught:
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
    outcomes = await asyncio.wait_for(asyncio.gather(*sent, return_exceptions=True), 60)
    assert [type(each) for each in outcomes] == [int, ZooKeeperRefusal, ZooKeeperRefusal, int]


class Wire:
    """Requests on a connection whose answers, and whose end, are the test's."""

    def __init__(self, sizes: RequestSizes | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.connected = True
        self.sizes = sizes or RequestSizes(LIMIT)
        self.requests = ZooKeeperRequests(
            loop, Inbox(loop), lambda: self.connected, max_in_flight=256, sizes=self.sizes
        )
        self.sent: list[tuple[str, Answer]] = []

    def send(self, name: str, size: int = 0) -> asyncio.Future[object]:
        def to_server() -> Answer:
            answer = begin()
            self.sent.append((name, answer))
            return answer

        return self.requests.send(to_server, lambda value: value, name, None, size)

    @property
    def under_way(self) -> list[str]:
        return [name for name, answer in self.sent if not answer.ready()]

    async def answer(self) -> None:
        for _, answer in self.sent:
            if not answer.ready():
                answer.set("done")
        await asyncio.sleep(0.01)

    async def breaks(self) -> None:
        """End the connection, as kazoo tells it: first what was under way fails, then the state changes."""
        self.connected = False
        for _, answer in self.sent:
            if not answer.ready():
                answer.set_exception(ConnectionLoss())
        await asyncio.sleep(0.01)
        self.requests.lost()

    def comes_back(self) -> None:
        self.connected = True
        self.requests.go_on()


async def test_a_request_larger_than_any_before_goes_alone_and_in_its_turn() -> None:
    wire = Wire()
    sent = [wire.send("a"), wire.send("large", LARGE), wire.send("b")]
    assert wire.under_way == ["a"]
    await wire.answer()
    assert wire.under_way == ["large"]
    sent.append(wire.send("c"))
    assert wire.under_way == ["large"]
    await wire.answer()
    assert wire.under_way == ["b", "c"]
    sent += [wire.send("as large", LARGE), wire.send("larger", LARGE + 1)]
    assert wire.under_way == ["b", "c", "as large"]
    await wire.answer()
    await wire.answer()
    assert await asyncio.gather(*sent) == ["done"] * 6


async def test_a_request_that_breaks_the_connection_by_its_size_takes_no_other_with_it() -> None:
    wire = Wire()
    before, large = wire.send("before"), wire.send("large", LARGE)
    after = [wire.send(f"after {number}") for number in range(20)]
    await wire.answer()
    await wire.breaks()
    with pytest.raises(ZooKeeperConnectionLost) as lost:
        await large
    assert lost.value.sent
    assert not any(each.done() for each in after)
    wire.comes_back()
    await wire.answer()
    assert await asyncio.gather(before, *after) == ["done"] * 21


async def test_what_waits_is_not_kept_waiting_for_a_connection_that_does_not_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests_module, "PATIENCE_S", 0.01)
    wire = Wire()
    wire.send("large", LARGE)
    after = wire.send("after")
    await wire.breaks()
    with pytest.raises(ZooKeeperConnectionLost) as lost:
        await outcome(after)
    assert not lost.value.sent


async def test_a_loss_without_a_large_request_fails_what_waits_at_once() -> None:
    wire = Wire()
    sent = [wire.send(str(number)) for number in range(300)]
    await wire.breaks()
    outcomes = await asyncio.gather(*sent, return_exceptions=True)
    assert [getattr(each, "sent", None) for each in outcomes] == [True] * 256 + [False] * 44


async def test_an_answer_that_comes_after_the_loss_reports_nothing() -> None:
    """kazoo may send a request on the next connection, which is not admitted: its server may lag, or be restored."""
    loop = asyncio.get_running_loop()
    requests = ZooKeeperRequests(loop, Inbox(loop), lambda: True, max_in_flight=1, sizes=RequestSizes(LIMIT))
    reported: list[object] = []
    answer = begin()
    read = requests.send(
        lambda: answer, lambda value: value, "/token", lambda value, error: reported.append((value, error))
    )
    requests.lost()
    answer.set("a token that has been deleted since")
    with pytest.raises(ZooKeeperConnectionLost):
        await outcome(read)
    later = begin()
    later.set("done")
    assert await outcome(requests.send(lambda: later, lambda value: value, "/b", None)) == "done"
    assert reported == []


async def test_after_a_break_larger_requests_are_refused_for_a_while_and_named_the_limit() -> None:
    now = [1_000.0]
    wire = Wire(RequestSizes(LIMIT, lambda: now[0]))
    wire.send("passes", SURE_BYTES + 1_000)
    await wire.answer()
    wire.send("large", LARGE)
    await wire.breaks()
    wire.comes_back()
    with pytest.raises(RequestTooLarge) as refused:
        wire.sizes.require(SURE_BYTES + 1_001)
    assert refused.value.limit == SURE_BYTES + 1_000
    wire.sizes.require(SURE_BYTES + 1_000)
    now[0] += REFUSED_FOR_S
    wire.sizes.require(LARGE)
    with pytest.raises(RequestTooLarge):
        wire.sizes.require(LIMIT + 1)


async def test_after_a_loss_with_a_large_request_among_others_such_go_alone_again() -> None:
    """The next server may have another limit."""
    wire = Wire()
    wire.send("passes", LARGE)
    await wire.answer()
    wire.send("a")
    wire.send("again", LARGE)
    assert wire.under_way == ["a", "again"]
    await wire.breaks()
    wire.comes_back()
    wire.send("b")
    wire.send("again", LARGE)
    assert wire.under_way == ["b"]
    wire.sizes.require(LARGE)
