"""How long connections live on a real node: revocation, the end of a session, logging in again, idling."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_dt.client import DelegationToken
from kafka_dt_protocol.sasl import ScramClient, ScramMechanism
from tests.support.nodes.node import ADMIN, REAUTH_MS, SHA_256, SHA_512, Node, local_port, node_properties
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import DESCRIBE, DESCRIBE_CLUSTER, ConnectionClosed, RawConnection
from tests.support.zookeeper.server import make_chroot

_LOG = logging.getLogger(__name__)
"""Measured figures, shown with `--log-cli-level=INFO`."""

HOUR = 3_600_000
IDLE_MS = 2_500
"""Longer than a machine stands still, so that a connection that speaks is never idle for as long."""
REVOKED_WITHIN_S = 5.0
"""The aim is one second; a machine that does other things at the same time gets more."""


async def created(node: Node, user: str = "alice") -> DelegationToken:
    async with node.client(user) as client:
        return await client.create(renewers=["User:bob"])


def served(connection: RawConnection) -> bool:
    """Whether a request is answered."""
    try:
        answer = connection.ask(DESCRIBE_CLUSTER, 0, include_cluster_authorized_operations=False)
    except (ConnectionClosed, ConnectionError):
        return False
    return bool(answer.error_code.value == 0)


@contextlib.contextmanager
def logged_in_everywhere(nodes: list[Node], token: DelegationToken) -> Iterator[list[RawConnection]]:
    """Connections by a token to every worker of every node, and each of them serves."""
    with contextlib.ExitStack() as stack:
        connections: list[RawConnection] = []
        for node in nodes:
            connect = _connector(node, token)
            connections += stack.enter_context(node.on_every_worker(connect)).values()
        assert len(connections) == 2 * len(nodes)
        assert all(served(connection) for connection in connections)
        yield connections


def _connector(node: Node, token: DelegationToken) -> Callable[[], RawConnection]:
    return lambda: node.connect_by_token(token, SHA_512)


def seconds_until_closed(connections: list[RawConnection], since: float) -> list[float]:
    """How long it took from an instant on until the server closed each connection."""
    taken = []
    for connection in connections:
        assert connection.closed(REVOKED_WITHIN_S)
        taken.append(time.monotonic() - since)
    return taken


@pytest.mark.parametrize("how", ["deleted", "expired", "by a super user"])
async def test_revocation_closes_live_connections_on_every_worker_of_every_node(
    node: Node, other_node: Node, how: str
) -> None:
    token, other = await created(node), await created(node)
    with (
        logged_in_everywhere([node, other_node], token) as revoked,
        logged_in_everywhere([node, other_node], other) as kept,
    ):
        async with node.client(ADMIN if how == "by a super user" else "alice") as client:
            await client.expire(token.hmac, 0 if how == "expired" else -1)
        since = time.monotonic()
        taken = await asyncio.to_thread(seconds_until_closed, revoked, since)
        _LOG.info("Closed after (s): %s", taken)
        assert max(taken) < REVOKED_WITHIN_S
        assert all(served(connection) for connection in kept)


async def test_a_token_that_is_made_to_expire_soon_takes_its_connections_along_then(
    node: Node, other_node: Node
) -> None:
    token = await created(node)
    with logged_in_everywhere([node, other_node], token) as connections:
        async with node.client() as client:
            expiry_ms = await client.expire(token.hmac, 700)
        assert all(served(connection) for connection in connections)
        await asyncio.to_thread(seconds_until_closed, connections, time.monotonic())
        assert time.time() * 1000 >= expiry_ms


async def test_a_token_that_is_renewed_in_time_keeps_its_connections(node: Node, other_node: Node) -> None:
    token = await created(node)
    with logged_in_everywhere([node, other_node], token) as connections:
        async with node.client("bob") as renewer:
            soon_ms = await renewer.expire(token.hmac, 3000)
            await renewer.renew(token.hmac, HOUR)
        await _past(soon_ms)
        assert all(served(connection) for connection in connections)


async def test_a_session_serves_nothing_after_the_end_of_its_token(node: Node) -> None:
    async with node.client() as client:
        token = await client.create(max_lifetime_ms=1000)
        # Whichever is first, the next request or the removal of the token, ends it.
        with node.connect_by_token(token) as connection:
            assert served(connection)
            await _past(token.expiry_timestamp_ms)
            assert not served(connection)


async def test_a_login_by_token_says_how_long_its_session_lasts(node: Node) -> None:
    async with node.client() as client:
        token = await client.create(max_lifetime_ms=HOUR)
    with node.connect() as connection:
        answer = connection.login_scram(token.token_id, token.hmac_base64, SHA_256, token=True)
        lifetime_s = answer.session_lifetime.total_seconds()
        assert 0 < 3600 - lifetime_s < 60


def test_logging_in_again_keeps_a_connection_alive(node: Node) -> None:
    with node.connect("REAUTH") as connection:
        begun = time.monotonic()
        lifetime = connection.login_plain("alice", "alice-secret").session_lifetime
        assert lifetime.total_seconds() * 1000 == REAUTH_MS
        port = local_port(connection)
        while time.monotonic() - begun < 1.1 * REAUTH_MS / 1000:
            eventually(_seconds_from_now(1.1), within_s=10)  # a second login in a second is refused
            connection.login_plain("alice", "alice-secret")
            assert served(connection)
        assert local_port(connection) == port


async def test_our_client_logs_in_again_by_itself(node: Node) -> None:
    async with node.client(listener="REAUTH") as client:
        port = local_port(client)
        assert client._session._login_due < time.monotonic() + REAUTH_MS / 1000
        client._session._login_due = time.monotonic()  # a machine that stands still would miss the real moment
        await client.describe([])
        assert client._session._login_due > time.monotonic()
        assert local_port(client) == port


def test_a_session_that_does_not_log_in_again_is_closed_at_its_next_request(node: Node) -> None:
    before = len(node.log())
    with node.connect("REAUTH", "alice") as connection:
        begun = time.monotonic()
        assert served(connection)
        eventually(lambda: time.monotonic() - begun > REAUTH_MS / 1000 + 0.05, within_s=30)
        assert not served(connection)
        (line,) = node.lines_about(local_port(connection), before)
        assert "the session has ended" in line


async def test_a_token_session_may_log_in_again_as_its_owner_only(node: Node) -> None:
    token, again, bobs = await created(node), await created(node), await created(node, "bob")
    with node.connect_by_token(token) as connection:
        connection.login_scram(again.token_id, again.hmac_base64, SHA_256, token=True)
        assert connection.ask(DESCRIBE, 3, owners=None).error_code.value == 64
        # The connection hangs on the second token now.
        async with node.client() as client:
            await client.expire(token.hmac)
        assert served(connection)
        async with node.client() as client:
            await client.expire(again.hmac)
        assert await asyncio.to_thread(connection.closed, REVOKED_WITHIN_S)
    with node.connect_by_token(bobs) as connection:
        fresh = await created(node)
        connection.handshake(SHA_256)
        answer = _last_answer(connection, fresh)
        assert answer.error_code.value == 58
        assert answer.error_message == "Cannot change principals during re-authentication from User.bob: User.alice"
        assert await asyncio.to_thread(connection.closed)


@pytest.fixture(scope="module")
def impatient(zookeeper_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that closes idle connections soon."""
    settings = node_properties(make_chroot(zookeeper_address, "idle"), connections_max_idle_ms=IDLE_MS)
    with Node(tmp_path_factory.mktemp("idle"), settings) as node:
        yield node
    node.check_log()


def test_idle_connections_are_closed_and_others_are_not(impatient: Node) -> None:
    with (
        impatient.connect() as silent,
        impatient.connect(user="alice") as idle,
        impatient.connect("PLAINTEXT") as half,
        impatient.connect(user="alice") as speaking,
    ):
        half.send(b"\0\0\0\x20half a frame")
        closed: dict[str, bool] = {}
        for name, connection in {"silent": silent, "idle": idle, "half": half}.items():
            while not closed.get(name):
                assert served(speaking)
                closed[name] = connection.closed(IDLE_MS / 4000)


def _seconds_from_now(seconds: float) -> Callable[[], bool]:
    then = time.monotonic() + seconds
    return lambda: time.monotonic() >= then


async def _past(instant_ms: int) -> None:
    while time.time() * 1000 <= instant_ms + 50:  # noqa: ASYNC110 - time alone
        await asyncio.sleep(0.02)


def _last_answer(connection: RawConnection, token: DelegationToken) -> Any:
    client = ScramClient(ScramMechanism.SHA_256, token.token_id, token.hmac_base64, "nonce", token=True)
    challenge = connection.authenticate(client.first())
    return connection.authenticate(client.challenge(challenge.auth_bytes))
