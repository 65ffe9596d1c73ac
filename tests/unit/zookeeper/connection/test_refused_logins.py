"""ZooKeeper refuses a login: that ends a start at once, and a node that runs says so now and then, and goes on."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from kafka_dt.zookeeper.connection import session as session_module
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.session import ConnectionState
from kafka_dt.zookeeper.connection.settings import LoginScheme, ZooKeeperLogin, ZooKeeperSettings
from kafka_dt.zookeeper.errors import CannotConnect, LoginRefused, ZooKeeperConnectionLost
from tests.support.zookeeper.scripted_server import (
    CLOSED,
    CONNECTED,
    DIGEST_REFUSED,
    DIGEST_TAKEN,
    EXISTS,
    SASL_FAILED,
    SASL_REQUIRED,
    ScriptedServer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S = 20
DIGEST = ZooKeeperLogin(LoginScheme.DIGEST, "us", "s3cret")
SASL = ZooKeeperLogin(LoginScheme.SASL_DIGEST_MD5, "us", "s3cret")


class Guard:
    """Asks one question about each connection."""

    trouble = ""
    awaits_operator = False

    async def admit(self, client: ZooKeeperClient) -> None:
        await client.ungated(lambda: client.exists("/question"))


@pytest.fixture(autouse=True)
def quick_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "RESTART_DELAY_S", 0.01)


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("login", "answer", "setting"),
    [
        (DIGEST, DIGEST_REFUSED, "kafka.dt.zookeeper.digest"),
        (SASL, SASL_FAILED, "kafka.dt.zookeeper.sasl.jaas.config"),
        (SASL, SASL_REQUIRED, "kafka.dt.zookeeper.sasl.jaas.config"),
    ],
    ids=["digest", "SASL", "SASL that is required"],
)
async def test_a_refused_login_ends_the_start_at_once_and_names_its_setting(
    login: ZooKeeperLogin, answer: bytes, setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = ScriptedServer(CONNECTED, answer)
    async with server.listening() as address, asyncio.timeout(TIMEOUT_S / 2):
        client = ZooKeeperClient(ZooKeeperSettings(address, login=login, connection_timeout_ms=TIMEOUT_S * 1000))
        with pytest.raises(LoginRefused) as caught:
            await client.start()
    assert str(caught.value) == (
        f"{setting}: ZooKeeper at {address} refuses this login: check its user name and password"
    )
    assert caught.value.setting == setting
    assert server.connections == 1
    assert caplog.messages == [], "the error says it all"


@pytest.mark.parametrize("login", [None, DIGEST], ids=["none", "another"])
@pytest.mark.parametrize("guard", [None, Guard()], ids=["unguarded", "guarded"])
async def test_a_zookeeper_that_wants_a_sasl_login_names_its_setting(
    login: ZooKeeperLogin | None, guard: Guard | None
) -> None:
    before = [DIGEST_TAKEN] if login else []
    server = ScriptedServer(CONNECTED, *before, SASL_REQUIRED, CLOSED)
    async with server.listening() as address, asyncio.timeout(TIMEOUT_S / 2):
        client = ZooKeeperClient(ZooKeeperSettings(address, login=login, connection_timeout_ms=TIMEOUT_S * 1000), guard)
        with pytest.raises(LoginRefused) as caught:
            await client.start()
    assert str(caught.value) == (
        "kafka.dt.zookeeper.sasl.jaas.config: it is not set, and ZooKeeper serves only clients that log in by SASL"
    )


async def test_a_connection_that_ends_in_the_login_may_also_be_a_restart_of_the_server() -> None:
    server = ScriptedServer(CONNECTED, CLOSED)
    async with server.listening() as address:
        client = ZooKeeperClient(ZooKeeperSettings(address, login=SASL, connection_timeout_ms=500))
        with pytest.raises(CannotConnect) as caught:
            await client.start()
    assert str(caught.value).endswith(
        "within 500 ms: ZooKeeper ends the connection during the login of kafka.dt.zookeeper.sasl.jaas.config: check "
        "its user name and password"
    )
    assert server.connections > 1


async def test_a_node_that_is_refused_later_says_so_in_a_line_and_connects_when_it_is_taken_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    server = ScriptedServer(CONNECTED, DIGEST_TAKEN, EXISTS)
    async with server.listening() as address:
        client = ZooKeeperClient(ZooKeeperSettings(address, login=DIGEST))
        states: list[ConnectionState] = []
        client.add_listener(states.append)
        await client.start()
        try:
            caplog.clear()
            await refuse(server, attempts=5)
            (line,) = (each for each in caplog.messages if "refuses" in each)
            assert line == (
                f"kafka.dt.zookeeper.digest: ZooKeeper at {address} refuses this login: check its user name and "
                "password; it is tried again every second"
            )
            assert len(caplog.messages) <= 3, caplog.messages  # suspended, lost, and that
            assert not any(each.exc_info for each in caplog.records)
            with pytest.raises(ZooKeeperConnectionLost):
                await client.get("/")
            server.answers = (CONNECTED, DIGEST_TAKEN)
            await eventually(lambda: client.connected)
        finally:
            await client.close()
    connected, suspended, lost = ConnectionState
    assert states == [connected, suspended, lost, connected]


async def test_the_line_is_logged_again_as_long_as_it_is_true(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(session_module, "REFUSAL_LOG_S", 0.0)
    server = ScriptedServer(CONNECTED, DIGEST_TAKEN, EXISTS)
    async with server.listening() as address:
        client = ZooKeeperClient(ZooKeeperSettings(address, login=DIGEST))
        await client.start()
        try:
            await refuse(server, attempts=3)
        finally:
            await client.close()
    assert sum("refuses this login" in each for each in caplog.messages) > 1


async def refuse(server: ScriptedServer, attempts: int) -> None:
    """Have the server refuse the login from now on, and wait until that has happened some times."""
    server.answers = (CONNECTED, DIGEST_REFUSED)
    server.drop()
    before = server.connections
    await eventually(lambda: server.connections > before + attempts)
