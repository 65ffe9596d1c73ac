"""Changes that the cluster decides: what it is sent, and what its answers mean."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.kraft.changes import MAX_ATTEMPTS
from kafka_dt.tokens import (
    Expiry,
    NewToken,
    Principal,
    Renewal,
    StoredToken,
    StoreUnavailable,
    TokenAuthorizationFailed,
    TokenError,
    TokenExpired,
    TokenNotFound,
    TokenOwnerMismatch,
    TokensDisabled,
)
from kafka_dt_protocol.wire.times import to_duration
from tests.support.tokens.changing_worker import CREATE, EXPIRE, HMAC, RENEW, Worker, created
from tests.support.tokens.nodes import ALICE, BOB, CAROL, DAY, HOUR, START
from tests.support.tokens.scripted_cluster import GATEWAY


async def test_a_create_names_the_owner_and_adds_the_gateway_to_the_renewers_once(worker: Worker) -> None:
    worker.cluster.server.scripts[CREATE] = created
    requests = worker.cluster.server.record(CREATE)
    made = await worker.changes.create(NewToken(ALICE, CAROL, (GATEWAY, BOB, BOB, GATEWAY), 5 * HOUR))
    (request,) = requests
    renewers = [Principal(each.principal_type, each.principal_name) for each in request.renewers]
    assert renewers == [BOB, BOB, GATEWAY]
    assert request.max_lifetime == to_duration(5 * HOUR)
    assert (made.token.owner, made.token.requester, made.token.renewers) == (ALICE, GATEWAY, (BOB, BOB))
    assert worker.cache.get(made.token.token_id) == made


async def test_a_renewal_and_an_expiry_are_known_when_they_return(worker: Worker) -> None:
    held = await worker.holds()
    renewals, expiries = worker.answers(RENEW, ErrorCode.none), worker.answers(EXPIRE, ErrorCode.none)
    assert await worker.change(held, Renewal(BOB, -1, DAY)) == START + HOUR
    assert renewals[0].renew_period == to_duration(-1), "the default is the cluster's"
    known = worker.cache.get(held.token.token_id)
    assert known is not None
    assert known.token == held.token.expiring_at(START + HOUR)
    await worker.change(held, Expiry(ALICE, -1))
    assert expiries[0].hmac == HMAC
    assert worker.cache.get(held.token.token_id) is None
    await worker.source._reader.look()
    assert worker.cache.get(held.token.token_id) is None, "the broker has not heard of the deletion"


async def test_not_found_is_not_believed_while_the_brokers_have_the_token(worker: Worker) -> None:
    held = await worker.holds()
    requests = worker.answers(RENEW, ErrorCode.delegation_token_not_found, ErrorCode.none)
    assert await worker.change(held, Renewal(ALICE, HOUR, DAY)) == START + HOUR
    assert len(requests) == 2
    requests = worker.answers(RENEW, ErrorCode.delegation_token_not_found)
    with pytest.raises(StoreUnavailable, match="do not find token"):
        await worker.change(held, Renewal(ALICE, HOUR, DAY))
    assert len(requests) == MAX_ATTEMPTS


async def test_not_found_is_believed_when_a_proof_says_so(worker: Worker) -> None:
    held = await worker.holds()
    requests = worker.answers(EXPIRE, ErrorCode.delegation_token_not_found)
    del worker.cluster.described[held.token.token_id]
    with pytest.raises(TokenNotFound):
        await worker.change(held, Expiry(ALICE, -1))
    assert len(requests) == 1
    assert worker.cache.get(held.token.token_id) is None


async def test_an_older_outcome_does_not_replace_what_was_heard_meanwhile(worker: Worker) -> None:
    held = await worker.holds()
    later = replace(held, token=held.token.expiring_at(START + 1))

    def meanwhile() -> ErrorCode:
        """Another node changes the token after this change, and a look tells that before the answer is here."""
        worker.cluster.described[held.token.token_id] = later
        worker.cache.apply(held.token.token_id, StoredToken(later.token, hmac=later.hmac))
        return ErrorCode.none

    worker.answers(RENEW, meanwhile)
    assert await worker.change(held, Renewal(ALICE, HOUR, DAY)) == START + HOUR
    assert worker.cache.get(held.token.token_id) == later


async def test_changes_of_one_token_follow_each_other(worker: Worker) -> None:
    held = await worker.holds()
    requests = worker.answers(RENEW, ErrorCode.none)
    await asyncio.gather(*(worker.change(held, Renewal(ALICE, number, DAY)) for number in range(1, 6)))
    assert [each.renew_period for each in requests] == [to_duration(number) for number in range(1, 6)]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.delegation_token_expired, TokenExpired),
        (ErrorCode.delegation_token_owner_mismatch, TokenOwnerMismatch),
        (ErrorCode.delegation_token_auth_disabled, TokensDisabled),
        (ErrorCode.request_timed_out, StoreUnavailable),
        (ErrorCode.unknown_server_error, StoreUnavailable),
    ],
)
async def test_refusals_of_the_cluster_have_a_meaning_here(
    worker: Worker, code: ErrorCode, error: type[TokenError]
) -> None:
    held = await worker.holds()
    for api, wanted in ((RENEW, Renewal(ALICE, HOUR, DAY)), (EXPIRE, Expiry(ALICE, HOUR))):
        worker.answers(api, code)
        with pytest.raises(error):
            await worker.change(held, wanted)
    assert worker.cache.get(held.token.token_id) == held


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.delegation_token_authorization_failed, TokenAuthorizationFailed),
        (ErrorCode.delegation_token_auth_disabled, TokensDisabled),
        (ErrorCode.unsupported_version, StoreUnavailable),
    ],
)
async def test_a_refused_create_makes_nothing(worker: Worker, code: ErrorCode, error: type[TokenError]) -> None:
    worker.cluster.server.scripts[CREATE] = lambda *asked: created(*asked) | {"error_code": code}
    with pytest.raises(error):
        await worker.changes.create(NewToken(ALICE, ALICE, (), -1))
    assert len(worker.cache) == 0


async def test_a_cluster_that_is_away_is_an_outage(worker: Worker) -> None:
    worker.cluster.server.greeting = b"no kafka"
    with pytest.raises(StoreUnavailable):
        await worker.changes.create(NewToken(ALICE, ALICE, (), -1))


async def test_a_broker_without_tokens_is_left_for_another_one(worker: Worker) -> None:
    codes = [ErrorCode.delegation_token_auth_disabled, ErrorCode.none]
    worker.cluster.server.scripts[CREATE] = lambda *asked: created(*asked) | {"error_code": codes.pop(0)}
    before = worker.cluster.server.connections
    with pytest.raises(TokensDisabled):
        await worker.changes.create(NewToken(ALICE, ALICE, (), -1))
    await worker.changes.create(NewToken(ALICE, ALICE, (), -1))
    assert worker.cluster.server.connections == before + 2


async def test_another_hmac_is_not_found(worker: Worker) -> None:
    held = await worker.holds()
    with pytest.raises(TokenNotFound):
        await worker.changes.change(held.token.token_id, b"x" * 64, Expiry(ALICE, -1))


async def test_expired_tokens_are_the_clusters_to_remove(worker: Worker) -> None:
    held = await worker.holds()
    assert worker.changes.removes_expired
    assert await worker.changes.remove(held.token.token_id, START + 9 * DAY) is None
    assert worker.cache.get(held.token.token_id) == held
