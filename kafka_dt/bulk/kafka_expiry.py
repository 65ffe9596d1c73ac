"""End tokens over the Kafka protocol, for users who have no access to ZooKeeper.

    tokens = await selected_tokens(config, selected)
    await expire_over_kafka(config, tokens, report=summary.add)

The server describes the tokens that the caller may see, and each token that a filter selects is deleted by its HMAC. A
server answers one connection's requests one after the other, so several connections share the work. The descriptions
with their HMACs are held in memory, as the server sends them in one answer.

Source: KIP-48 (ExpireDelegationToken); kafka_dt.client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from kafka_dt.bulk.decisions import Result, ZnodeResult
from kafka_dt.client import ConnectionLost, RequestRefused, TokenClient, TokenClientError, TokenNotFound
from kafka_dt.lanes import run_lanes

if TYPE_CHECKING:
    from kafka_dt.bulk.engine import Report
    from kafka_dt.bulk.tasks import TokenFilter
    from kafka_dt.client import ClientConfig, DelegationToken

CONNECTIONS: Final = 16
ATTEMPTS: Final = 3
"""How often the expiry of a token is asked for when the connection breaks."""


async def selected_tokens(config: ClientConfig, selected: TokenFilter) -> list[DelegationToken]:
    """Return the tokens that the caller may see and a filter selects.

    Args:
        config: where the servers are and who logs in.
        selected: which tokens are meant.

    Raises:
        TokenClientError: they cannot be described.
    """
    async with TokenClient(config) as client:
        # Those that an owner may renew come along; the filter takes them out.
        tokens = await client.describe(sorted(selected.owners) or None)
    return [token for token in tokens if selected.selects(token.owner, token.renewers, token.issue_timestamp_ms)]


async def expire_over_kafka(
    config: ClientConfig, tokens: Sequence[DelegationToken], *, report: Report, stop: asyncio.Event
) -> None:
    """Delete tokens; the note of a result is the owner.

    Args:
        config: where the servers are and who logs in.
        tokens: with their HMACs.
        report: hears the results.
        stop: set it to end after the requests that are under way.

    Raises:
        TokenClientError: no server can be used any more; what was done has been reported.
    """
    lane = partial(_lane, config, iter(tokens), report, stop)
    await run_lanes(lane, min(CONNECTIONS, len(tokens)), raises=TokenClientError)


async def _lane(config: ClientConfig, left: Iterator[DelegationToken], report: Report, stop: asyncio.Event) -> None:
    async with TokenClient(config) as client:
        for token in _until_stopped(left, stop):
            report([await _expire(client, token)])


def _until_stopped(left: Iterable[DelegationToken], stop: asyncio.Event) -> Iterator[DelegationToken]:
    for token in left:
        yield token
        if stop.is_set():
            return


async def _expire(client: TokenClient, token: DelegationToken) -> Result:
    lost: ConnectionLost | None = None
    for _ in range(ATTEMPTS):
        try:
            await client.expire(token.hmac)
        except TokenNotFound:
            # After a lost answer it was most likely this request that ended it.
            return Result(token.token_id, ZnodeResult.CHANGED if lost else ZnodeResult.GONE, note=token.owner)
        except RequestRefused as refused:
            return Result(token.token_id, ZnodeResult.FAILED, str(refused), note=token.owner)
        except ConnectionLost as error:
            lost = error
        else:
            return Result(token.token_id, ZnodeResult.CHANGED, note=token.owner)
    return Result(token.token_id, ZnodeResult.FAILED, str(lost), note=token.owner)
