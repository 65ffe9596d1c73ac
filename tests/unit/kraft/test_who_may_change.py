"""Who may change a token: the cluster decides on the connection of a client, and this node on the gateway's."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.tokens import (
    Expiry,
    NewToken,
    Renewal,
    StoreUnavailable,
    Token,
    TokenAuthorizationFailed,
    TokenError,
    TokenExpired,
    TokenOwnerMismatch,
)
from tests.support.protocol.scripted_server import CLOSE
from tests.support.tokens.changing_worker import CREATE, EXPIRE, RENEW, OwnLogin, Worker, created
from tests.support.tokens.nodes import ALICE, BOB, CAROL, DAY, HOUR, MALLORY, START
from tests.support.tokens.scripted_cluster import GATEWAY


async def test_a_client_with_a_connection_of_its_own_creates_on_it_and_the_gateway_may_renew_the_token(
    worker: Worker, own: OwnLogin
) -> None:
    worker.cluster.server.scripts[CREATE] = created
    requests = worker.cluster.server.record(CREATE)
    made = await worker.changes.create(NewToken(BOB, ALICE, (CAROL,), -1, own))
    assert own.asked == [CREATE]
    assert [each.principal_name for each in requests[0].renewers] == [CAROL.name, GATEWAY.name]
    assert worker.cache.get(made.token.token_id) == made

    refused = ErrorCode.delegation_token_authorization_failed
    worker.cluster.server.scripts[CREATE] = lambda *asked: created(*asked) | {"error_code": refused}
    with pytest.raises(TokenAuthorizationFailed, match=str(ALICE)):
        await worker.changes.create(NewToken(BOB, ALICE, (), -1, own))


async def test_the_cluster_decides_what_a_client_may_change_on_its_own_connection(
    worker: Worker, own: OwnLogin, caplog: pytest.LogCaptureFixture
) -> None:
    held = await worker.holds()
    worker.answers(RENEW, ErrorCode.none)
    assert await worker.change(held, Renewal(MALLORY, HOUR, DAY, own=own)) == START + HOUR
    worker.answers(EXPIRE, ErrorCode.delegation_token_owner_mismatch)
    with pytest.raises(TokenOwnerMismatch, match=str(MALLORY)):
        await worker.change(held, Expiry(MALLORY, -1, own=own))
    worker.answers(EXPIRE, ErrorCode.none)
    await worker.change(held, Expiry(ALICE, -1, own=own))
    assert own.asked == [RENEW, EXPIRE, EXPIRE]
    assert worker.cache.get(held.token.token_id) is None
    assert not caplog.records, "it is not the gateway that the cluster refuses"


async def test_what_only_a_super_user_of_the_node_may_expire_the_gateway_expires(worker: Worker, own: OwnLogin) -> None:
    held = await worker.holds()
    worker.answers(EXPIRE, ErrorCode.none)
    await worker.change(held, Expiry(MALLORY, -1, by_super_user=True, own=own))
    assert own.asked == []


async def test_a_client_whose_own_connection_is_slow_holds_up_no_change_of_others(
    worker: Worker, own: OwnLogin
) -> None:
    """A broker lets a client wait that has used up its quota; the owner may be revoking the token meanwhile."""
    held = await worker.holds()
    worker.answers(RENEW, ErrorCode.none)
    worker.answers(EXPIRE, ErrorCode.none)
    own.served.clear()
    renewal = asyncio.create_task(worker.change(held, Renewal(MALLORY, HOUR, DAY, own=own)))
    while not own.asked:  # noqa: ASYNC110 - a condition about a list has no event
        await asyncio.sleep(0)
    await worker.change(held, Expiry(ALICE, -1))
    own.served.set()
    await renewal
    assert worker.cache.get(held.token.token_id) is None, "the renewal came before the deletion"


async def test_a_connection_of_a_client_that_breaks_leaves_the_outcome_open(worker: Worker, own: OwnLogin) -> None:
    held = await worker.holds()
    worker.cluster.server.scripts[RENEW] = lambda *_: CLOSE
    with pytest.raises(StoreUnavailable):
        await worker.change(held, Renewal(ALICE, HOUR, DAY, own=own))


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (Renewal(MALLORY, HOUR, DAY), TokenOwnerMismatch),
        (Expiry(MALLORY, -1), TokenOwnerMismatch),
        (Renewal(GATEWAY, HOUR, DAY), TokenOwnerMismatch),
    ],
)
async def test_who_is_neither_owner_nor_renewer_is_refused_here_and_the_audit_hears_of_the_token(
    worker: Worker, wanted: Renewal | Expiry, error: type[TokenError]
) -> None:
    held = await worker.holds()
    heard: list[Token] = []
    with pytest.raises(error):
        await worker.change(held, replace(wanted, on_token=heard.append))
    assert heard == [held.token]


async def test_of_an_expired_token_a_stranger_hears_what_a_cluster_says(worker: Worker) -> None:
    held = await worker.holds()
    worker.now_ms = START + 2 * DAY
    with pytest.raises(TokenExpired):
        await worker.change(held, Renewal(MALLORY, HOUR, DAY))
    with pytest.raises(TokenOwnerMismatch):
        await worker.change(held, Expiry(MALLORY, HOUR))


async def test_a_super_user_may_expire_what_the_gateway_may_renew(worker: Worker) -> None:
    held = await worker.holds()
    worker.answers(EXPIRE, ErrorCode.none)
    await worker.change(held, Expiry(MALLORY, -1, by_super_user=True))
    assert worker.cache.get(held.token.token_id) is None
