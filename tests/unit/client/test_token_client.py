"""TokenClient: what goes over the wire for each call, in every version, and what comes of the answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import (
    Address,
    ClientConfig,
    ConnectionLost,
    InvalidArgument,
    LoginMissing,
    NoServerReached,
    RequestRefused,
    RequestTimedOut,
    TokenClient,
    TokenExpired,
    UnsupportedByServer,
    parse_addresses,
)
from kafka_dt_protocol.api.registry import ApiKey, response_type
from kafka_dt_protocol.api.responses import element_type
from kafka_dt_protocol.wire.times import from_duration
from tests.support.protocol.scripted_server import CLOSE, ScriptedServer
from tests.unit.client.conftest import TOKEN, created, expiry, properties


def client_of(server: ScriptedServer) -> TokenClient:
    return TokenClient.from_config({"bootstrap.servers": server.address})


async def test_a_created_token_comes_back_whole(server: ScriptedServer) -> None:
    requests = server.record(ApiKey.CREATE_DELEGATION_TOKEN)
    async with client_of(server) as client:
        token = await client.create("User:alice", ["User:carol", "User:dave"], 123_456_789)
    assert token == TOKEN
    (request,) = requests
    assert (request.owner_principal_type, request.owner_principal_name) == ("User", "alice")
    assert [renewer.principal_name for renewer in request.renewers] == ["carol", "dave"]
    assert from_duration(request.max_lifetime) == 123_456_789


async def test_a_create_without_arguments_leaves_all_to_the_server(server: ScriptedServer) -> None:
    requests = server.record(ApiKey.CREATE_DELEGATION_TOKEN)
    async with client_of(server) as client:
        await client.create()
    (request,) = requests
    assert (request.owner_principal_type, request.owner_principal_name) == (None, None)
    assert request.renewers == ()
    assert from_duration(request.max_lifetime) == -1


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_older_servers_know_no_requester_and_no_owner_to_choose(server: ScriptedServer, version: int) -> None:
    server.versions[ApiKey.CREATE_DELEGATION_TOKEN] = (0, version)
    async with client_of(server) as client:
        token = await client.create(renewers=["User:carol"])
        assert (token.owner, token.requester) == ("User:alice", "User:alice")
        with pytest.raises(UnsupportedByServer, match="another owner"):
            await client.create("User:alice")
        # The refusal was ours: the connection is as good as before.
        await client.create()
    assert server.connections == 1
    assert (ApiKey.CREATE_DELEGATION_TOKEN, version) in server.requests


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_renew_and_expire_in_every_version(server: ScriptedServer, version: int) -> None:
    renewals = server.record(ApiKey.RENEW_DELEGATION_TOKEN)
    ends = server.record(ApiKey.EXPIRE_DELEGATION_TOKEN)
    server.versions[ApiKey.RENEW_DELEGATION_TOKEN] = server.versions[ApiKey.EXPIRE_DELEGATION_TOKEN] = (0, version)
    async with client_of(server) as client:
        assert await client.renew(TOKEN.hmac, 60_000) == 7_000_000
        assert await client.renew(TOKEN.hmac) == 7_000_000
        assert await client.expire(TOKEN.hmac, 1) == 8_000_000
        assert await client.expire(TOKEN.hmac) == 8_000_000
    assert [(request.hmac, from_duration(request.renew_period)) for request in renewals] == [
        (TOKEN.hmac, 60_000),
        (TOKEN.hmac, -1),
    ]
    assert [from_duration(request.expiry_time_period) for request in ends] == [1, -1]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
async def test_described_tokens_come_back_whole_in_every_version(server: ScriptedServer, version: int) -> None:
    server.versions[ApiKey.DESCRIBE_DELEGATION_TOKEN] = (0, version)
    server.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = _described
    requests = server.record(ApiKey.DESCRIBE_DELEGATION_TOKEN)
    async with client_of(server) as client:
        (token,) = await client.describe(["User:alice", "Group:x"])
        await client.describe()
        await client.describe([])
    assert token.requester == ("User:boss" if version == 3 else "User:alice")
    assert (token.token_id, token.owner, token.renewers) == (TOKEN.token_id, TOKEN.owner, TOKEN.renewers)
    assert (token.issue_timestamp_ms, token.expiry_timestamp_ms, token.max_timestamp_ms) == (
        TOKEN.issue_timestamp_ms,
        TOKEN.expiry_timestamp_ms,
        TOKEN.max_timestamp_ms,
    )
    assert token.hmac == TOKEN.hmac
    named = [(owner.principal_type, owner.principal_name) for owner in requests[0].owners]
    assert named == [("User", "alice"), ("Group", "x")]
    assert requests[1].owners is None
    assert requests[2].owners == ()


def _described(header: Any, _request: Any) -> dict[str, Any]:
    kind: Any = element_type(response_type(header), "tokens")
    renewer: Any = element_type(kind, "renewers")
    values = created() | {
        "issue_timestamp": TOKEN.issue_timestamp_ms,
        "expiry_timestamp": TOKEN.expiry_timestamp_ms,
        "max_timestamp": TOKEN.max_timestamp_ms,
        "renewers": tuple(renewer(principal_type="User", principal_name=name) for name in ("carol", "dave")),
    }
    known = kind.__dataclass_fields__
    token = kind(**{name: value for name, value in values.items() if name in known})
    return {"error_code": ErrorCode.none, "tokens": (token,)}


async def test_a_refusal_is_typed_and_leaves_the_connection_usable(server: ScriptedServer) -> None:
    server.scripts[ApiKey.RENEW_DELEGATION_TOKEN] = lambda _header, _request: {
        **expiry(-1),
        "error_code": ErrorCode.delegation_token_expired,
    }
    async with client_of(server) as client:
        with pytest.raises(TokenExpired, match=r"renew refused: .*66"):
            await client.renew(TOKEN.hmac)
        await client.describe()
    assert server.connections == 1


async def test_an_error_without_a_type_of_its_own_is_a_refusal(server: ScriptedServer) -> None:
    server.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = lambda _header, _request: {
        "error_code": ErrorCode.unknown_server_error,
        "tokens": (),
    }
    async with client_of(server) as client:
        with pytest.raises(RequestRefused) as caught:
            await client.describe()
    assert caught.value.code is ErrorCode.unknown_server_error


async def test_what_cannot_be_sent_is_refused_before_anything_is_sent(server: ScriptedServer) -> None:
    async with client_of(server) as client:
        for principal in ("alice", "User:" + "x" * 40_000, "User:\ud800"):
            with pytest.raises(InvalidArgument):
                await client.create(principal)
        await client.create()
    assert server.connections == 1
    assert server.requests.count((ApiKey.CREATE_DELEGATION_TOKEN, 3)) == 1


async def test_a_connection_that_died_idle_is_made_again(server: ScriptedServer) -> None:
    async with client_of(server) as client:
        for call in (client.describe, lambda: client.renew(TOKEN.hmac)):
            server.drop_connections()
            await call()
    assert server.connections >= 2


async def test_a_repeatable_request_is_sent_again_after_a_loss_and_a_create_is_not(server: ScriptedServer) -> None:
    hang_ups = 1

    def hang_up_once(_header: Any, _request: Any) -> Any:
        nonlocal hang_ups
        hang_ups -= 1
        return CLOSE if hang_ups >= 0 else {"error_code": ErrorCode.none, "tokens": ()}

    server.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = hang_up_once
    server.scripts[ApiKey.CREATE_DELEGATION_TOKEN] = lambda _header, _request: CLOSE
    async with client_of(server) as client:
        assert await client.describe() == []
        with pytest.raises(ConnectionLost):
            await client.create()
    assert server.requests.count((ApiKey.CREATE_DELEGATION_TOKEN, 3)) == 1


async def test_a_fresh_connection_that_breaks_is_not_tried_for_ever(server: ScriptedServer) -> None:
    server.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = lambda _header, _request: CLOSE
    client = client_of(server)
    with pytest.raises(ConnectionLost, match="if that listener wants a login by SASL"):
        await client.describe()
    assert server.connections == 1
    await client.close()


async def test_hanging_up_for_the_second_time_is_explained_as_well(server: ScriptedServer) -> None:
    """As a SASL listener does with a client that has not logged in: it tells its versions, and then hangs up."""
    server.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = lambda _header, _request: CLOSE
    async with client_of(server) as client:
        with pytest.raises(LoginMissing, match=r"set security\.protocol"):
            await client.describe()
    assert server.connections == 2


async def test_hanging_up_on_a_token_is_explained(server: ScriptedServer) -> None:
    """As a broker does when the token has expired but was not purged yet: the login succeeds, nothing after it."""
    server.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = lambda _header, _request: CLOSE
    server.users[TOKEN.token_id] = TOKEN.hmac_base64
    server.tokens = frozenset({TOKEN.token_id})
    as_token = properties(server, "SCRAM-SHA-256", TOKEN.token_id, TOKEN.hmac_base64, token=True)
    with pytest.raises(ConnectionLost, match="has the token expired"):
        await TokenClient.from_config(as_token).describe()
    with pytest.raises(ConnectionLost, match=r"instead of answering$"):
        await TokenClient.from_config(properties(server)).describe()


async def test_a_slow_answer_is_told_as_it_is(server: ScriptedServer) -> None:
    server.scripts[ApiKey.DESCRIBE_DELEGATION_TOKEN] = lambda _header, _request: b""
    impatient = {"bootstrap.servers": server.address, "request.timeout.ms": "50"}
    with pytest.raises(RequestTimedOut, match=r"no answer within 50 ms \(request.timeout.ms\)$"):
        await TokenClient.from_config(impatient).describe()


async def test_calls_of_several_tasks_take_turns(server: ScriptedServer) -> None:
    async with client_of(server) as client:
        expiries = await asyncio.gather(*(client.renew(TOKEN.hmac, period) for period in range(20)))
    assert expiries == [7_000_000] * 20
    assert server.connections == 1


async def test_a_closed_client_connects_again_when_called(server: ScriptedServer) -> None:
    client = client_of(server)
    await client.describe()
    await client.close()
    await client.close()
    await client.describe()
    await client.close()
    assert server.connections == 2


async def test_the_servers_can_be_others_for_each_connection(server: ScriptedServer) -> None:
    servers: list[Address] = []
    client = TokenClient(ClientConfig(bootstrap_servers=(Address("127.0.0.1", 1),)), servers=lambda: servers)
    with pytest.raises(NoServerReached):
        await client.create()
    servers += parse_addresses(server.address)
    assert (await client.create()).token_id == TOKEN.token_id
    await client.close()


async def test_a_text_is_no_list_of_principals(server: ScriptedServer) -> None:
    client = client_of(server)
    with pytest.raises(InvalidArgument, match=r"give a list: renewers=\['User:bob'\]"):
        await client.create(renewers="User:bob")
    with pytest.raises(InvalidArgument, match=r"give a list: owners=\['User:bob'\]"):
        await client.describe("User:bob")
    assert server.connections == 0


@pytest.mark.parametrize(
    ("hmac", "way_out"),
    [(TOKEN, r"token\.hmac$"), (TOKEN.hmac_base64, r"hmac_from_base64\(text\)$"), (7, "of the type int")],
)
async def test_what_is_no_raw_hmac_is_refused_with_the_way_out(server: ScriptedServer, hmac: Any, way_out: str) -> None:
    client = client_of(server)
    for change in (client.renew, client.expire):
        with pytest.raises(InvalidArgument, match=way_out) as caught:
            await change(hmac)
        assert TOKEN.hmac_base64 not in str(caught.value)
    assert server.connections == 0
