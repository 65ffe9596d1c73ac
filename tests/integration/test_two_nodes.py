"""Two nodes on one ZooKeeper are one authority: what one has acknowledged counts on the other in the very next call."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import pytest

from kafka_dt.client import DelegationToken, LoginFailed, TokenClient, TokenNotFound
from tests.support.nodes import SHA_256, SHA_512, Node

_LOG = logging.getLogger(__name__)
"""Measured figures, shown with `--log-cli-level=INFO`."""

LOGINS = 1_000
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


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not await condition():  # noqa: ASYNC110 - nobody tells
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
            await eventually(lambda: refused_login(far, token))  # noqa: B023 - awaited at once
            # What is refused stays refused, on every worker.
            assert all([await refused_login(each, token) for each in (node, other_node) for _ in range(6)])


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


async def test_two_nodes_that_renew_the_same_token_lose_no_renewal(node: Node, other_node: Node) -> None:
    async with node.client() as here, other_node.client() as there:
        token = await here.create()
        for turn in range(1, 11):
            await asyncio.gather(here.renew(token.hmac, turn * HOUR), there.renew(token.hmac, turn * HOUR))
        seen = await described(here, token)
        assert seen == await described(there, token)


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
