"""A gateway that relays logins: whose connection upstream is whose, and how many there may be."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import MappingProxyType
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import ConnectionLost
from kafka_dt.client.login import Channel
from kafka_dt.config import Endpoint, Listener, MechanismSettings, SecurityProtocol
from kafka_dt.gateway.relay import LoginsUnderWay
from kafka_dt.identity.login.login import Login
from kafka_dt.identity.mechanisms import Accounts, OpenMechanism
from kafka_dt.identity.mechanisms.relayed import RelayedPlain
from kafka_dt.server.handlers import Handler, RequestContext
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.sasl import StepResult
from tests.support.server.fake_gateway import JOIN_GROUP, FakeUpstream, GatewayShell, request
from tests.support.server.fake_transport import NOW, turns

ADDRESS = "192.0.2.1"
LISTENER = Listener(
    bind=Endpoint("SASL", "", 0),
    advertised=Endpoint("SASL", "", 0),
    security_protocol=SecurityProtocol.SASL_PLAINTEXT,
    mechanisms=MappingProxyType({"PLAIN": MechanismSettings(None)}),
)
unused = cast("Any", None)


def shell(
    logins: LoginsUnderWay,
    *,
    makes_its_tokens: bool = False,
    exchange: type[RelayedPlain] = RelayedPlain,
    handler: Handler = unused,
) -> GatewayShell:
    def new_login(_listener: Listener) -> Login:
        return Login({"PLAIN": OpenMechanism(exchange)}, Accounts(unused, unused), lambda: NOW)

    return GatewayShell(
        handler, listener=LISTENER, new_login=new_login, relayed=logins, makes_its_tokens=makes_its_tokens
    )


def log_in(client: GatewayShell) -> None:
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"\0alice\0secret")


async def test_requests_go_over_the_connection_on_which_the_client_has_logged_in() -> None:
    client = shell(LoginsUnderWay(1))
    log_in(client)
    upstream = await client.upstream()
    for _ in range(2):  # the handshake and the message
        upstream.answer(1_000)
        await turns()
    assert [answer.error_code.value for answer in client.answers()] == [0, 0]
    upstream.written.clear()
    client.send(request(JOIN_GROUP, 5))
    await turns()
    assert len(client.connector.made) == 1
    assert upstream.written == request(JOIN_GROUP, 5)


@pytest.mark.parametrize("makes_its_tokens", [True, False])
async def test_where_tokens_are_the_clusters_they_are_asked_for_on_the_connection_of_the_clients_login(
    makes_its_tokens: bool,
) -> None:
    client = shell(LoginsUnderWay(1), makes_its_tokens=makes_its_tokens)
    assert client.connection.own_upstream is None
    log_in(client)
    upstream = await client.upstream()
    for _ in range(2):
        upstream.answer(1_000)
        await turns()
    upstream.written.clear()
    own = cast("Channel | None", client.connection.own_upstream)
    assert (own is not None) is makes_its_tokens
    if own is not None:
        asking = asyncio.create_task(own.request(ApiKey.CREATE_DELEGATION_TOKEN))
        await turns()
        assert upstream.written == request(ApiKey.CREATE_DELEGATION_TOKEN, 1_000)
        upstream.answer(1_000)
        await asking
        assert len(client.answers()) == 2, "the client gets nothing of it"
        client.connection.connection_lost(None)
        with pytest.raises(ConnectionLost):
            await own.request(ApiKey.CREATE_DELEGATION_TOKEN)


async def test_a_broker_that_goes_during_a_login_ends_the_client_without_an_answer() -> None:
    client = shell(LoginsUnderWay(1))
    log_in(client)
    upstream = await client.upstream()
    upstream.listener.upstream_lost("it closed the connection")
    await turns()
    assert client.connection.closing
    assert len(client.answers()) == 1, "the handshake's"


async def logged_in(**parts: Any) -> tuple[GatewayShell, FakeUpstream]:
    """A client of a gateway in front of the cluster that keeps the tokens."""
    client = shell(LoginsUnderWay(1), makes_its_tokens=True, **parts)
    log_in(client)
    upstream = await client.upstream()
    for _ in range(2):
        upstream.answer(1_000)
        await turns()
    assert len(client.answers()) == 2
    return client, upstream


def expire(client: GatewayShell) -> None:
    client.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, hmac=b"", expiry_time_period=timedelta(milliseconds=-1))


async def test_a_broker_that_goes_during_a_request_about_tokens_ends_the_client_behind_the_answer() -> None:
    """The connection that is lost was the client's own: what it asks for next could never be answered."""

    async def ask_upstream(context: RequestContext, body: Any) -> Any:
        with pytest.raises(ConnectionLost):
            await cast("Channel", context.own).request(ApiKey.EXPIRE_DELEGATION_TOKEN)
        return context.refusal(body, ErrorCode.request_timed_out)

    client, upstream = await logged_in(handler=ask_upstream)
    expire(client)
    client.send(request(JOIN_GROUP, 5))
    await turns()
    assert upstream.written.endswith(request(ApiKey.EXPIRE_DELEGATION_TOKEN, 1_000))
    upstream.listener.upstream_lost("it closed the connection")
    await turns()
    assert [answer.error_code for answer in client.answers()] == [ErrorCode.request_timed_out]
    assert client.connection.closing


async def test_a_request_about_tokens_whose_connection_goes_before_it_is_served_is_not_made_as_the_gateway() -> None:
    served = asyncio.Event()

    async def ask_upstream(context: RequestContext, body: Any) -> Any:
        with pytest.raises(ConnectionLost):
            await cast("Channel", context.own).request(ApiKey.EXPIRE_DELEGATION_TOKEN)
        served.set()
        return context.refusal(body, ErrorCode.request_timed_out)

    client, upstream = await logged_in(handler=ask_upstream)
    expire(client)
    upstream.listener.upstream_lost("it closed the connection")
    async with asyncio.timeout(60):
        await served.wait()


async def test_a_broker_that_does_not_answer_a_request_about_tokens_in_time_is_left_behind_the_answer() -> None:
    """The next request about tokens, perhaps a revocation, would wait for the answer to this one."""

    async def ask_upstream(context: RequestContext, body: Any) -> Any:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await cast("Channel", context.own).request(ApiKey.EXPIRE_DELEGATION_TOKEN)
        return context.refusal(body, ErrorCode.request_timed_out)

    client, upstream = await logged_in(handler=ask_upstream)
    expire(client)
    await turns()
    assert [answer.error_code for answer in client.answers()] == [ErrorCode.request_timed_out]
    assert client.connection.closing
    assert upstream.aborted


async def test_a_client_that_goes_during_a_login_takes_the_connection_upstream_with_it() -> None:
    logins = LoginsUnderWay(1)
    client = shell(logins)
    log_in(client)
    upstream = await client.upstream()
    client.connection.connection_lost(None)
    assert upstream.closed
    await turns()
    assert client.connection.requests.task is None, "nothing waits for an answer that cannot come"
    another = shell(logins)
    log_in(another)
    assert not (await another.upstream()).closed


async def test_a_client_that_goes_while_its_connection_upstream_is_made_calls_that_off() -> None:
    """Otherwise an address could have any number of them under way: the next client takes its place."""
    client = shell(LoginsUnderWay(1))
    client.connector.open.clear()
    log_in(client)
    await turns()
    assert client.connector.asked == 1
    client.connection.connection_lost(None)
    await turns()
    assert client.connection.requests.task is None
    client.connector.open.set()
    await turns()
    assert not client.connector.made


async def test_a_client_that_goes_before_its_login_is_passed_on_takes_no_place() -> None:
    """A name that may be a token's is looked for first, which takes a while; a place taken after that stays taken."""
    looked_for = asyncio.Event()

    class LookingFirst(RelayedPlain):
        async def _pass_on(self, message: bytes) -> StepResult:
            await looked_for.wait()
            return await super()._pass_on(message)

    logins = LoginsUnderWay(1)
    client = shell(logins, exchange=LookingFirst)
    log_in(client)
    await turns()
    client.connection.connection_lost(None)
    looked_for.set()
    await turns()
    assert client.connection.requests.task is None
    assert not client.connector.asked
    another = shell(logins)
    log_in(another)
    assert not (await another.upstream()).closed


async def test_an_address_with_too_many_logins_under_way_gets_no_further_connection_upstream() -> None:
    logins = LoginsUnderWay(1)
    first, second = shell(logins), shell(logins)
    log_in(first)
    upstream = await first.upstream()
    log_in(second)
    await turns()
    assert second.connection.closing
    assert not second.connector.made
    for _ in range(2):
        upstream.answer(1_000)
        await turns()
    third = shell(logins)
    log_in(third)
    assert not (await third.upstream()).closed, "the first one has logged in"
