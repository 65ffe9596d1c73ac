"""What a connection prepares for a login: after the challenge, once, and for a client that is there."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest
import uvloop

from kafka_dt.server.connections.connection import ClientConnection
from kafka_dt.server.connections.preparations import AFTER_S
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.sasl import Challenge
from tests.support.server.fake_transport import Shell, turns
from tests.support.server.requests import SASL, StubLogin, at_once, log_in, until


async def test_what_was_prepared_for_a_login_ends_with_the_connection() -> None:
    ended: list[str] = []

    class PreparingLogin(StubLogin):
        def prepare(self) -> None:
            ended.append("prepared")

        def abandon(self) -> None:
            ended.append("abandoned")

    shell = Shell(at_once, SASL, lambda _: PreparingLogin(Challenge(b"and then?"), later=False))
    log_in(shell)
    assert shell.answers()[-1].auth_bytes == b"and then?"
    assert ended == [], "the challenge waits for nothing"
    await until(lambda: ended == ["prepared"])
    shell.connection.abort()
    await turns()
    assert ended == ["prepared", "abandoned"]


@pytest.mark.parametrize("gone", [True, False], ids=["the client has gone", "the proof is here"])
async def test_nothing_is_prepared_too_late(*, gone: bool) -> None:
    done: list[str] = []

    class PreparingLogin(StubLogin):
        def prepare(self) -> None:
            done.append("prepared")

        def abandon(self) -> None:
            done.append("abandoned")

    shell = Shell(at_once, SASL, lambda _: PreparingLogin(Challenge(b"and then?"), later=False))
    log_in(shell)
    if gone:
        shell.connection.abort()
    else:
        shell.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"proof")
        await until(lambda: done == ["prepared"])
    await asyncio.sleep(3 * AFTER_S)
    assert done == (["abandoned"] if gone else ["prepared"]), "once at most"


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_challenge_is_with_the_client_before_anything_is_looked_for(run: Callable[..., None]) -> None:
    """On real sockets: uvloop does not write at once."""
    received: list[bytes] = []

    class PreparingLogin(StubLogin):
        def prepare(self) -> None:
            try:
                received.append(client.recv(65_536, socket.MSG_DONTWAIT))
            except BlockingIOError:
                received.append(b"nothing")

    async def log_in_by_socket() -> None:
        shell = Shell(at_once, SASL, lambda _: PreparingLogin(Challenge(b"and then?"), later=False))
        services = shell.connection.services
        server = await asyncio.get_running_loop().create_server(lambda: ClientConnection(services), "127.0.0.1", 0)
        async with server:
            client.connect(server.sockets[0].getsockname())
            client.sendall(shell.request(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN"))
            client.sendall(shell.request(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"first"))
            await until(lambda: bool(received))
            client.close()

    with socket.socket() as client:
        run(log_in_by_socket())
    assert b"and then?" in received[0]
