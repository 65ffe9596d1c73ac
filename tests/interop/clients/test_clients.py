"""Clients of other languages at a node without a cluster: they log in with a token, and franz-go makes tokens, too."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator, Callable

import pytest

from kafka_dt.client import DelegationToken, TokenClient, TokenNotFound
from tests.interop.clients.programs import CLIENTS, ClientFailed, Program, login, seen
from tests.interop.conftest import Authority
from tests.support.brokers.broker import USERS, Broker
from tests.support.java.properties import SCRAM_MECHANISMS, plain
from tests.support.nodes.server import KafkaDt

KNOWN_WITHIN_S = 10.0
RENEWED_MS = 60_000
"""How long franz-go renews its token for."""
TOLERANCE_MS = 10_000

pytestmark = pytest.mark.soak


def alice_at(authority: Authority) -> TokenClient:
    return TokenClient.from_config({**plain("alice", USERS["alice"]), "bootstrap.servers": authority.sasl})


@pytest.fixture
async def alice(server: KafkaDt) -> AsyncIterator[TokenClient]:
    async with alice_at(server) as client:
        yield client


@pytest.fixture
async def token(alice: TokenClient) -> DelegationToken:
    return await alice.create(max_lifetime_ms=600_000)


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
@pytest.mark.parametrize("name", seen("login", *CLIENTS))
async def test_a_client_logs_in_with_a_token_and_lists_the_topics(
    program_of: Callable[[str], Program], server: KafkaDt, token: DelegationToken, name: str, mechanism: str
) -> None:
    assert program_of(name).ask("topics", login(server.sasl, token, mechanism)) == []


@pytest.mark.parametrize("name", CLIENTS)
async def test_a_client_with_a_wrong_secret_is_refused(
    program_of: Callable[[str], Program], server: KafkaDt, token: DelegationToken, name: str
) -> None:
    with pytest.raises(ClientFailed):
        program_of(name).ask("topics", login(server.sasl, token) | {"password": token.hmac_base64[::-1]})


@pytest.mark.parametrize("name", seen("tokens", "franz-go"))
async def test_a_client_creates_describes_renews_and_expires_a_token(
    program_of: Callable[[str], Program], server: KafkaDt, alice: TokenClient, name: str
) -> None:
    before_ms = time.time_ns() // 1_000_000
    with_password = {"servers": server.sasl, "mechanism": "PLAIN", "user": "alice", "password": USERS["alice"]}
    made = program_of(name).ask("tokens", with_password)
    assert (made["owner"], made["renewers"]) == ("User:alice", ["User:bob"])
    assert 0 <= made["issued_ms"] - before_ms < TOLERANCE_MS
    assert 0 <= made["renewed_ms"] - made["issued_ms"] - RENEWED_MS < TOLERANCE_MS
    assert 0 <= made["expired_ms"] - made["issued_ms"] < TOLERANCE_MS
    with pytest.raises(TokenNotFound):
        await alice.renew(base64.b64decode(made["hmac"]))


async def test_franz_go_says_tokenauth_so_a_broker_takes_the_token_as_well(
    program_of: Callable[[str], Program], broker: Broker, token: DelegationToken
) -> None:
    deadline = time.monotonic() + KNOWN_WITHIN_S
    async with alice_at(broker) as client:
        while token.token_id not in {each.token_id for each in await client.describe()}:
            assert time.monotonic() < deadline
    assert isinstance(program_of("franz-go").ask("topics", login(broker.sasl, token)), list)
