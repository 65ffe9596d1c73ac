"""Changes that the cluster decides: what it is sent, and what its answers mean."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import count
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client.connection import Connection
from kafka_dt.kraft import changes
from kafka_dt.kraft.changes import MAX_ATTEMPTS, ClusterChanges, Connections
from kafka_dt.kraft.knowledge import Knowledge
from kafka_dt.kraft.reader import ClusterReader
from kafka_dt.kraft.source import ClusterTokens
from kafka_dt.tokens import (
    DelegationToken,
    Expiry,
    NewToken,
    Principal,
    Renewal,
    StoredToken,
    StoreUnavailable,
    Token,
    TokenAuthorizationFailed,
    TokenCache,
    TokenError,
    TokenExpired,
    TokenNotFound,
    TokenOwnerMismatch,
    TokensDisabled,
)
from kafka_dt_protocol.api.registry import ApiKey
from kafka_dt_protocol.wire.times import NO_THROTTLE, to_duration, to_timestamp
from tests.support.protocol.scripted_server import CLOSE
from tests.support.tokens.nodes import ALICE, BOB, CAROL, DAY, HOUR, MALLORY, START
from tests.support.tokens.scripted_cluster import GATEWAY, ScriptedCluster
from tests.support.tokens.store_contract import new_token

HMAC = bytes(64)
RENEW, EXPIRE, CREATE = (
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.CREATE_DELEGATION_TOKEN,
)


@dataclass
class Worker:
    """One worker's changes, and what it knows. `now_ms` is its clock."""

    cluster: ScriptedCluster
    cache: TokenCache
    source: ClusterTokens
    changes: ClusterChanges
    told: list[tuple[str, bytes, int | None]] = field(default_factory=list)
    """What it has told other nodes."""
    now_ms: int = START
    hanging: list[asyncio.Event] = field(default_factory=list)
    """Set at the end: what brokers that hang wait for."""

    def answers(self, api: ApiKey, *answers: ErrorCode | Callable[[], ErrorCode]) -> list[Any]:
        """Script an API: an error for each request, the last one for all later ones. Gives the requests."""
        left = list(answers)

        def script(_header: object, _request: Any) -> dict[str, Any]:
            answer = left.pop(0) if len(left) > 1 else left[0]
            code = answer() if callable(answer) else answer
            return {"error_code": code, "expiry_timestamp": to_timestamp(START + HOUR), "throttle_time": NO_THROTTLE}

        self.cluster.server.scripts[api] = script
        return self.cluster.server.record(api)

    async def holds(self, **changes: object) -> DelegationToken:
        """A token of alice's that the cluster has and the worker knows."""
        token = new_token(owner=ALICE, renewers=(BOB,), expiry_timestamp_ms=START + DAY, max_timestamp_ms=START + DAY)
        held = DelegationToken(replace(token, **changes), HMAC)  # type: ignore[arg-type]
        self.cluster.described[token.token_id] = held
        await self.source.prove()
        return held

    async def change(self, held: DelegationToken, wanted: Renewal | Expiry) -> int:
        return await self.changes.change(held.token.token_id, held.hmac, wanted)


@pytest.fixture
async def worker(cluster: ScriptedCluster, cache: TokenCache, knowledge: Knowledge) -> AsyncIterator[Worker]:
    reader = ClusterReader(cluster.session(), knowledge, GATEWAY, monotonic=time.monotonic, proof_s=5)
    source = ClusterTokens(reader, knowledge, cache, refresh_s=60, max_staleness_ms=600_000, monotonic=time.monotonic)
    changing = ClusterChanges(
        Connections(cluster.session),
        GATEWAY,
        source,
        knowledge,
        cache,
        now_ms=lambda: made.now_ms,
        tell=lambda *message: made.told.append(message),
    )
    made = Worker(cluster, cache, source, changing)
    await source.load()
    yield made
    for each in made.hanging:
        each.set()
    await source.close()
    await changing.close()


def created(header: Any, request: Any) -> dict[str, Any]:
    """Make the token that is asked for, as the gateway asked."""
    del header
    return {
        "error_code": ErrorCode.none,
        "principal_type": request.owner_principal_type,
        "principal_name": request.owner_principal_name,
        "token_requester_principal_type": GATEWAY.type,
        "token_requester_principal_name": GATEWAY.name,
        "issue_timestamp": to_timestamp(START),
        "expiry_timestamp": to_timestamp(START + HOUR),
        "max_timestamp": to_timestamp(START + DAY),
        "token_id": new_token().token_id,
        "hmac": HMAC,
        "throttle_time": NO_THROTTLE,
    }


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


async def test_a_renewal_is_sent_to_one_broker_only(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "DELETION_PATIENCE_S", (0.05, 0.05))
    held = await worker.holds()
    worker.cluster.server.scripts[RENEW] = lambda *_: CLOSE
    requests = worker.cluster.server.record(RENEW)
    with pytest.raises(StoreUnavailable):
        await worker.change(held, Renewal(ALICE, -1, DAY))
    assert len(requests) == 1


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


async def test_not_found_is_not_believed_while_the_brokers_have_the_token(worker: Worker) -> None:
    held = await worker.holds()
    requests = worker.answers(RENEW, ErrorCode.delegation_token_not_found, ErrorCode.none)
    assert await worker.change(held, Renewal(ALICE, HOUR, DAY)) == START + HOUR
    assert len(requests) == 2
    requests = worker.answers(RENEW, ErrorCode.delegation_token_not_found)
    with pytest.raises(StoreUnavailable, match="do not find token"):
        await worker.change(held, Renewal(ALICE, HOUR, DAY))
    assert len(requests) == MAX_ATTEMPTS


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


class OwnLogin:
    """A client's own connection to the cluster."""

    def __init__(self, connection: Connection) -> None:
        self.server = connection.server
        self.version = connection.version
        self.asked: list[IntEnum] = []
        self.served = asyncio.Event()
        self.served.set()
        self._connection = connection

    async def request(self, api: IntEnum, **values: object) -> Any:
        self.asked.append(api)
        await self.served.wait()
        return await self._connection.request(api, **values)


@pytest.fixture
async def own(cluster: ScriptedCluster) -> AsyncIterator[OwnLogin]:
    session = cluster.session()
    yield OwnLogin(await session.ready())
    await session.close()


async def test_a_broker_without_tokens_is_left_for_another_one(worker: Worker) -> None:
    codes = [ErrorCode.delegation_token_auth_disabled, ErrorCode.none]
    worker.cluster.server.scripts[CREATE] = lambda *asked: created(*asked) | {"error_code": codes.pop(0)}
    before = worker.cluster.server.connections
    with pytest.raises(TokensDisabled):
        await worker.changes.create(NewToken(ALICE, ALICE, (), -1))
    await worker.changes.create(NewToken(ALICE, ALICE, (), -1))
    assert worker.cluster.server.connections == before + 2


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


async def test_another_hmac_is_not_found(worker: Worker) -> None:
    held = await worker.holds()
    with pytest.raises(TokenNotFound):
        await worker.changes.change(held.token.token_id, b"x" * 64, Expiry(ALICE, -1))


async def test_expired_tokens_are_the_clusters_to_remove(worker: Worker) -> None:
    held = await worker.holds()
    assert worker.changes.removes_expired
    assert await worker.changes.remove(held.token.token_id, START + 9 * DAY) is None
    assert worker.cache.get(held.token.token_id) == held
