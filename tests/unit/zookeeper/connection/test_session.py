"""A client that gives up is started again, however and whenever it gives up."""

from __future__ import annotations

import asyncio
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from kafka_dt.zookeeper.connection import session as session_module
from kafka_dt.zookeeper.connection.handler import Inbox, LoopHandler
from kafka_dt.zookeeper.connection.session import ConnectionState, ZooKeeperSession
from kafka_dt.zookeeper.connection.settings import LoginScheme, ZooKeeperLogin, ZooKeeperSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

TIMEOUT_S = 20
CONNECTED = struct.pack(">iiqi16s?", 0, 10_000, 1, 16, bytes(16), False)
AUTH_FAILED = struct.pack(">iqi", -4, 0, -115)
UNFORESEEN = struct.pack(">iqi", 7, 0, 0)
"""The answer to another request; kazoo's thread ends with an exception."""


class Server:
    """Answers each connection with the same, and counts them."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = answers
        self.connections = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            for answer in self.answers:
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                await reader.readexactly(length)
                writer.write(struct.pack(">i", len(answer)) + answer)
            await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass  # it has gone
        finally:
            writer.close()


@asynccontextmanager
async def session_with(server: Server) -> AsyncIterator[tuple[ZooKeeperSession, list[ConnectionState]]]:
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        login = ZooKeeperLogin(LoginScheme.DIGEST, "us", "wrong")
        states: list[ConnectionState] = []
        settings = ZooKeeperSettings(f"127.0.0.1:{server.port}", login=login)
        session = ZooKeeperSession(settings, Inbox(asyncio.get_running_loop()), states.append)
        await session.start()
        try:
            yield session, states
        finally:
            await session.close()


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("answer", [AUTH_FAILED, UNFORESEEN], ids=["refused", "an unforeseen error"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_client_that_ends_is_started_again_each_time(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> None:
    monkeypatch.setattr(session_module, "RESTART_DELAY_S", 0.01)
    server = Server(CONNECTED, answer)
    async with session_with(server):
        await eventually(lambda: server.connections > 4)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_refused_login_explains_what_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "RESTART_DELAY_S", 0.01)
    server = Server(CONNECTED, AUTH_FAILED)
    async with session_with(server) as (session, _):
        await eventually(lambda: "refuses the login" in session.trouble)
        server.answers = (CONNECTED, UNFORESEEN)
        seen = server.connections
        await eventually(lambda: server.connections > seen + 2)
        assert "refuses the login" in session.trouble


async def test_an_end_before_its_start_is_noticed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop is busy while the client is started again and ends again."""
    monkeypatch.setattr(session_module, "RESTART_DELAY_S", 0.01)
    server = Server(CONNECTED, AUTH_FAILED)
    async with session_with(server) as (session, states):
        start = session.kazoo.start_async

        def start_and_see_it_end() -> None:
            start()
            session.kazoo._connection._connection_routine.join()

        monkeypatch.setattr(session.kazoo, "start_async", start_and_see_it_end)
        await eventually(lambda: server.connections > 4)
    assert states[:4] == [ConnectionState.CONNECTED, ConnectionState.LOST] * 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_client_that_ends_before_it_was_connected_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """kazoo tells no new state then: it was not connected, and is not."""
    monkeypatch.setattr(session_module, "RESTART_DELAY_S", 0.01)
    attempts: list[object] = []

    def fail_unforeseen(*_: object, **address: object) -> None:
        attempts.append(address)
        raise ValueError("a bug")

    monkeypatch.setattr(LoopHandler, "create_connection", fail_unforeseen)
    async with session_with(Server()):
        await eventually(lambda: len(attempts) > 4)


async def test_a_session_that_is_closed_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "RESTART_DELAY_S", 0.01)
    server = Server(CONNECTED, AUTH_FAILED)
    async with session_with(server):
        await eventually(lambda: server.connections > 1)
    connections = server.connections
    for _ in range(10):
        await asyncio.sleep(0.01)
    assert server.connections == connections
