"""A client that gives up is started again, however and whenever it gives up."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from kafka_dt.zookeeper.connection import session as session_module
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.handler import Inbox, LoopHandler
from kafka_dt.zookeeper.connection.session import ConnectionState, ZooKeeperSession
from kafka_dt.zookeeper.connection.settings import LoginScheme, ZooKeeperLogin, ZooKeeperSettings
from kafka_dt.zookeeper.errors import ZooKeeperConnectionLost
from tests.support.zookeeper.scripted_server import (
    CLOSED,
    CONNECTED,
    DIGEST_REFUSED,
    EXISTS,
    UNFORESEEN,
    ScriptedServer,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

TIMEOUT_S = 20


@asynccontextmanager
async def session_with(
    server: ScriptedServer, scheme: LoginScheme = LoginScheme.DIGEST
) -> AsyncIterator[tuple[ZooKeeperSession, list[ConnectionState]]]:
    async with server.listening() as address:
        login = ZooKeeperLogin(scheme, "us", "wrong")
        states: list[ConnectionState] = []
        settings = ZooKeeperSettings(address, login=login)
        session = ZooKeeperSession(settings, Inbox(asyncio.get_running_loop()), states.append, lambda _: None)
        await session.start()
        try:
            yield session, states
        finally:
            await session.close()


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("answer", [DIGEST_REFUSED, UNFORESEEN], ids=["refused", "an unforeseen error"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_client_that_ends_is_started_again_each_time(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    monkeypatch.setattr(session_module, "RESTART_DELAY_S", 0.01)
    server = ScriptedServer(CONNECTED, answer)
    async with session_with(server):
        await eventually(lambda: server.connections > 4)


async def test_after_an_answer_to_a_later_request_the_outcome_is_unknown_and_the_client_is_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(session_module, "RESTART_DELAY_S", 0.01)
    server = ScriptedServer(CONNECTED, EXISTS, UNFORESEEN)
    async with server.listening() as address:
        client = ZooKeeperClient(ZooKeeperSettings(address))
        await client.start()
        with pytest.raises(ZooKeeperConnectionLost) as lost:
            await client.delete("/token", version=3)
        await eventually(lambda: server.connections > 1 and client.connected)
        await client.close()
    assert lost.value.sent
    (told,) = (record for record in caplog.records if record.levelno >= logging.ERROR)
    assert "the ZooKeeper client ends: ('xids do not match" in told.getMessage()
    assert told.exc_info is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_login_that_failed_explains_what_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "RESTART_DELAY_S", 0.01)
    server = ScriptedServer(CONNECTED, CLOSED)
    async with session_with(server, LoginScheme.SASL_DIGEST_MD5) as (session, _):
        await eventually(lambda: "during the login of kafka.dt.zookeeper.sasl.jaas.config" in session.trouble)
        server.answers = (CONNECTED, UNFORESEEN)
        seen = server.connections
        await eventually(lambda: server.connections > seen + 2)
        assert "during the login of kafka.dt.zookeeper.sasl.jaas.config" in session.trouble


async def test_an_end_before_its_start_is_noticed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop is busy while the client is started again and ends again."""
    monkeypatch.setattr(session_module, "RESTART_DELAY_S", 0.01)
    server = ScriptedServer(CONNECTED, DIGEST_REFUSED)
    async with session_with(server) as (session, states):
        start = session.kazoo.start_async

        def start_and_see_it_end() -> None:
            start()
            session.kazoo._connection._connection_routine.join()

        monkeypatch.setattr(session.kazoo, "start_async", start_and_see_it_end)
        await eventually(lambda: server.connections > 4)
    assert states == [], "a connection counts from its login on"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_client_that_ends_before_it_was_connected_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """kazoo tells no new state then: it was not connected, and is not."""
    monkeypatch.setattr(session_module, "RESTART_DELAY_S", 0.01)
    attempts: list[object] = []

    def fail_unforeseen(*_: object, **address: object) -> None:
        attempts.append(address)
        raise ValueError("a bug")

    monkeypatch.setattr(LoopHandler, "create_connection", fail_unforeseen)
    async with session_with(ScriptedServer()):
        await eventually(lambda: len(attempts) > 4)


async def test_a_session_that_is_closed_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "RESTART_DELAY_S", 0.01)
    server = ScriptedServer(CONNECTED, DIGEST_REFUSED)
    async with session_with(server):
        await eventually(lambda: server.connections > 1)
    connections = server.connections
    for _ in range(10):
        await asyncio.sleep(0.01)
    assert server.connections == connections


async def test_a_session_that_is_closed_while_it_starts_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker may be told to stop at any moment."""
    server = ScriptedServer(CONNECTED)
    async with server.listening() as address:
        settings = ZooKeeperSettings(address)
        session = ZooKeeperSession(settings, Inbox(asyncio.get_running_loop()), lambda _: None, lambda _: None)
        begun, goes_on = threading.Event(), threading.Event()
        start = session.kazoo._connection.start

        def start_slowly() -> None:
            begun.set()
            goes_on.wait(TIMEOUT_S)
            start()

        monkeypatch.setattr(session.kazoo._connection, "start", start_slowly)
        starting = asyncio.create_task(session.start())
        await asyncio.to_thread(begun.wait, TIMEOUT_S)
        closing = asyncio.create_task(session.close())
        await asyncio.sleep(0.1)
        goes_on.set()
        await asyncio.gather(starting, closing)
    assert session.kazoo._connection._connection_routine is None
