"""Two nodes on one ZooKeeper are one authority: what one has acknowledged counts on the other in the very next call."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import pytest

from kafka_dt.client import DelegationToken, LoginFailed, TokenClient, TokenExpired, TokenNotFound
from kafka_dt.tokens import Keyring
from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.errors import NoNode
from kafka_dt.zookeeper.znodes.kafka import TokenZnode
from tests.integration.zookeeper_nodes import client_of, settings
from tests.support.brokers.broker import SECRET_KEY
from tests.support.nodes.node import SHA_256, SHA_512, Node
from tests.support.zookeeper.token_codecs import codec_of

_LOG = logging.getLogger(__name__)
"""Measured figures, shown with `--log-cli-level=INFO`."""

LOGINS = 300
AT_ONCE = 8
HOUR = 3_600_000
TIMEOUT_S = 20


async def many_at_once(work: Callable[[int], Awaitable[None]], count: int) -> None:
    """Do something for each number, several at once."""
    numbers = iter(range(count))

    async def one_after_the_other() -> None:
        for number in numbers:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(one_after_the_other())


async def test_a_token_logs_in_on_the_other_node_in_the_very_next_call(node: Node, other_node: Node) -> None:
    succeeded: list[str] = []
    failed: list[str] = []
    begun = time.monotonic()
    async with node.client() as here, other_node.client() as there:
        ways = ((here, other_node, SHA_256), (there, node, SHA_256), (here, other_node, SHA_512))

        async def create_and_log_in(number: int) -> None:
            client, elsewhere, mechanism = ways[number % len(ways)]
            token = await client.create()
            try:
                async with elsewhere.token_client(token, mechanism):
                    succeeded.append(token.token_id)
            except LoginFailed as error:
                failed.append(str(error))

        await many_at_once(create_and_log_in, LOGINS)
    _LOG.info("%d creates and logins in %.1f s", LOGINS, time.monotonic() - begun)
    assert failed == []
    assert len(set(succeeded)) == LOGINS


async def refused_login(node: Node, token: DelegationToken) -> bool:
    try:
        async with node.token_client(token):
            return False
    except LoginFailed:
        return True


async def logs_in(node: Node, token: DelegationToken) -> bool:
    return not await refused_login(node, token)


async def refused_every_time(node: Node, token: DelegationToken) -> bool:
    """Whether six logins fail: two workers of a node share them, as the kernel sees fit."""
    return all([await refused_login(node, token) for _ in range(6)])


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not await condition():  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("period_ms", [-1, 0], ids=["deleted", "expired"])
async def test_a_token_ended_on_one_node_is_refused_on_both(node: Node, other_node: Node, period_ms: int) -> None:
    async with node.client() as here, other_node.client() as there:
        for client, near, far in ((here, node, other_node), (there, other_node, node)):
            token = await client.create()
            assert await logs_in(near, token)
            assert await logs_in(far, token)
            await client.expire(token.hmac, period_ms)
            assert await refused_login(near, token)
            # Each worker of the other node hears for itself; one that has never met the token refuses it before.
            await eventually(lambda: refused_every_time(far, token))  # noqa: B023 - awaited at once
            # What is refused stays refused, on every worker.
            for each in (node, other_node):
                assert await refused_every_time(each, token)


async def described(client: TokenClient, token: DelegationToken) -> DelegationToken | None:
    found = [each for each in await client.describe() if each.token_id == token.token_id]
    return found[0] if found else None


async def test_changes_on_one_node_are_seen_on_the_other_in_the_very_next_call(node: Node, other_node: Node) -> None:
    async with node.client() as here, other_node.client() as there:
        for _ in range(20):
            token = await here.create()
            assert await described(there, token) == token
            expiry = await there.renew(token.hmac, HOUR)
            seen = await described(here, token)
            assert seen is not None
            assert seen.expiry_timestamp_ms == expiry
            await here.expire(token.hmac)
            assert await described(there, token) is None
            with pytest.raises(TokenNotFound):
                await there.renew(token.hmac)


async def stored_expiry(zookeeper: ZooKeeperClient, token: DelegationToken) -> tuple[int, int] | None:
    """How often the token's znode was written since it was made, and its expiry timestamp; None if it is gone."""
    try:
        znode = await zookeeper.get(TokenZnode.path(token.token_id))
    except NoNode:
        return None
    decoded = await codec_of(Keyring(SECRET_KEY)).decode(token.token_id, znode.data)
    return znode.stat.version, decoded.token.expiry_timestamp_ms


async def test_of_changes_on_two_nodes_at_the_same_time_each_is_made_once_and_one_is_the_last(
    node: Node, other_node: Node
) -> None:
    async with node.client() as here, other_node.client() as there, client_of(settings(node.zookeeper)) as zookeeper:
        token = await here.create()
        acknowledged = 0
        for turn in range(1, 21):
            outcomes = await asyncio.gather(
                here.renew(token.hmac, 20 * HOUR + turn), there.expire(token.hmac, 10 * HOUR + turn)
            )
            acknowledged += len(outcomes)
            stored = await stored_expiry(zookeeper, token)
            assert stored in [(acknowledged, outcome) for outcome in outcomes]
            for seen in (await described(here, token), await described(there, token)):
                assert seen is not None
                assert seen.expiry_timestamp_ms == stored[1]


async def test_a_renewal_does_not_undo_an_expiry_on_the_other_node_at_the_same_time(
    node: Node, other_node: Node
) -> None:
    """Expire the token whichever request is first: a node decides a second renewal anew, and refuses it."""
    async with node.client() as here, other_node.client() as there, client_of(settings(node.zookeeper)) as zookeeper:
        for turn in range(60):
            renewing, expiring = (here, there) if turn % 2 else (there, here)
            token = await renewing.create()
            assert await described(expiring, token) == token  # both decide by what they know already
            renewed, expired = await asyncio.gather(
                renewing.renew(token.hmac, HOUR), expiring.expire(token.hmac, 0), return_exceptions=True
            )
            assert isinstance(expired, int)
            stored = await stored_expiry(zookeeper, token)
            if isinstance(renewed, int) and renewed == expired + HOUR:
                continue  # in the very millisecond of its end a token has not expired yet
            assert isinstance(renewed, int | TokenExpired | TokenNotFound)
            changes = 2 if isinstance(renewed, int) else 1
            assert stored in (None, (changes, expired)), "an expired token is purged soon"


async def test_of_two_deletions_one_succeeds(node: Node, other_node: Node) -> None:
    async with node.client() as here, other_node.client() as there:
        for _ in range(10):
            token = await here.create()
            outcomes = await asyncio.gather(here.expire(token.hmac), there.expire(token.hmac), return_exceptions=True)
            refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
            assert [type(outcome) for outcome in refused] == [TokenNotFound]


async def test_a_deletion_wins_over_a_renewal_at_the_same_time(node: Node, other_node: Node) -> None:
    async with node.client() as here, other_node.client() as there:
        for _ in range(10):
            token = await here.create()
            _, deleted = await asyncio.gather(here.renew(token.hmac), there.expire(token.hmac), return_exceptions=True)
            assert not isinstance(deleted, BaseException)
            assert await described(here, token) is None
            assert await described(there, token) is None
