"""One connection: versions, answers that do not fit, silence, and hanging up."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from kafka_dt.client import (
    ConnectionLost,
    NoServerReached,
    RequestTimedOut,
    TokenClient,
    TokenClientError,
    UnexpectedAnswer,
    UnsupportedByServer,
)
from kafka_dt.client.config import Address, ClientConfig, parse_addresses
from kafka_dt.client.connection import Connection
from kafka_dt.client.requests import Requests, Sent
from kafka_dt.kraft.session import session as kafka_session
from kafka_dt.tokens import DelegationToken
from kafka_dt_protocol.api.registry import APIS, ApiKey
from kafka_dt_protocol.wire.frames import frame
from kafka_dt_protocol.wire.proxy_header import proxy_header
from tests.support.processes.ports import free_ports
from tests.support.protocol.scripted_server import CLOSE, ScriptedServer
from tests.support.tokens.scripted_cluster import ScriptedCluster
from tests.support.tokens.store_contract import new_token

LOCAL = proxy_header(None, None)


async def connect(server: ScriptedServer) -> Connection:
    (address,) = addresses = parse_addresses(server.address)
    config = ClientConfig(
        bootstrap_servers=addresses, client_id="test", setup_timeout_ms=5_000, request_timeout_ms=5_000
    )
    return await Connection.open(address, config)


@pytest.mark.parametrize("newest", range(5))
async def test_older_servers_are_asked_again_in_a_version_of_theirs(server: ScriptedServer, newest: int) -> None:
    server.versions[ApiKey.API_VERSIONS] = (0, newest)
    connection = await connect(server)
    asked = [version for api, version in server.requests if api is ApiKey.API_VERSIONS]
    assert asked == ([4] if newest == 4 else [4, newest])
    assert connection.version(ApiKey.CREATE_DELEGATION_TOKEN) == 3
    await connection.close()


async def test_the_whole_answer_about_versions_stays_with_the_connection(server: ScriptedServer) -> None:
    server.versions[ApiKey.METADATA] = (5, 9)
    connection = await connect(server)
    listed = {key.api_key: (key.min_version, key.max_version) for key in connection.api_versions.api_keys}
    assert listed == server.versions
    await connection.close()


async def test_a_session_goes_to_another_server_when_its_connection_has_ended(server: ScriptedServer) -> None:
    async with ScriptedServer().running() as other:
        config = ClientConfig(bootstrap_servers=parse_addresses(f"{server.address},{other.address}"))
        session = kafka_session(config)
        servers = []
        for _ in range(4):
            connection = await session.ready()
            servers.append(connection.server)
            connection.abort()
        await session.close()
    assert servers[0] != servers[1]
    assert servers[2:] == servers[:2]


async def test_a_session_goes_back_to_its_server_if_no_other_answers(server: ScriptedServer) -> None:
    config = ClientConfig(bootstrap_servers=parse_addresses(f"{server.address},127.0.0.1:{free_ports(1)}"))
    session = kafka_session(config)
    for _ in range(3):
        connection = await session.ready()
        assert connection.server == server.address
        connection.abort()
    await session.close()


@pytest.mark.parametrize(("tokens", "elsewhere"), [(1, False), (1_000, True)])
async def test_a_long_answer_is_decoded_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, *, tokens: int, elsewhere: bool
) -> None:
    threads: list[threading.Thread] = []
    decode = Requests.decode

    def noted(requests: Requests, sent: Sent, content: bytes) -> object:
        threads.append(threading.current_thread())
        return decode(requests, sent, content)

    async with ScriptedCluster().running() as cluster:
        made = [DelegationToken(new_token(), bytes(64)) for _ in range(tokens)]
        cluster.described = {each.token.token_id: each for each in made}
        connection = await connect(cluster.server)
        monkeypatch.setattr(Requests, "decode", noted)
        answer = await connection.request(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None)
        await connection.close()
    assert [each.token_id for each in answer.tokens] == list(cluster.described)
    assert [each is not threading.current_thread() for each in threads] == [elsewhere]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_server_that_vanishes_without_a_word_is_noticed_by_the_system(run: Callable[[Any], None]) -> None:
    async def look() -> None:
        scripted = ScriptedServer()
        async with scripted.running():
            connection = await connect(scripted)
            sock = connection._link.transport.get_extra_info("socket")
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            await connection.close()

    run(look())


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("host", ["kafka..example", f"{'a' * 64}.example"])
def test_a_host_whose_name_no_resolver_takes_is_out_of_reach(run: Callable[[Any], None], host: str) -> None:
    async def look() -> None:
        config = ClientConfig(bootstrap_servers=(Address(host, 9092),))
        with pytest.raises(ConnectionLost, match="cannot be the name of a host"):
            await Connection.open(config.bootstrap_servers[0], config)

    run(look())


async def test_a_preamble_is_in_front_of_the_first_request() -> None:
    received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.set_result(await reader.readexactly(len(LOCAL) + 4))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as proxy:
        host, port = proxy.sockets[0].getsockname()
        config = ClientConfig(bootstrap_servers=(Address(host, port),), client_id="test", preamble=LOCAL)
        with pytest.raises(ConnectionLost):
            await Connection.open(Address(host, port), config)
    header, length = (await received)[: len(LOCAL)], (await received)[len(LOCAL) :]
    assert header == LOCAL
    assert 0 < int.from_bytes(length) < 100, "a frame follows"


async def test_a_server_that_knows_no_version_of_api_versions_is_given_up(server: ScriptedServer) -> None:
    refusal = struct.pack(">ihi", 0, ErrorCode.unsupported_version, 0)
    again = struct.pack(">ihi", 1, ErrorCode.unsupported_version, 0)
    answers = [frame(refusal), frame(again)]
    server.scripts[ApiKey.API_VERSIONS] = lambda _header, _request: answers.pop(0)
    with pytest.raises(UnexpectedAnswer, match="unsupported_version"):
        await connect(server)


async def test_the_highest_version_that_both_know_is_spoken(server: ScriptedServer) -> None:
    server.versions[ApiKey.RENEW_DELEGATION_TOKEN] = (1, 1)
    server.versions[ApiKey.EXPIRE_DELEGATION_TOKEN] = (1, 9)
    server.versions[ApiKey.DESCRIBE_DELEGATION_TOKEN] = (8, 9)
    del server.versions[ApiKey.CREATE_DELEGATION_TOKEN]
    connection = await connect(server)
    assert connection.version(ApiKey.RENEW_DELEGATION_TOKEN) == 1
    assert connection.version(ApiKey.EXPIRE_DELEGATION_TOKEN) == APIS[ApiKey.EXPIRE_DELEGATION_TOKEN].max_version
    with pytest.raises(UnsupportedByServer, match="it has versions 8 to 9"):
        connection.version(ApiKey.DESCRIBE_DELEGATION_TOKEN)
    with pytest.raises(UnsupportedByServer, match=r"CreateDelegationToken .*it has none"):
        connection.version(ApiKey.CREATE_DELEGATION_TOKEN)
    await connection.close()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (frame(struct.pack(">i", 7) + b"\0" * 40), "answer 7 came where 1 was due"),
        (frame(struct.pack(">ih", 1, 0)), "not Kafka's protocol"),
        (frame(b""), "not Kafka's protocol"),
        (b"\xff\xff\xff\xff", "frame length -1"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "frame length 1213486160"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "the server speaks TLS"),
    ],
)
async def test_an_answer_that_does_not_fit_ends_the_connection(
    server: ScriptedServer, answer: bytes, reason: str
) -> None:
    server.scripts[ApiKey.SASL_HANDSHAKE] = lambda _header, _request: answer
    connection = await connect(server)
    with pytest.raises(UnexpectedAnswer, match=reason):
        await connection.request(ApiKey.SASL_HANDSHAKE, mechanism="PLAIN")
    assert not connection.usable


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(answer=st.binary(min_size=1, max_size=60))
def test_any_bytes_are_an_answer_or_a_typed_error(answer: bytes) -> None:
    async def greet() -> None:
        server = ScriptedServer(greeting=frame(struct.pack(">i", 0) + answer))
        async with server.running():
            with suppress(TokenClientError):
                await (await connect(server)).close()

    asyncio.run(greet())


async def test_hanging_up_instead_of_answering_is_told(server: ScriptedServer) -> None:
    server.scripts[ApiKey.SASL_HANDSHAKE] = lambda _header, _request: CLOSE
    connection = await connect(server)
    with pytest.raises(ConnectionLost, match="closed the connection"):
        await connection.request(ApiKey.SASL_HANDSHAKE, mechanism="PLAIN")
    assert not connection.usable


async def test_silence_is_not_waited_for_longer_than_allowed(server: ScriptedServer) -> None:
    server.scripts[ApiKey.SASL_HANDSHAKE] = lambda _header, _request: b""
    connection = await connect(server)
    connection._request_timeout_ms = 30  # not before: a busy machine takes longer to connect
    with pytest.raises(RequestTimedOut, match="30 ms") as caught:
        await connection.request(ApiKey.SASL_HANDSHAKE, mechanism="PLAIN")
    assert caught.value.timeout_ms == 30
    assert not connection.usable


async def test_a_cancelled_request_ends_the_connection(server: ScriptedServer) -> None:
    asked = asyncio.Event()

    def silent(_header: object, _request: object) -> bytes:
        asked.set()
        return b""

    server.scripts[ApiKey.SASL_HANDSHAKE] = silent
    connection = await connect(server)
    task = asyncio.create_task(connection.request(ApiKey.SASL_HANDSHAKE, mechanism="PLAIN"))
    await asyncio.wait_for(asked.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not connection.usable


async def test_every_bootstrap_server_is_tried_and_the_first_that_answers_taken(server: ScriptedServer) -> None:
    with socket.socket() as refusing, socket.socket() as silent:
        refusing.bind(("127.0.0.1", 0))
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        refused = f"127.0.0.1:{refusing.getsockname()[1]}"
        unanswered = f"127.0.0.1:{silent.getsockname()[1]}"
        impatient = {"request.timeout.ms": "50"}
        both = {"bootstrap.servers": f"{refused},{unanswered}"} | impatient
        with pytest.raises(NoServerReached) as caught:
            await TokenClient.from_config(both).__aenter__()
        assert [tried for tried, _ in caught.value.reasons] == [refused, unanswered]
        assert "refused" in caught.value.reasons[0][1]
        assert "50 ms" in caught.value.reasons[1][1]
        third = {"bootstrap.servers": f"{refused},{unanswered},{server.address}"} | impatient
        async with TokenClient.from_config(third) as client:
            assert await client.describe() == []


async def test_a_name_that_does_not_resolve_is_told() -> None:
    with pytest.raises(NoServerReached, match=r"no-such-host\.invalid:9092"):
        await TokenClient.from_config({"bootstrap.servers": "no-such-host.invalid:9092"}).__aenter__()


async def test_a_tls_handshake_that_nobody_answers_is_not_waited_for_longer_than_allowed() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        impatient = {
            "bootstrap.servers": f"127.0.0.1:{silent.getsockname()[1]}",
            "security.protocol": "SSL",
            "socket.connection.setup.timeout.ms": "50",
        }
        with pytest.raises(NoServerReached, match=r"no connection within 50 ms \(socket\.connection\.setup"):
            await TokenClient.from_config(impatient).__aenter__()


async def test_an_answer_in_pieces_is_put_together(server: ScriptedServer) -> None:
    """Larger than any buffer on the way, so it arrives in many reads."""
    names = tuple("x" * 30_000 for _ in range(50))
    server.scripts[ApiKey.SASL_HANDSHAKE] = lambda _header, _request: {
        "error_code": ErrorCode.none,
        "mechanisms": names,
    }
    connection = await connect(server)
    answer = await connection.request(ApiKey.SASL_HANDSHAKE, mechanism="PLAIN")
    assert answer.mechanisms == names
    await connection.close()


async def test_an_answer_can_stay_undecoded_and_is_the_same_bytes_while_nothing_changes(server: ScriptedServer) -> None:
    code = ErrorCode.none
    server.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = lambda *_: {"error_code": code, "tokens": ()}
    connection = await connect(server)
    first, second = [
        await connection.request_undecoded(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None) for _ in range(2)
    ]
    assert first == second
    code = ErrorCode.delegation_token_auth_disabled
    third = await connection.request_undecoded(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None)
    assert third[1:3] == code.value.to_bytes(2)
    await connection.close()


def test_a_request_on_a_connection_that_has_ended_is_refused_whatever_the_event_loop() -> None:
    """A transport of uvloop raises a RuntimeError, one of asyncio does nothing."""

    async def ask() -> None:
        async with ScriptedServer().running() as server:
            connection = await connect(server)
            connection._link.transport.abort()
            with pytest.raises(ConnectionLost):
                await connection.request(ApiKey.SASL_HANDSHAKE, mechanism="PLAIN")

    for new_event_loop in (uvloop.new_event_loop, asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(ask())


async def test_versions_and_features_can_be_asked_for_again(server: ScriptedServer) -> None:
    connection = await connect(server)
    server.features = lambda: {"finalized_features_epoch": 7}
    assert (await connection.ask_versions()).finalized_features_epoch == 7
    assert connection.api_versions.finalized_features_epoch == 7
    await connection.close()
