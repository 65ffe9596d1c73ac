"""A connection to a broker behind the gateway: its login, its bytes, its end, and the next login."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop
from kio.schema.errors import ErrorCode

from kafka_dt.client import ConnectionLost, Credentials, LoginFailed, RequestTimedOut, UnexpectedAnswer
from kafka_dt.client.config import ClientConfig, parse_addresses
from kafka_dt.client.requests import Requests
from kafka_dt.gateway.upstream import Upstream
from kafka_dt.security_protocol import SecurityProtocol
from kafka_dt.tls import client_context, server_context
from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.api.responses import build
from kafka_dt_protocol.wire.frames import FrameSplitter, frame
from kafka_dt_protocol.wire.headers import encode_response
from kafka_dt_protocol.wire.times import to_duration
from tests.support.identity.tls_material import authority, leaf
from tests.support.processes.waiting import eventually
from tests.support.protocol.scripted_server import CLOSE, ScriptedServer

ALICE = Credentials("SCRAM-SHA-256", "alice", "wonder")
NOW = 1_000_000
WITHIN_S = 60.0


class Owner:
    """The owner of the connection: writes down what it hears."""

    def __init__(self) -> None:
        self.upstream: Upstream
        self.received = FrameSplitter(1_000_000)
        self.lost: list[str] = []
        self.full: list[bool] = []
        self._heard = asyncio.Event()

    client_addresses = (None, None)

    def upstream_data(self, data: bytes) -> None:
        self.received.receive_data(data)
        self._heard.set()

    def upstream_lost(self, reason: str) -> None:
        self.lost.append(reason)
        self._heard.set()

    def upstream_full(self) -> None:
        self.full.append(True)
        self._heard.set()

    def upstream_writable(self) -> None:
        self.full.append(False)
        self._heard.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not condition():
                self._heard.clear()
                await self._heard.wait()

    async def frame(self) -> bytes:
        await self.until(lambda: self.received.buffered > 4)
        content = self.received.next_frame()
        assert content is not None
        return content

    async def exchange(self, _correlation_id: int, request: bytes) -> bytes:
        self.upstream.write(request)
        return await self.frame()


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(users={"alice": "wonder"})
    async with scripted.running():
        yield scripted


def settings(
    broker: ScriptedServer, protocol: str = "SASL_PLAINTEXT", context: ssl.SSLContext | None = None, **more: Any
) -> ClientConfig:
    return ClientConfig(
        bootstrap_servers=parse_addresses(broker.address),
        security_protocol=SecurityProtocol(protocol),
        credentials=Credentials("PLAIN", "gateway", "secret"),
        ssl_context=context,
        **more,
    )


async def opened(broker: ScriptedServer, credentials: Credentials | None = ALICE, **more: Any) -> Owner:
    owner = Owner()
    config = settings(broker, **more)
    upstream = Upstream(config, owner, now_ms=lambda: NOW, jitter=lambda: 0.5)
    owner.upstream = await upstream.open(config.bootstrap_servers[0], credentials)
    return owner


def question() -> bytes:
    """A request that the scripted broker answers at any time."""
    return frame(Requests("there", "test")._encode(ApiKey.API_VERSIONS, 0, {}).content)


async def test_whoever_is_logged_in_passes_bytes_both_ways(broker: ScriptedServer) -> None:
    owner = await opened(broker)
    assert broker.logins == ["alice"]
    owner.upstream.write(question())
    assert (await owner.frame())[:4] == b"\0\0\0\0"
    assert owner.upstream.login_due_ms is None
    owner.upstream.abort()


async def test_where_nobody_logs_in_nobody_does(broker: ScriptedServer) -> None:
    owner = await opened(broker, None, protocol="PLAINTEXT")
    owner.upstream.write(question())
    await owner.frame()
    assert broker.logins == []
    assert {api for api, _ in broker.requests} == {ApiKey.API_VERSIONS}
    owner.upstream.abort()


async def test_a_refused_login_leaves_no_connection(broker: ScriptedServer) -> None:
    with pytest.raises(LoginFailed):
        await opened(broker, Credentials("SCRAM-SHA-256", "alice", "wrong"))
    await asyncio.to_thread(eventually, lambda: not broker._open, WITHIN_S)


async def test_a_broker_that_is_not_there_is_told(broker: ScriptedServer) -> None:
    with socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))
        broker.address = f"127.0.0.1:{refusing.getsockname()[1]}"
        with pytest.raises(ConnectionLost, match="refused"):
            await opened(broker)


async def test_it_is_told_when_to_log_in_again(broker: ScriptedServer) -> None:
    broker.session_lifetimes_ms = [100_000]
    owner = await opened(broker)
    assert owner.upstream.login_due_ms == NOW + 90_000
    owner.upstream.abort()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("tls", [False, True])
def test_it_is_the_same_on_every_loop_and_over_tls(run: Callable[[Any], None], tls: bool, tmp_path: Path) -> None:
    """uvloop's transports and those of TLS are others."""
    ours = theirs = None
    if tls:
        root = authority("root")
        key = leaf("localhost", root)
        (tmp_path / "key.pem").write_text(key.key_pem() + key.chain_pem)
        theirs = server_context({"ssl.keystore.location": str(tmp_path / "key.pem")})
        ours = client_context({"ssl.truststore.certificates": root.certificate_pem})

    async def talk() -> None:
        broker = ScriptedServer(users={"alice": "wonder"}, session_lifetimes_ms=[100_000])
        async with broker.running(theirs):
            broker.address = broker.address.replace("127.0.0.1", "localhost")
            owner = await opened(broker, protocol="SASL_SSL" if tls else "SASL_PLAINTEXT", context=ours)
            gc.collect()
            await owner.upstream.reauthenticate(ALICE, owner.exchange)
            owner.upstream.pause_reading()
            owner.upstream.write(question())
            owner.upstream.resume_reading()
            await owner.frame()
            broker.drop_connections()
            await owner.until(lambda: bool(owner.lost))
            owner.upstream.pause_reading()
            owner.upstream.resume_reading()
            owner.upstream.abort()

    run(talk())


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_a_second_login_goes_over_the_owners_own_exchange(broker: ScriptedServer, mechanism: str) -> None:
    broker.session_lifetimes_ms = [100_000, 50_000]
    credentials = Credentials(mechanism, "alice", "wonder")
    owner = await opened(broker, credentials)
    await owner.upstream.reauthenticate(credentials, owner.exchange)
    assert broker.logins == ["alice", "alice"]
    assert owner.upstream.login_due_ms == NOW + 45_000
    await owner.upstream.reauthenticate(credentials, owner.exchange)
    assert owner.upstream.login_due_ms is None
    owner.upstream.write(question())
    await owner.frame()
    assert broker.connections == 1
    owner.upstream.abort()


async def test_a_second_login_that_is_refused_ends_the_connection(broker: ScriptedServer) -> None:
    owner = await opened(broker)
    with pytest.raises(LoginFailed):
        await owner.upstream.reauthenticate(Credentials("PLAIN", "alice", "wrong"), owner.exchange)
    assert owner.upstream._transport.is_closing()
    assert owner.lost == []


@pytest.mark.parametrize(
    ("happens", "expected"),
    [(b"", RequestTimedOut), (ConnectionError("it has gone"), ConnectionLost), (b"\0\0\0\7rubbish", UnexpectedAnswer)],
)
async def test_a_second_login_without_an_answer_ends_the_connection(
    broker: ScriptedServer, happens: bytes | Exception, expected: type[Exception]
) -> None:
    async def exchange(_correlation_id: int, _request: bytes) -> bytes:
        if isinstance(happens, Exception):
            raise happens
        if not happens:
            await asyncio.Event().wait()
        return happens

    owner = await opened(broker)
    owner.upstream._config = replace(owner.upstream._config, request_timeout_ms=50)
    with pytest.raises(expected):
        await owner.upstream.reauthenticate(ALICE, exchange)
    assert owner.upstream._transport.is_closing()


async def test_a_broker_that_hangs_up_is_told_once(broker: ScriptedServer) -> None:
    owner = await opened(broker)
    broker.scripts[ApiKey.API_VERSIONS] = lambda _header, _request: CLOSE
    owner.upstream.write(question())
    await owner.until(lambda: bool(owner.lost))
    assert owner.lost == [f"{broker.address}: it closed the connection"]
    owner.upstream.write(b"too late")
    owner.upstream.pause_reading()
    owner.upstream.resume_reading()
    owner.upstream.close()
    assert len(owner.lost) == 1


async def test_a_connection_that_breaks_is_told(broker: ScriptedServer) -> None:
    owner = await opened(broker)
    broker.drop_connections()
    await owner.until(lambda: bool(owner.lost))
    assert owner.lost[0].startswith(broker.address)


@pytest.mark.parametrize("end", [Upstream.close, Upstream.abort])
async def test_nothing_is_told_of_a_connection_that_the_owner_has_ended(
    broker: ScriptedServer, end: Callable[[Upstream], None]
) -> None:
    owner = await opened(broker)
    owner.upstream.write(question())
    end(owner.upstream)
    await asyncio.to_thread(eventually, lambda: not broker._open, WITHIN_S)
    assert (owner.received.buffered, owner.lost, owner.full) == (0, [], [])


async def test_what_is_written_before_a_close_still_goes_out(broker: ScriptedServer) -> None:
    owner = await opened(broker)
    asked = len(broker.requests)
    owner.upstream.write(question() * 3)
    owner.upstream.close()
    await asyncio.to_thread(eventually, lambda: len(broker.requests) >= asked + 3, WITHIN_S)


async def test_a_broker_that_does_not_read_is_told_and_so_is_when_it_does_again() -> None:
    stuck, gone = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        listed = build(
            APIS[ApiKey.API_VERSIONS].response[4], error_code=ErrorCode.none, api_keys=(), throttle_time=to_duration(0)
        )
        writer.write(frame(encode_response(ApiKey.API_VERSIONS, 4, 0, listed)))
        await stuck.wait()
        with suppress(ConnectionError):
            while await reader.read(1_000_000):
                pass
        writer.transport.abort()
        gone.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        there = ScriptedServer(address=f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        owner = await opened(there, None, protocol="PLAINTEXT")
        while not owner.full:
            owner.upstream.write(bytes(1_000_000))
        assert owner.full == [True]
        stuck.set()
        await owner.until(lambda: len(owner.full) == 2)
        assert owner.full == [True, False]
        owner.upstream.abort()
        await asyncio.wait_for(gone.wait(), WITHIN_S)


async def test_nothing_is_taken_while_reading_is_paused(broker: ScriptedServer) -> None:
    owner = await opened(broker)
    owner.upstream.pause_reading()
    asked = len(broker.requests)
    owner.upstream.write(question())
    await asyncio.to_thread(eventually, lambda: len(broker.requests) > asked, WITHIN_S)
    assert owner.received.buffered == 0
    owner.upstream.resume_reading()
    await owner.frame()
    owner.upstream.abort()


async def test_bytes_that_nobody_asked_for_are_not_handed_over(broker: ScriptedServer) -> None:
    answer = frame(
        encode_response(
            ApiKey.SASL_AUTHENTICATE,
            2,
            2,
            build(
                APIS[ApiKey.SASL_AUTHENTICATE].response[2],
                error_code=ErrorCode.none,
                error_message="",
                auth_bytes=b"",
                session_lifetime=to_duration(0),
            ),
        )
    )
    broker.scripts[ApiKey.SASL_AUTHENTICATE] = lambda _header, _request: answer + b"and more"
    with pytest.raises(ConnectionLost):
        await opened(broker, Credentials("PLAIN", "alice", "wonder"))
