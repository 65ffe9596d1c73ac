"""Tokens that end sooner: at brokers that hang, when they come back, and what other nodes are told."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from itertools import count
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.kraft import changes
from kafka_dt.kraft.changes import CONNECTIONS
from kafka_dt.tokens import (
    Expiry,
    NewToken,
    Principal,
    Renewal,
    StoreUnavailable,
)
from kafka_dt_protocol.api.registry import ApiKey
from tests.support.protocol.scripted_server import CLOSE
from tests.support.server.requests import until
from tests.support.tokens.changing_worker import CREATE, EXPIRE, HMAC, RENEW, OwnLogin, Worker, created
from tests.support.tokens.nodes import ALICE, BOB, DAY, HOUR, MALLORY, START


def hanging_once(worker: Worker, api: ApiKey, *, done: bool) -> None:
    """Have the broker leave the first request of an API without an answer; `done`: though it has deleted the token."""
    worker.answers(api, ErrorCode.none)
    answer: Any = worker.cluster.server.scripts[api]
    released, numbers = asyncio.Event(), count()

    async def script(header: Any, request: Any) -> Any:
        if next(numbers) == 0:
            if done:
                worker.cluster.described.clear()
            await released.wait()
        found = answer(header, request)
        return found | {"error_code": ErrorCode.delegation_token_not_found} if done else found

    worker.cluster.server.scripts[api] = script
    worker.hanging.append(released)


@pytest.mark.parametrize("done", [False, True])
async def test_a_deletion_goes_to_another_broker_if_one_does_not_answer(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    # A busy machine may not even have sent the request in the first of these times; then it has the second one.
    monkeypatch.setattr(changes, "DELETION_PATIENCE_S", (0.1, 2.0, 30.0))
    held = await worker.holds()
    hanging_once(worker, EXPIRE, done=done)
    await worker.change(held, Expiry(ALICE, -1))
    assert worker.cache.get(held.token.token_id) is None
    assert worker.told == [(held.token.token_id, HMAC, None)]


@pytest.mark.parametrize(
    ("requester", "code", "error"),
    [
        (ALICE, ErrorCode.none, None),
        (ALICE, ErrorCode.delegation_token_owner_mismatch, StoreUnavailable),
        (MALLORY, ErrorCode.none, StoreUnavailable),
    ],
    ids=["the gateway is a renewer", "it is none", "the client may not, as far as is known here"],
)
async def test_a_deletion_that_a_clients_own_broker_does_not_answer_is_made_by_the_gateway(
    worker: Worker,
    own: OwnLogin,
    monkeypatch: pytest.MonkeyPatch,
    *,
    requester: Principal,
    code: ErrorCode,
    error: type[StoreUnavailable] | None,
) -> None:
    monkeypatch.setattr(changes, "DELETION_PATIENCE_S", (0.1, 30.0))
    held = await worker.holds()
    own.served.clear()
    by_gateway = worker.answers(EXPIRE, code)
    with nullcontext() if error is None else pytest.raises(error):
        await worker.change(held, Expiry(requester, -1, own=own))
    own.served.set()
    assert own.asked == [EXPIRE]
    assert len(by_gateway) == int(requester == ALICE)
    assert (worker.cache.get(held.token.token_id) is None) == (error is None)


async def test_a_deletion_that_no_broker_answers_fails(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "DELETION_PATIENCE_S", (0.05, 0.05))
    held = await worker.holds()
    gone = asyncio.Event()
    worker.hanging.append(gone)
    worker.answers(EXPIRE, ErrorCode.none)
    worker.cluster.server.scripts[EXPIRE] = lambda *_: gone.wait()
    with pytest.raises(StoreUnavailable, match="no broker has answered"):
        await worker.change(held, Expiry(ALICE, -1))
    assert worker.cache.get(held.token.token_id) == held


async def test_a_deletion_does_not_wait_for_other_changes_that_a_broker_leaves_without_an_answer(
    worker: Worker,
) -> None:
    held = await worker.holds()
    answered = asyncio.Event()
    worker.hanging.append(answered)
    worker.cluster.server.scripts[CREATE] = lambda *_: answered.wait()
    creates = [asyncio.create_task(worker.changes.create(NewToken(ALICE, ALICE, (), -1))) for _ in range(CONNECTIONS)]
    requests = worker.cluster.server.record(CREATE)
    await until(lambda: len(requests) >= CONNECTIONS)
    worker.answers(EXPIRE, ErrorCode.none)
    await worker.change(held, Expiry(ALICE, -1))
    assert not any(each.done() for each in creates)
    for each in creates:
        each.cancel()
    await asyncio.gather(*creates, return_exceptions=True)


async def test_a_deletion_does_not_wait_for_a_renewal_of_the_same_token_that_a_broker_leaves_without_an_answer(
    worker: Worker,
) -> None:
    held = await worker.holds()
    answered = asyncio.Event()
    worker.hanging.append(answered)
    worker.cluster.server.scripts[RENEW] = lambda *_: answered.wait()
    requests = worker.cluster.server.record(RENEW)
    renewal = asyncio.create_task(worker.change(held, Renewal(BOB, HOUR, DAY)))
    await until(lambda: bool(requests))
    worker.answers(EXPIRE, ErrorCode.none)
    await worker.change(held, Expiry(ALICE, -1))
    assert worker.cache.get(held.token.token_id) is None
    assert not renewal.done()
    renewal.cancel()
    await asyncio.gather(renewal, return_exceptions=True)


async def test_a_renewal_whose_answer_comes_after_that_to_a_deletion_does_not_bring_the_token_back(
    worker: Worker,
) -> None:
    held = await worker.holds()
    released = asyncio.Event()
    worker.answers(RENEW, ErrorCode.none)
    answer: Any = worker.cluster.server.scripts[RENEW]

    async def late(header: Any, request: Any) -> Any:
        await released.wait()
        return answer(header, request)

    worker.cluster.server.scripts[RENEW] = late
    requests = worker.cluster.server.record(RENEW)
    renewal = asyncio.create_task(worker.change(held, Renewal(BOB, HOUR, DAY)))
    await until(lambda: bool(requests))
    worker.answers(EXPIRE, ErrorCode.none)
    await worker.change(held, Expiry(ALICE, -1))
    del worker.cluster.described[held.token.token_id]
    released.set()
    await renewal
    assert worker.cache.get(held.token.token_id) is None


async def test_a_renewal_is_sent_to_one_broker_only(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "DELETION_PATIENCE_S", (0.05, 0.05))
    held = await worker.holds()
    worker.cluster.server.scripts[RENEW] = lambda *_: CLOSE
    requests = worker.cluster.server.record(RENEW)
    with pytest.raises(StoreUnavailable):
        await worker.change(held, Renewal(ALICE, -1, DAY))
    assert len(requests) == 1


async def test_other_nodes_are_told_of_what_ends_a_token_sooner_and_of_nothing_else(worker: Worker) -> None:
    held = await worker.holds(expiry_timestamp_ms=START + HOUR)
    worker.cluster.server.scripts[CREATE] = created
    await worker.changes.create(NewToken(ALICE, ALICE, (), -1))
    worker.answers(RENEW, ErrorCode.none)
    worker.answers(EXPIRE, ErrorCode.none)
    await worker.change(held, Renewal(BOB, HOUR, DAY))
    assert worker.told == []
    later = await worker.holds()
    await worker.change(later, Renewal(BOB, HOUR, DAY))
    await worker.change(await worker.holds(), Expiry(ALICE, HOUR))
    assert worker.told[0] == (later.token.token_id, HMAC, START + HOUR)
    assert [end_ms for *_, end_ms in worker.told] == [START + HOUR] * 2
    await worker.change(later, Expiry(ALICE, -1))
    assert worker.told[2:] == [(later.token.token_id, HMAC, None)]


async def test_other_nodes_are_told_of_a_change_on_a_clients_own_connection(worker: Worker, own: OwnLogin) -> None:
    held = await worker.holds()
    worker.answers(EXPIRE, ErrorCode.none)
    await worker.change(held, Expiry(ALICE, -1, own=own))
    assert own.asked == [EXPIRE]
    assert worker.told == [(held.token.token_id, HMAC, None)]


async def test_a_deleted_token_that_a_renewal_has_brought_back_is_deleted_again_and_never_known(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    """A controller decides on an image that is behind; the renewal of another node comes right after the deletion."""
    held = await worker.holds()
    token_id = held.token.token_id

    def delete() -> ErrorCode:
        if len(deletions) > 1:
            del worker.cluster.described[token_id]
        return ErrorCode.none

    deletions = worker.answers(EXPIRE, delete)
    await worker.change(held, Expiry(ALICE, -1))
    while token_id in worker.cluster.described:
        await worker.source.prove()
        assert worker.cache.get(token_id) is None
    await worker.source.prove()
    assert [each.hmac for each in deletions] == [HMAC, HMAC]
    assert worker.told == [(token_id, HMAC, None)] * 2
    assert f"{token_id} has come back" in caplog.text
    assert not worker.source._knowledge.unproved


async def test_a_token_that_comes_back_is_deleted_by_one_request_at_a_time(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that hangs would otherwise take all connections for deletions, one for each proof meanwhile."""
    held = await worker.holds()
    worker.answers(EXPIRE, ErrorCode.none)
    await worker.change(held, Expiry(ALICE, -1))
    answered = asyncio.Event()
    worker.hanging.append(answered)
    worker.cluster.server.scripts[EXPIRE] = lambda *_: answered.wait()
    deletions = worker.cluster.server.record(EXPIRE)
    while not deletions:
        await worker.source.prove()
    for _ in range(3):
        await worker.source.prove()
    assert len(deletions) == 1
    assert caplog.text.count("has come back") == 1
    assert worker.cache.get(held.token.token_id) is None


async def test_a_token_that_comes_back_and_that_the_gateway_may_not_expire_is_known_as_the_cluster_has_it(
    worker: Worker, own: OwnLogin, caplog: pytest.LogCaptureFixture
) -> None:
    held = await worker.holds()
    token_id = held.token.token_id
    answers = worker.answers(EXPIRE, ErrorCode.none, ErrorCode.delegation_token_owner_mismatch)
    await worker.change(held, Expiry(ALICE, -1, own=own))
    while len(answers) < 2:
        await worker.source.prove()
        await asyncio.sleep(0)
    while worker.cache.get(token_id) is None:
        await worker.source.prove()
    assert len(answers) == 2
    assert f"no renewer of delegation token {token_id}: expire it again" in caplog.text
    assert not worker.source._knowledge.unproved
