"""A client that logged in with a token of the cluster logs in there with it, and as nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from kafka_dt.client import Address, ClientConfig, Credentials, LoginFailed, SecurityProtocol, parse_addresses
from kafka_dt.gateway.connecting import Connector
from kafka_dt.gateway.identities import NoIdentity, OneForAll
from kafka_dt.gateway.own_tokens import OwnTokens
from kafka_dt.gateway.upstream import Exchange, Upstream
from kafka_dt.identity.login.login import Identity
from kafka_dt.tokens import CachedToken, DelegationToken, Principal
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.protocol.scripted_server import ScriptedServer
from tests.support.server.fake_gateway import JOIN_GROUP, GatewayShell, request
from tests.support.server.fake_transport import FakeLogin, turns
from tests.support.tokens.store_contract import new_token
from tests.unit.gateway.test_connecting import Silent

ALICE = Principal.user("alice")
TOKEN_ID = "W23eVbJOQheJ-v0f6A8uRg"
HELD = CachedToken(DelegationToken(new_token(token_id=TOKEN_ID), bytes(range(64))), 0, None, keyed=False)

PASSWORD = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw=="
OTHERS = OneForAll(lambda: Credentials("PLAIN", "gateway", "secret"))


OF_ZOOKEEPER = replace(HELD, keyed=True)


def own_tokens(now_ms: int = HELD.token.issue_timestamp_ms + 60_000, held: CachedToken = HELD) -> OwnTokens:
    return OwnTokens({TOKEN_ID: held}.get, ScramMechanism.SHA_512, now_ms=lambda: now_ms)


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer(users={TOKEN_ID: PASSWORD, "gateway": "secret"}, tokens=frozenset({TOKEN_ID}))
    async with scripted.running():
        yield scripted


def config(broker: ScriptedServer) -> ClientConfig:
    return ClientConfig(
        bootstrap_servers=parse_addresses(broker.address),
        security_protocol=SecurityProtocol.SASL_PLAINTEXT,
        credentials=Credentials("PLAIN", "gateway", "secret"),
    )


async def connect(broker: ScriptedServer, own: OwnTokens | None, token_id: str | None) -> Upstream:
    connector = Connector(config(broker), OTHERS, own_tokens=own)

    def addresses() -> tuple[Address, ...]:
        return parse_addresses(broker.address)

    return await connector.connect(ALICE, addresses, Silent(), token_id)


def test_the_login_is_the_tokens_and_may_not_be_known_to_every_broker_at_once() -> None:
    login = own_tokens().login(ALICE, TOKEN_ID)
    assert login is not None
    assert login.credentials == Credentials("SCRAM-SHA-512", TOKEN_ID, PASSWORD, token_auth=True)
    assert login.known_by_ms == HELD.token.issue_timestamp_ms + 5_000
    early = own_tokens(now_ms=7).login(ALICE, TOKEN_ID)
    assert early is not None
    assert early.known_by_ms == 5_007, "by the clock that is behind"
    assert PASSWORD not in repr(login)


async def test_a_token_that_has_ended_logs_in_as_nothing(broker: ScriptedServer) -> None:
    ended = new_token().token_id
    with pytest.raises(NoIdentity, match=f"its token {ended} has ended"):
        await connect(broker, own_tokens(), ended)
    assert broker.connections == 0


def test_the_token_of_an_owner_of_another_type_logs_in_as_nothing() -> None:
    """A broker would let it in as the user of that name."""
    with pytest.raises(NoIdentity, match="brokers take the owner of a token for a User"):
        own_tokens().login(Principal("Group", "alice"), TOKEN_ID)


@pytest.mark.parametrize(
    ("own", "token_id", "user"),
    [
        (own_tokens(), TOKEN_ID, TOKEN_ID),
        (own_tokens(), None, "gateway"),
        (own_tokens(held=OF_ZOOKEEPER), TOKEN_ID, "gateway"),
        (None, TOKEN_ID, "gateway"),
    ],
)
async def test_who_has_logged_in_with_a_token_that_the_cluster_knows_logs_in_there_with_it(
    broker: ScriptedServer, own: OwnTokens | None, token_id: str | None, user: str
) -> None:
    upstream = await connect(broker, own, token_id)
    assert broker.logins == [user]
    upstream.abort()


async def test_a_refused_token_is_not_replaced_by_another_login(broker: ScriptedServer) -> None:
    broker.users[TOKEN_ID] = "another"
    with pytest.raises(LoginFailed):
        await connect(broker, own_tokens(), TOKEN_ID)
    assert broker.logins == []


async def test_a_second_login_is_with_the_clients_token_again(broker: ScriptedServer) -> None:
    used: list[str] = []

    class Watched(Upstream):
        async def reauthenticate(self, credentials: Credentials, exchange: Exchange) -> None:
            assert exchange is no_exchange
            used.append(credentials.username)

    async def no_exchange(_correlation_id: int, _request: bytes) -> bytes:
        raise AssertionError

    (address,) = config(broker).bootstrap_servers
    upstream = await Watched(config(broker), Silent()).open(address, None)
    await Connector(config(broker), OTHERS, own_tokens=own_tokens()).log_in_again(
        ALICE, upstream, no_exchange, TOKEN_ID
    )
    assert used == [TOKEN_ID]
    upstream.abort()


@pytest.mark.parametrize("token_id", [None, TOKEN_ID])
async def test_a_connection_is_made_with_the_token_of_the_last_login(token_id: str | None) -> None:
    login = FakeLogin()
    login.identity = Identity(ALICE, ScramMechanism.SHA_256, token_id)
    shell = GatewayShell(new_login=lambda _: login)
    shell.send(request(JOIN_GROUP, 1))
    await turns()
    assert shell.connector.token_ids == [token_id]
