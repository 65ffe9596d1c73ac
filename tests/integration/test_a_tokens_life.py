"""What a user does with a token, from outside: over a port, with ZooKeeper to look into.

The server may be a child process or one that runs elsewhere (see conftest.py).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import TYPE_CHECKING

import aiokafka.admin
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kafka_dt.client import (
    DelegationToken,
    LoginFailed,
    TokenAuthorizationFailed,
    TokenClient,
    TokenNotFound,
    TokenOwnerMismatch,
    TokenRequestNotAllowed,
    settings,
)
from kafka_dt.tokens import SecretKey
from tests.support.brokers.broker import SECRET_KEY, USERS
from tests.support.java.properties import SCRAM_MECHANISMS, plain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.integration.conftest import Addresses

DAY_MS = 86_400_000


def client_of(user: str, addresses: Addresses) -> TokenClient:
    return TokenClient.from_config({**plain(user, USERS[user]), "bootstrap.servers": addresses.bootstrap})


def java_client_of(made: DelegationToken, addresses: Addresses, mechanism: str = "SCRAM-SHA-256") -> TokenClient:
    """A client that logs in as Java's do with a token: with tokenauth."""
    return TokenClient.from_config(
        settings(
            made,
            "java",
            bootstrap_servers=addresses.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            mechanism=mechanism,
        )
    )


@pytest.fixture
async def alice(addresses: Addresses) -> AsyncIterator[TokenClient]:
    async with client_of("alice", addresses) as client:
        yield client


@pytest.fixture
async def bob(addresses: Addresses) -> AsyncIterator[TokenClient]:
    async with client_of("bob", addresses) as client:
        yield client


@pytest.fixture
def zookeeper(addresses: Addresses) -> Iterator[KazooClient]:
    client = KazooClient(hosts=addresses.zookeeper_connect)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.mark.client("kafka-dt", "tokens")
async def test_a_token_is_created_renewed_described_and_deleted(alice: TokenClient, bob: TokenClient) -> None:
    made = await alice.create(renewers=["User:bob"], max_lifetime_ms=2 * DAY_MS)
    assert (made.owner, made.requester, made.renewers) == ("User:alice", "User:alice", ("User:bob",))
    assert made.expiry_timestamp_ms == made.issue_timestamp_ms + DAY_MS
    assert await bob.renew(made.hmac, 7 * DAY_MS) == made.max_timestamp_ms
    (seen,) = [token for token in await bob.describe(["User:alice"]) if token.token_id == made.token_id]
    assert (seen.expiry_timestamp_ms, seen.hmac) == (made.max_timestamp_ms, made.hmac)
    await alice.expire(made.hmac)
    assert made.token_id not in {token.token_id for token in await alice.describe()}
    with pytest.raises(TokenNotFound):
        await alice.renew(made.hmac)


@pytest.mark.client("kafka-dt", "login")
@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
async def test_a_token_logs_in_but_makes_no_tokens(alice: TokenClient, addresses: Addresses, mechanism: str) -> None:
    made = await alice.create()
    async with java_client_of(made, addresses, mechanism) as holder:
        with pytest.raises(TokenRequestNotAllowed):
            await holder.create()


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
async def test_a_client_that_cannot_say_tokenauth_logs_in(
    alice: TokenClient, addresses: Addresses, mechanism: str
) -> None:
    made = await alice.create()
    pasted = settings(
        made,
        "aiokafka",
        bootstrap_servers=addresses.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        mechanism=mechanism,
    )
    admin = aiokafka.admin.AIOKafkaAdminClient(**dict(pasted))
    await admin.start()
    try:
        assert (await admin.describe_cluster())["brokers"]
    finally:
        await admin.close()


async def logs_in(client: TokenClient) -> bool:
    try:
        async with client:
            return True
    except LoginFailed:
        return False


async def test_a_deleted_token_logs_in_no_more_at_any_worker(alice: TokenClient, addresses: Addresses) -> None:
    for _ in range(10):
        made = await alice.create()
        assert await logs_in(java_client_of(made, addresses))
        await alice.expire(made.hmac)
        assert not await logs_in(java_client_of(made, addresses))


async def test_only_owner_and_renewers_change_a_token(alice: TokenClient, bob: TokenClient) -> None:
    made = await alice.create()
    with pytest.raises(TokenOwnerMismatch):
        await bob.renew(made.hmac)
    with pytest.raises(TokenOwnerMismatch):
        await bob.expire(made.hmac)
    await alice.expire(made.hmac)


async def test_a_wrong_password_is_refused(addresses: Addresses) -> None:
    wrong = {**plain("alice", "wrong"), "bootstrap.servers": addresses.bootstrap}
    assert not await logs_in(TokenClient.from_config(wrong))


async def test_a_token_is_in_zookeeper_in_kafkas_layout(alice: TokenClient, zookeeper: KazooClient) -> None:
    made = await alice.create(renewers=["User:b*b"])
    path = f"/delegation_token/tokens/{made.token_id}"
    assert json.loads(zookeeper.get(path)[0]) == {
        "version": 3,
        "owner": "User%3Aalice",
        "tokenRequester": "User%3Aalice",
        "renewers": ["User%3Ab%2Ab"],
        "issueTimestamp": made.issue_timestamp_ms,
        "maxTimestamp": made.max_timestamp_ms,
        "expiryTimestamp": made.expiry_timestamp_ms,
        "tokenId": made.token_id,
        "keyId": SecretKey(SECRET_KEY).id,
    }
    assert made.hmac == hmac.digest(SECRET_KEY.encode(), made.token_id.encode(), hashlib.sha512)
    assert made.hmac_base64 == base64.b64encode(made.hmac).decode()
    await alice.expire(made.hmac)
    with pytest.raises(NoNodeError):
        zookeeper.get(path)


async def test_every_worker_sees_a_token_at_once(alice: TokenClient, addresses: Addresses) -> None:
    """Each login is a new connection, which any worker may get."""
    for _ in range(20):
        made = await alice.create(max_lifetime_ms=60_000)
        assert made.max_timestamp_ms - time.time_ns() // 1_000_000 <= 60_000
        async with java_client_of(made, addresses):
            pass


async def test_a_token_for_another_needs_permission_or_none_is_asked_for(
    alice: TokenClient, addresses: Addresses
) -> None:
    """Both servers that these tests run with allow everyone where there is no ACL, as a broker with this setting."""
    try:
        made = await alice.create(owner="User:bob")
    except TokenAuthorizationFailed:
        pytest.skip("this server has ACLs, or asks for them")
    async with java_client_of(made, addresses):
        assert made.owner == "User:bob"
