"""What audit events say of requests: the handlers of a node in memory, asked as clients ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.audit import EventType
from kafka_dt.audit.encoding import LONGEST_LIST, encode
from kafka_dt.audit.recorder import Origin
from kafka_dt.config import Endpoint, SecurityProtocol
from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.binding import AclOperation, ResourceType
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.manager import AclManager
from kafka_dt.identity.credentials.scram_changes import ScramUserManager
from kafka_dt.server.audited.requests import (
    EVENTS_IN_A_ROW,
    SHOWN,
    AuditedRequests,
    AuditedTokens,
    record_keys,
    record_removed,
)
from kafka_dt.server.handlers import Handler, RequestContext, dispatcher
from kafka_dt.server.handlers.acls import AclHandlers, acl_text, filter_text
from kafka_dt.server.handlers.scram_users import ScramUserHandlers
from kafka_dt.tokens import DelegationToken, Keyring, Principal, SecretKey
from kafka_dt_protocol import APIS, ApiKey, MalformedMessage, RequestHeader, build, element_type, response_type
from kafka_dt_protocol.wire.times import to_duration
from tests.support.identity.authorization import ADMIN, MemoryAclStore, acl, authorizer
from tests.support.identity.scram_changes import MemoryScramUserStore
from tests.support.nodes.audit import Event, RecordedEvents
from tests.support.server.parts import token_handlers
from tests.support.tokens.nodes import ALICE, BOB, DAY, HOUR, MALLORY, START, Cluster, Node
from tests.unit.server.handlers.test_token_handlers import OWNERLESS

CREATE, RENEW = ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN
EXPIRE, DESCRIBE = ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN
CREATE_ACLS, DELETE_ACLS = ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS
ALTER_USERS = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
RULE = acl(ResourceType.USER, "User:x", "bob", AclOperation.CREATE_TOKENS)
RULE_TEXT = "ALLOW CreateTokens of LITERAL User:'User:x' to User:bob from *"
CREATION = {
    "resource_type": ResourceType.USER,
    "resource_name": "User:x",
    "principal": "User:bob",
    "host": "*",
    "operation": AclOperation.CREATE_TOKENS,
    "permission_type": 3,
}
ANY = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


class Connection:
    """Stands for the audit of a connection: says where requests come from."""

    def origin(self, principal: Principal) -> Origin:
        return Origin(principal=str(principal), listener="SASL")


class Server:
    """The handlers of one node behind the audit."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or Cluster()
        self.node: Node = self.cluster.node()
        self.log = RecordedEvents()
        self.acls = MemoryAclStore()
        cache = AclCache()
        authorizer = Authorizer(
            cache, enabled=True, super_users=frozenset({ADMIN}), allow_everyone=False, super_users_revoke_any=True
        )
        self.served = (
            *token_handlers(self.node, authorizer),
            *AclHandlers(AclManager(self.acls, cache), authorizer).served(),
            *ScramUserHandlers(ScramUserManager(MemoryScramUserStore()), authorizer).served(),
        )
        self.handler = self.audited()

    def audited(self, handler: Handler | None = None, **lookups: Any) -> Handler:
        """Give the handlers, or one in place of all of them, behind the audit."""
        served = [replace(api, handler=handler) if handler else api for api in self.served]
        found = {"by_id": self.node.cache.get, "by_hmac": self.node.cache.by_hmac, **lookups}
        return dispatcher(served, audit=AuditedRequests(self.log.recorder, AuditedTokens(**found)))

    async def ask(self, principal: Principal, api: ApiKey, version: int | None = None, **values: Any) -> Any:
        asked = APIS[api].max_version if version is None else version
        connection: Any = Connection()
        context = RequestContext(
            header=RequestHeader(api, asked, 1, "test"),
            principal=principal,
            client_host="127.0.0.1",
            token_login=False,
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            endpoint=Endpoint("SASL", "localhost", 9092),
            audit=connection,
        )
        return await self.handler(context, build(APIS[api].request[asked], **values))

    async def create(self, principal: Principal = ALICE, *renewers: Principal, **values: Any) -> Any:
        element = element_type(APIS[CREATE].request[APIS[CREATE].max_version], "renewers")
        entities = tuple(element(principal_type=each.type, principal_name=each.name) for each in renewers)
        wanted = {"renewers": entities, "max_lifetime": to_duration(-1), **OWNERLESS, **values}
        return await self.ask(principal, CREATE, **wanted)

    def told(self, principal: Principal = ALICE) -> list[Event]:
        """Return the events since the last call, all of which must be of `principal`'s requests."""
        found = self.log.told()
        for event in found:
            assert (event.pop("listener"), event.pop("principal")) == ("SASL", str(principal))
        return found


@pytest.fixture
def server() -> Server:
    return Server()


def facts(token_id: str, **changes: object) -> Event:
    """What is known of a token of alice's that bob may renew."""
    known: Event = {
        "token_id": token_id,
        "owner": "User:alice",
        "requester": "User:alice",
        "renewers": ["User:bob"],
        "issue_time": START,
        "expiry_time": START + DAY,
        "max_time": START + 7 * DAY,
    }
    return known | changes


def without_key(event: Event) -> Event:
    assert event.pop("key_id")
    return event


async def test_a_token_that_is_created(server: Server) -> None:
    answer = await server.create(ALICE, BOB)
    (event,) = server.told()
    assert without_key(event) == {"type": "token_created", "outcome": "ok"} | facts(answer.token_id)


async def test_a_token_that_somebody_may_not_have(server: Server) -> None:
    await server.create(MALLORY, BOB, owner_principal_type="User", owner_principal_name="alice")
    assert server.told(MALLORY) == [
        {
            "type": "token_created",
            "outcome": "refused",
            "reason": "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
            "owner": "User:alice",
            "requester": "User:mallory",
            "renewers": ["User:bob"],
        }
    ]


async def test_a_token_that_is_renewed(server: Server) -> None:
    created = await server.create(ALICE, BOB)
    server.told()
    server.cluster.clock.now_ms += HOUR
    await server.ask(BOB, RENEW, hmac=created.hmac, renew_period=to_duration(2 * DAY))
    (event,) = server.told(BOB)
    expected = facts(created.token_id, expiry_time=START + HOUR + 2 * DAY)
    assert without_key(event) == {"type": "token_renewed", "outcome": "ok"} | expected


@pytest.mark.parametrize(("period_ms", "end_ms"), [(HOUR, HOUR), (-1, 0)])
async def test_a_token_that_is_expired_now_or_later(server: Server, period_ms: int, end_ms: int) -> None:
    created = await server.create(ALICE, BOB)
    server.told()
    await server.ask(ALICE, EXPIRE, hmac=created.hmac, expiry_time_period=to_duration(period_ms))
    (event,) = server.told()
    expected = facts(created.token_id, expiry_time=START + end_ms)
    assert without_key(event) == {"type": "token_expired", "outcome": "ok"} | expected


@pytest.mark.parametrize(("api", "period"), [(RENEW, "renew_period"), (EXPIRE, "expiry_time_period")])
async def test_a_change_that_is_refused_tells_which_token_it_was(server: Server, api: ApiKey, period: str) -> None:
    created = await server.create(ALICE, BOB)
    server.told()
    values: dict[str, Any] = {"hmac": created.hmac, period: to_duration(-1)}
    await server.ask(MALLORY, api, **values)
    (event,) = server.told(MALLORY)
    assert without_key(event) == {
        "type": "token_renewed" if api is RENEW else "token_expired",
        "outcome": "refused",
        "reason": "DELEGATION_TOKEN_OWNER_MISMATCH",
        **facts(created.token_id),
    }


async def test_an_hmac_of_no_token_is_not_repeated(server: Server) -> None:
    await server.ask(ALICE, RENEW, hmac=b"a guess", renew_period=to_duration(-1))
    assert server.told() == [{"type": "token_renewed", "outcome": "refused", "reason": "DELEGATION_TOKEN_NOT_FOUND"}]


async def test_a_token_that_was_made_elsewhere_a_moment_ago_is_known_though_it_goes_at_once() -> None:
    cluster = Cluster()
    here, there = Server(cluster), Server(cluster)
    created = await there.create(ALICE, BOB)
    here.node.cache.remove(created.token_id)
    await here.ask(ALICE, EXPIRE, hmac=created.hmac, expiry_time_period=to_duration(-1))
    (event,) = here.told()
    assert (event["outcome"], event["token_id"]) == ("ok", created.token_id)


async def test_tokens_that_are_described_are_counted(server: Server) -> None:
    for _ in range(3):
        await server.create()
    server.told()
    await server.ask(ALICE, DESCRIBE, owners=None)
    assert server.told() == [{"type": "tokens_described", "outcome": "ok", "count": 3}]


async def test_no_hmac_is_in_any_event(server: Server) -> None:
    created = await server.create(ALICE, BOB)
    await server.ask(BOB, RENEW, hmac=created.hmac, renew_period=to_duration(-1))
    await server.ask(ALICE, DESCRIBE, owners=None)
    await server.ask(ALICE, EXPIRE, hmac=created.hmac, expiry_time_period=to_duration(-1))
    text = repr(server.log.events)
    assert len(server.log.events) == 4
    assert repr(created.hmac) not in text
    assert created.hmac.hex() not in text


# What a node does by itself


async def test_a_token_that_is_removed_by_age_is_told_by_the_node_that_removes_it() -> None:
    cluster = Cluster()
    servers = [Server(cluster), Server(cluster)]
    created = await servers[0].create(ALICE, BOB)
    servers[0].told()
    cluster.clock.now_ms += 2 * DAY
    for server in servers:
        await server.node.store.catch_up()
    for server in servers:
        await server.node.manager.remove_expired(partial(record_removed, server.log.recorder))
    (event,) = servers[0].log.told() + servers[1].log.told()
    assert without_key(event) == {"type": "token_removed", "outcome": "ok"} | facts(created.token_id)


def test_a_ring_of_keys_that_changes_is_told_by_ids() -> None:
    log = RecordedEvents()
    keyring = Keyring("the old key")
    keyring.on_change(lambda: record_keys(log.recorder, keyring))
    keyring.replace("the new key", ["the old key"])
    ids = [SecretKey("the new key").id, SecretKey("the old key").id]
    assert log.told() == [{"type": "keys_changed", "outcome": "ok", "keys": ids}]


# ACLs and users


def creation(version: int) -> tuple[Any, ...]:
    element = element_type(APIS[CREATE_ACLS].request[version], "creations")
    return (build(element, **CREATION, resource_pattern_type=3),)


@pytest.mark.parametrize("version", range(4))
async def test_an_acl_that_is_created_and_deleted(server: Server, version: int) -> None:
    await server.ask(ADMIN, CREATE_ACLS, version, creations=creation(version))
    element = element_type(APIS[DELETE_ACLS].request[version], "filters")
    filters = (build(element, **ANY, pattern_type_filter=1 if version else 3),)
    await server.ask(ADMIN, DELETE_ACLS, version, filters=filters)
    assert server.told(ADMIN) == [
        {"type": "acl_created", "outcome": "ok", "acl": RULE_TEXT},
        {"type": "acl_deleted", "outcome": "ok", "acl": RULE_TEXT},
    ]


async def test_changes_of_acls_that_are_refused(server: Server) -> None:
    await server.ask(MALLORY, CREATE_ACLS, creations=creation(3))
    element = element_type(APIS[DELETE_ACLS].request[3], "filters")
    filters = tuple(
        build(element, **(ANY | {"principal_filter": who}), pattern_type_filter=1) for who in (None, "User:x")
    )
    await server.ask(MALLORY, DELETE_ACLS, filters=filters)
    reason = "CLUSTER_AUTHORIZATION_FAILED"
    anybody = "ANY Any of ANY Any:(any) to (any) from (any)"
    assert server.told(MALLORY) == [
        {"type": "acl_created", "outcome": "refused", "reason": reason, "acl": RULE_TEXT},
        {
            "type": "acl_deleted",
            "outcome": "refused",
            "reason": reason,
            "acl": anybody,
            "count": 2,
            "entries": [anybody, anybody.replace("to (any)", "to User:x")],
        },
    ]


def creations(names: Iterable[str], principal: str = "User:bob") -> tuple[Any, ...]:
    element = element_type(APIS[CREATE_ACLS].request[3], "creations")
    values = CREATION | {"principal": principal}
    return tuple(build(element, **(values | {"resource_name": each}), resource_pattern_type=3) for each in names)


async def test_a_refused_request_of_thousands_of_entries_is_one_small_event(server: Server) -> None:
    names = [f"{number}-{'🐘' * 4_000}" for number in range(5_000)]
    await server.ask(MALLORY, CREATE_ACLS, creations=creations(names, "User:" + "🐘" * 4_000))
    (event,) = server.log.events
    assert len(encode(event)) < 32 * 1024
    assert (event.count, len(event.entries or ())) == (5_000, SHOWN)
    assert event.acl == event.entries[0] if event.entries else False


async def test_entries_that_are_refused_for_different_reasons_are_an_event_for_each(server: Server) -> None:
    server.acls.connected = False
    names = ["a/b", "User:x", "", "User:y", "c/d"]
    await server.ask(ADMIN, CREATE_ACLS, creations=creations(names))
    assert [(event["reason"], event["count"]) for event in server.told(ADMIN)] == [
        ("INVALID_REQUEST", 3),
        ("REQUEST_TIMED_OUT", 2),
    ]


async def test_each_acl_of_a_request_that_was_created_is_an_event_with_its_whole_text(server: Server) -> None:
    names = [f"{number}-{'r' * 2_000}" for number in range(EVENTS_IN_A_ROW * 3)]
    await server.ask(ADMIN, CREATE_ACLS, creations=creations([*names, "a/b"], "User:" + "p" * 2_000))
    *created, refused = server.told(ADMIN)
    assert (refused["outcome"], refused["acl"].count("'a/b'")) == ("refused", 1)
    principal = "p" * 2_000
    assert [event["acl"] for event in created] == [
        f"ALLOW CreateTokens of LITERAL User:{name!r} to User:{principal} from *" for name in names
    ]


async def test_the_renewers_of_a_refused_creation_are_not_all_told(server: Server) -> None:
    renewers = [Principal.user(f"{number}" + "r" * 2_000) for number in range(5_000)]
    await server.create(MALLORY, *renewers, owner_principal_type="User", owner_principal_name="alice")
    (event,) = server.log.events
    assert len(encode(event)) < 32 * 1024
    assert (event.count, len(event.renewers or ())) == (5_000, LONGEST_LIST)


@pytest.mark.parametrize(("api", "period"), [(RENEW, "renew_period"), (EXPIRE, "expiry_time_period")])
async def test_for_a_request_that_is_refused_nothing_is_looked_up_before_and_zookeeper_is_not_asked(
    server: Server, api: ApiKey, period: str
) -> None:
    created = await server.create(ALICE, BOB)
    server.told()
    done: list[str] = []
    node = server.node

    def by_hmac(hmac: bytes) -> DelegationToken | None:
        done.append("looked up")
        return node.cache.by_hmac(hmac)

    async def refusing(context: RequestContext, body: Any) -> Any:
        done.append("handled")
        return await dispatcher(token_handlers(node, authorizer()))(replace(context, token_login=True), body)

    asked = node.store.catch_ups
    server.handler = server.audited(refusing, by_hmac=by_hmac)
    for hmac in (created.hmac, b"x" * 64):
        values: dict[str, Any] = {"hmac": hmac, period: to_duration(-1)}
        await server.ask(MALLORY, api, **values)
    assert done == ["handled", "looked up"] * 2
    assert node.store.catch_ups == asked
    assert [event.get("token_id") for event in server.told(MALLORY)] == [created.token_id, None]


def test_a_filter_names_what_it_names() -> None:
    element = element_type(APIS[DELETE_ACLS].request[3], "filters")
    values = ANY | {"resource_type_filter": 2, "resource_name_filter": "", "host_filter": "10.0.0.7", "operation": 3}
    asked = build(element, **values, pattern_type_filter=4)
    assert filter_text(asked) == "ANY Read of PREFIXED Topic:'' to (any) from 10.0.0.7"
    assert acl_text(creation(3)[0]) == RULE_TEXT


async def test_scram_users_that_are_changed_are_one_event_each(server: Server) -> None:
    async def alter(context: RequestContext, _body: Any) -> Any:
        kind = response_type(context.header)
        result = element_type(kind, "results")
        codes: Iterator[ErrorCode] = iter((ErrorCode.none, ErrorCode.unacceptable_credential))
        return build(
            kind,
            results=tuple(result(user=user, error_code=next(codes), error_message=None) for user in ("bob", "eve")),
        )

    server.handler = server.audited(alter)
    await server.ask(ADMIN, ALTER_USERS, deletions=(), upsertions=())
    assert server.told(ADMIN) == [
        {"type": "scram_user_changed", "outcome": "ok", "user": "bob"},
        {"type": "scram_user_changed", "outcome": "refused", "reason": "UNACCEPTABLE_CREDENTIAL", "user": "eve"},
    ]


# Everything else


@pytest.mark.parametrize(
    ("error", "reason"),
    [(MalformedMessage("broken"), "INVALID_REQUEST"), (RuntimeError("bug"), "UNKNOWN_SERVER_ERROR")],
)
async def test_a_request_that_fails_is_told_and_fails_all_the_same(
    server: Server, error: Exception, reason: str
) -> None:
    async def failing(_context: RequestContext, _body: Any) -> Any:
        raise error

    server.handler = server.audited(failing)
    with pytest.raises(type(error)):
        await server.ask(ALICE, DESCRIBE, owners=None)
    assert server.told() == [{"type": "tokens_described", "outcome": "refused", "reason": reason}]


async def test_what_cannot_be_written_down_was_done_all_the_same(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    answer = object()

    async def odd(_context: RequestContext, _body: Any) -> Any:
        return answer

    server.handler = server.audited(odd)
    assert await server.ask(ALICE, DESCRIBE, owners=None) is answer
    assert "could not be written down" in caplog.text


async def test_other_requests_are_no_events(server: Server) -> None:
    element = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1}
    values = element | {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    await server.ask(ADMIN, ApiKey.DESCRIBE_ACLS, **values)
    assert server.log.events == []


def test_each_type_of_event_but_those_without_a_request_has_an_api(server: Server) -> None:
    asked = {api.audit.kind for api in server.served if api.audit is not None}
    assert set(EventType) - asked == {EventType.LOGIN, EventType.TOKEN_REMOVED, EventType.KEYS_CHANGED}
