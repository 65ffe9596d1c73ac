"""A connection that a guard must admit first: whatever the last one ended with, it is asked about the next one."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss

from kafka_dt.zookeeper.connection import client as client_module
from kafka_dt.zookeeper.connection import requests as requests_module
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.handler import Answer
from kafka_dt.zookeeper.connection.operations import Create
from kafka_dt.zookeeper.connection.session import ConnectionState
from kafka_dt.zookeeper.connection.settings import ZooKeeperSettings
from kafka_dt.zookeeper.connection.translation import WriteMany
from kafka_dt.zookeeper.errors import ZooKeeperConnectionLost

WITHIN_S = 60.0
LARGE = 20_000
QUESTION = "/question"


class Kazoo:
    """Takes requests; the test answers them."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Answer]] = []

    def exists_async(self, path: str, **_: object) -> Answer:
        return self._take(path)

    @property
    def handler(self) -> Kazoo:
        return self

    def async_result(self) -> Answer:
        return Answer(threading.Lock())

    def _call(self, request: WriteMany, answer: Answer) -> None:
        self.sent.append((request.paths[0], answer))

    def _take(self, path: str) -> Answer:
        answer = self.async_result()
        self.sent.append((path, answer))
        return answer


class Session:
    """A session without a server; the test is its network."""

    trouble = ""
    session_id = 1

    def __init__(self, *_: object) -> None:
        self.connected = False
        self.kazoo = Kazoo()


class Guard:
    """Asks one question about each connection."""

    trouble = ""
    awaits_operator = False

    async def admit(self, client: ZooKeeperClient) -> None:
        await client.ungated(lambda: client.exists(QUESTION))


class Connection:
    """A client with a guard, and what the network does to it."""

    def __init__(self) -> None:
        self.client = ZooKeeperClient(ZooKeeperSettings("localhost:1"), Guard())
        self._session: Any = self.client._session
        self._tell = self.client._state_changed

    @property
    def under_way(self) -> list[str]:
        return [path for path, answer in self._session.kazoo.sent if not answer.ready()]

    async def opens(self) -> None:
        self._session.connected = True
        self._tell(ConnectionState.CONNECTED)
        await self.asks(QUESTION)

    async def asks(self, path: str) -> None:
        async with asyncio.timeout(WITHIN_S):
            while path not in self.under_way:  # noqa: ASYNC110 - no event is told
                await asyncio.sleep(0)

    async def answers(self) -> None:
        for _, answer in self._session.kazoo.sent:
            answer.set(None)
        await asyncio.sleep(0.01)

    async def breaks(self) -> None:
        """End the connection, as kazoo tells it: first what was under way fails, then the state changes."""
        self._session.connected = False
        for _, answer in self._session.kazoo.sent:
            answer.set_exception(ConnectionLoss())
        await asyncio.sleep(0.01)
        self._tell(ConnectionState.SUSPENDED)

    async def is_admitted(self) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not self.client.connected:
                await self.answers()


@pytest.fixture
async def connection(monkeypatch: pytest.MonkeyPatch) -> Connection:
    monkeypatch.setattr(client_module, "ZooKeeperSession", Session)
    connection = Connection()
    await connection.opens()
    await connection.is_admitted()
    return connection


def send_large(client: ZooKeeperClient) -> asyncio.Future[Any]:
    return client.multi([Create("/large", bytes(LARGE))])


async def test_the_guards_request_does_not_wait_behind_those_that_a_large_one_held_up(connection: Connection) -> None:
    large, behind = send_large(connection.client), connection.client.exists("/behind")
    await connection.breaks()
    await connection.opens()
    assert connection.under_way == [QUESTION], "what waits is not sent before the connection is admitted"
    await connection.is_admitted()
    assert isinstance(large.exception(), ZooKeeperConnectionLost)
    await connection.answers()
    assert await behind is None


async def test_no_answer_to_the_guard_sends_what_waits_for_the_admission(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask_twice(client: ZooKeeperClient) -> None:
        for _ in range(2):
            await client.ungated(lambda: client.exists(QUESTION))

    monkeypatch.setattr(connection.client._guard, "admit", ask_twice)
    send_large(connection.client)
    connection.client.exists("/behind")
    await connection.breaks()
    await connection.opens()
    await connection.answers()
    assert connection.under_way == [QUESTION]
    await connection.is_admitted()
    assert connection.under_way == ["/behind"]


async def test_the_end_of_the_patience_fails_what_waits_and_nothing_that_the_guard_has_asked(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests_module, "PATIENCE_S", 0.05)
    send_large(connection.client)
    behind = connection.client.exists("/behind")
    await connection.breaks()
    await connection.opens()
    with pytest.raises(ZooKeeperConnectionLost) as lost:
        await asyncio.wait_for(behind, WITHIN_S)
    assert not lost.value.sent
    assert connection.under_way == [QUESTION]
    await connection.is_admitted()


async def test_a_lost_answer_to_the_guard_is_asked_for_again_while_the_connection_stays(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "RETRY_DELAY_S", 0)
    await connection.breaks()
    await connection.opens()
    for _, answer in connection._session.kazoo.sent:
        answer.set_exception(ConnectionLoss())
    await connection.asks(QUESTION)
    await connection.is_admitted()


async def test_a_second_look_at_a_connection_blames_no_large_request_under_way(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    large, behind = send_large(connection.client), connection.client.exists("/behind")
    connection.client.readmit()
    await connection.asks(QUESTION)
    for failed in (large, behind):
        assert isinstance(failed.exception(), ZooKeeperConnectionLost)
    await connection.is_admitted()
    again = send_large(connection.client)
    await asyncio.sleep(0)
    assert not again.done(), "larger requests are not refused"
    assert "was lost over a request" not in caplog.text
