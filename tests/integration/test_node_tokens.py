"""Tokens on a node of two workers: whatever one connection has done is seen by the next, whichever worker it meets."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
import pytest_asyncio
from kazoo.client import KazooClient

from kafka_dt.client import (
    DelegationToken,
    InvalidPrincipalType,
    LoginFailed,
    TokenAuthorizationFailed,
    TokenClient,
    TokenExpired,
    TokenNotFound,
    TokenOwnerMismatch,
    TokenRequestNotAllowed,
    TokensDisabled,
)
from tests.support.nodes.node import ADMIN, SHA_256, SHA_512, Node, local_port, node_properties
from tests.support.protocol.raw import LoginRefused
from tests.support.zookeeper.server import make_chroot

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
CONNECTIONS = 8
TIMEOUT_S = 20


@pytest_asyncio.fixture
async def clients(node: Node) -> AsyncIterator[list[TokenClient]]:
    """Connections of alice, at least one to each worker."""
    async with AsyncExitStack() as stack:
        made: list[TokenClient] = []
        workers: set[int] = set()
        while len(made) < CONNECTIONS or (len(workers) < 2 and len(made) < 60):
            made.append(await stack.enter_async_context(node.client()))
            workers.add(await asyncio.to_thread(node.worker_of, local_port(made[-1])))
        assert workers == set(node.workers())
        yield made


@pytest.fixture
def kazoo(node: Node) -> Iterator[KazooClient]:
    client = KazooClient(hosts=node.zookeeper)
    client.start()
    yield client
    client.stop()
    client.close()


async def described(client: TokenClient, token: DelegationToken) -> DelegationToken | None:
    found = [each for each in await client.describe() if each.token_id == token.token_id]
    return found[0] if found else None


async def test_every_connection_sees_what_any_other_has_done(clients: list[TokenClient]) -> None:
    for turn in range(CONNECTIONS):
        create, see, renew, see_renewed, expire, see_gone, renew_gone, again = clients[turn:] + clients[:turn]
        token = await create.create(renewers=["User:bob"])
        assert await described(see, token) == token
        expiry = await renew.renew(token.hmac, HOUR)
        assert expiry < token.expiry_timestamp_ms
        renewed = await described(see_renewed, token)
        assert renewed is not None
        assert renewed.expiry_timestamp_ms == expiry
        await expire.expire(token.hmac)
        assert await described(see_gone, token) is None
        with pytest.raises(TokenNotFound):
            await renew_gone.renew(token.hmac)
        with pytest.raises(TokenNotFound):
            await again.expire(token.hmac)


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
async def test_a_new_token_logs_in_at_once_on_every_worker(node: Node, mechanism: str) -> None:
    async with node.client() as client:
        token = await client.create()
    seen: set[int] = set()
    for _ in range(60):
        async with node.token_client(token, mechanism) as by_token:
            seen.add(await asyncio.to_thread(node.worker_of, local_port(by_token)))
        if len(seen) == 2:
            break
    assert seen == set(node.workers())


async def test_a_wrong_password_for_a_token_is_refused(node: Node) -> None:
    async with node.client() as client:
        token = await client.create()
    wrong = replace(token, hmac=bytes(64))
    with pytest.raises(LoginFailed, match="invalid credentials with SASL mechanism SCRAM-SHA-256"):
        await node.token_client(wrong).__aenter__()


async def test_a_token_is_what_its_owner_asked_for(node: Node) -> None:
    async with node.client() as client:
        token = await client.create(renewers=["User:bob", "User:bob"], max_lifetime_ms=HOUR)
        assert (token.owner, token.requester) == ("User:alice", "User:alice")
        assert token.max_timestamp_ms - token.issue_timestamp_ms == HOUR
        assert token.expiry_timestamp_ms == token.max_timestamp_ms
        usual = await client.create()
        assert usual.max_timestamp_ms - usual.issue_timestamp_ms == 7 * DAY
        assert usual.expiry_timestamp_ms - usual.issue_timestamp_ms == DAY
        assert abs(usual.issue_timestamp_ms - time.time() * 1000) < 5 * MINUTE


async def test_only_owner_and_renewers_renew_and_expire(node: Node) -> None:
    async with node.client("alice") as alice, node.client("bob") as bob, node.client("carol") as carol:
        token = await alice.create(renewers=["User:bob"])
        for action in (carol.renew, carol.expire):
            with pytest.raises(TokenOwnerMismatch):
                await action(token.hmac)
        assert await bob.renew(token.hmac, HOUR) < token.expiry_timestamp_ms
        assert await bob.renew(token.hmac, 30 * DAY) == token.max_timestamp_ms
        await bob.expire(token.hmac)


async def test_a_super_user_expires_any_token_and_renews_none(node: Node) -> None:
    async with node.client("alice") as alice, node.client(ADMIN) as admin:
        token = await alice.create()
        with pytest.raises(TokenOwnerMismatch):
            await admin.renew(token.hmac)
        await admin.expire(token.hmac)
        assert await described(alice, token) is None
    with pytest.raises(LoginFailed):
        await node.token_client(token).__aenter__()


async def test_an_expired_token_neither_logs_in_nor_is_renewed(node: Node) -> None:
    async with node.client() as client:
        token = await client.create()
        await client.expire(token.hmac, 0)
        # Until it is removed in the background it has expired, afterwards it is not known.
        with pytest.raises((TokenExpired, TokenNotFound)):
            await client.renew(token.hmac)
    with pytest.raises(LoginFailed):
        await node.token_client(token).__aenter__()


async def test_expired_tokens_are_removed_in_the_background(node: Node, kazoo: KazooClient) -> None:
    async with node.client() as client:
        gone, kept = await client.create(), await client.create()
        await client.expire(gone.hmac, 0)
        async with asyncio.timeout(TIMEOUT_S):
            while await described(client, gone) is not None:  # noqa: ASYNC110 - no event to wait for
                await asyncio.sleep(0.05)
        assert await described(client, kept) == kept
    assert kazoo.exists(_path(gone)) is None
    assert kazoo.exists(_path(kept)) is not None


async def test_what_is_acknowledged_is_in_zookeeper(node: Node, kazoo: KazooClient) -> None:
    async with node.client() as client:
        token = await client.create(renewers=["User:bob"])
        data, _ = kazoo.get(_path(token))
        document = json.loads(data)
        assert document["owner"] == "User%3Aalice"
        assert document["expiryTimestamp"] == token.expiry_timestamp_ms
        assert token.hmac_base64 not in data.decode()
        expiry = await client.renew(token.hmac, HOUR)
        assert json.loads(kazoo.get(_path(token))[0])["expiryTimestamp"] == expiry
        await client.expire(token.hmac)
        assert kazoo.exists(_path(token)) is None


async def test_a_token_for_another_owner_needs_a_right_and_logs_in_as_that_owner(node: Node) -> None:
    async with node.client("alice") as alice, node.client(ADMIN) as admin:
        token = await admin.create(owner="User:alice")
        assert (token.owner, token.requester) == ("User:alice", "User:admin")
        assert await described(alice, token) == token
        await alice.renew(token.hmac)


async def test_renewers_are_users(node: Node) -> None:
    async with node.client() as client:
        with pytest.raises(InvalidPrincipalType):
            await client.create(renewers=["Group:ops"])


async def test_a_listener_without_login_answers_no_request_about_tokens(node: Node) -> None:
    async with node.client(listener="PLAINTEXT") as client:
        await _all_refused(client, TokenRequestNotAllowed)


async def test_a_connection_that_logged_in_by_token_may_not_ask_for_tokens(node: Node) -> None:
    async with node.client() as client:
        token = await client.create()
    async with node.token_client(token) as by_token:
        await _all_refused(by_token, TokenRequestNotAllowed)


async def test_a_token_id_as_a_plain_user_name_is_a_token_login_too(node: Node) -> None:
    async with node.client() as client:
        token = await client.create()
    with node.connect() as connection:
        connection.login_scram(token.token_id, token.hmac_base64, SHA_512, token=False)
        assert connection.ask(41, 3, owners=None).error_code.value == 64


@pytest.fixture(scope="module")
def keyless(zookeeper_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node without a secret key, whose everyone.if.no.acl.found is not set either."""
    settings = node_properties(
        make_chroot(zookeeper_address, "keyless"),
        delegation_token_secret_key=None,
        allow_everyone_if_no_acl_found=False,
        kafka_dt_workers=1,
    )
    with Node(tmp_path_factory.mktemp("keyless"), settings) as node:
        yield node
    node.check_log()


async def test_without_a_secret_key_every_request_about_tokens_is_refused(keyless: Node) -> None:
    async with keyless.client() as client:
        await _all_refused(client, TokensDisabled)
    assert "delegation.token.secret.key: it is not set" in keyless.log()


async def test_without_the_right_a_token_for_another_is_refused(keyless: Node) -> None:
    async with keyless.client() as client:
        with pytest.raises(TokenAuthorizationFailed):
            await client.create(owner="User:bob")


def test_without_a_secret_key_no_token_logs_in(keyless: Node) -> None:
    with keyless.connect() as connection, pytest.raises(LoginRefused) as refused:
        connection.login_scram("qe9NVyTyRGKwPVvXpmXvyQ", "secret", SHA_256, token=True)
    assert refused.value.answer.error_code.value == 58


async def _all_refused(client: TokenClient, error: type[Exception]) -> None:
    with pytest.raises(error):
        await client.create()
    with pytest.raises(error):
        await client.renew(bytes(64))
    with pytest.raises(error):
        await client.expire(bytes(64))
    with pytest.raises(error):
        await client.describe()


def _path(token: DelegationToken) -> str:
    return f"/delegation_token/tokens/{token.token_id}"
