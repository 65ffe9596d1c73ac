"""Changes of ACLs and SCRAM users at a gateway with audit events: the cluster answers, the gateway writes it down."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.audit.durability import AuditUnavailable, Place
from kafka_dt.audit.recorder import Recorder
from kafka_dt.gateway import decided_by_cluster, upstream_side
from kafka_dt.identity.acls.binding import AclOperation, AclPermissionType, PatternType, ResourceType
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.acls.manager import AclManager
from kafka_dt.identity.credentials.scram_changes import ScramUserManager
from kafka_dt.identity.login.login import Identity
from kafka_dt.server.audited.requests import AuditedRequests, AuditedTokens
from kafka_dt.server.handlers import Handler, dispatcher
from kafka_dt.server.handlers.acls import AclHandlers
from kafka_dt.server.handlers.scram_users import ScramUserHandlers
from kafka_dt_protocol import APIS, ApiKey, RequestHeader, build, element_type, encode_response, frame
from kafka_dt_protocol.rewriting.answer_stream import MAX_OWN_BYTES
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.identity.authorization import ADMIN, MemoryAclStore, authorizer
from tests.support.identity.scram_changes import MemoryScramUserStore, deletion
from tests.support.nodes.audit import INSTANCE, NODE, NOW, Event, RecordedEvents
from tests.support.server.fake_gateway import JOIN_GROUP, FakeUpstream, GatewayShell, answer, request
from tests.support.server.fake_transport import FakeLogin, turns

CREATE, DELETE, ALTER = ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS
NEWEST = 3
TEXT = "ALLOW Read of LITERAL Topic:'{}' to User:bob from *"
UNKNOWN_TAGGED_FIELD = b"\x01\x63\x02hi"
"""Where an answer has none (a zero): one with the tag 99, as a newer broker may send."""


def handler(recorder: Recorder) -> Handler:
    """What serves these changes, over stores of the gateway that stay empty."""
    rules = authorizer()
    acls = AclHandlers(AclManager(MemoryAclStore(), AclCache()), rules)
    users = ScramUserHandlers(ScramUserManager(MemoryScramUserStore()), rules)
    audit = AuditedRequests(recorder, AuditedTokens(lambda _: None, lambda _: None))
    return dispatcher(decided_by_cluster(acls.served()), decided_by_cluster(users.served()), audit=audit)


@dataclass(frozen=True, slots=True)
class NoSink:
    """Strict mode: a sink that seems to work where `possible` says so, and writes no event."""

    possible: bool

    async def of(self, _place: Place) -> None:
        raise AuditUnavailable


class Client:
    """A client of a gateway, and what the gateway writes down."""

    def __init__(self, token_id: str | None = None, durability: NoSink | None = None) -> None:
        self.log = RecordedEvents()
        recorder = Recorder(
            self.log, node=NODE, instance=INSTANCE, now_ms=lambda: NOW, durability=cast("Any", durability)
        )
        login = FakeLogin()
        login.identity = Identity(ADMIN, ScramMechanism.SHA_256, token_id)
        self.shell = GatewayShell(handler(recorder), new_login=lambda _: login, recorder=recorder)
        self.received = self.shell.transport.written

    async def create(self, *topics: str, version: int = NEWEST) -> FakeUpstream:
        """Ask to create ACLs that let User:bob read topics."""
        element = element_type(APIS[CREATE].request[version], "creations")
        creations = tuple(build(element, **acl(topic)) for topic in topics)
        self.shell.ask(CREATE, version, creations=creations)
        return await self.shell.upstream()

    async def delete_all(self) -> FakeUpstream:
        """Ask to delete all ACLs."""
        asked = {"resource_type_filter": ResourceType.ANY, "resource_name_filter": None, "pattern_type_filter": 1}
        whose = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
        element = element_type(APIS[DELETE].request[NEWEST], "filters")
        self.shell.ask(DELETE, NEWEST, filters=(build(element, **asked, **whose),))
        return await self.shell.upstream()

    def events(self) -> list[Event]:
        """What was written down since the last call, without the client."""
        kept = ("type", "outcome", "reason", "acl", "user", "count", "entries")
        return [{key: event[key] for key in kept if key in event} for event in self.log.told()]


def acl(topic: str) -> dict[str, Any]:
    return {
        "resource_type": ResourceType.TOPIC,
        "resource_name": topic,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:bob",
        "host": "*",
        "operation": AclOperation.READ,
        "permission_type": AclPermissionType.ALLOW,
    }


def answered(api: ApiKey, correlation_id: int, version: int = NEWEST, **values: Any) -> bytes:
    """The content of an answer's frame."""
    return encode_response(api, version, correlation_id, build(APIS[api].response[version], **values))


def created(correlation_id: int, *results: tuple[ErrorCode, str | None], version: int = NEWEST) -> bytes:
    """The content of an answer to `Client.create`."""
    element = element_type(APIS[CREATE].response[version], "results")
    entities = tuple(element(error_code=code, error_message=words) for code, words in results)
    return answered(CREATE, correlation_id, version, results=entities)


def deleted(correlation_id: int, count: int = 1) -> bytes:
    """The content of an answer to `Client.delete_all`, with the same ACL some times."""
    result = element_type(APIS[DELETE].response[NEWEST], "filter_results")
    values = acl("t") | {"pattern_type": PatternType.LITERAL, "error_code": ErrorCode.none, "error_message": None}
    matching = build(element_type(result, "matching_acls"), **values)
    found = build(result, error_code=ErrorCode.none, error_message=None, matching_acls=(matching,) * count)
    return answered(DELETE, correlation_id, filter_results=(found,))


OK = (ErrorCode.none, None)
DENIED = (ErrorCode.cluster_authorization_failed, "in the cluster's words")


async def until(done: Callable[[], object]) -> AsyncIterator[None]:
    """Let other work have its turns until something is true."""
    async with asyncio.timeout(30):
        while not done():
            await asyncio.sleep(0)
            yield


@pytest.fixture
async def client() -> Client:
    return Client()


@pytest.mark.parametrize("version", APIS[CREATE].request)
async def test_the_cluster_gets_the_request_and_the_client_the_answer_as_they_came(
    client: Client, version: int
) -> None:
    upstream = await client.create("t", version=version)
    header = RequestHeader(CREATE, version, 1, "test")
    assert upstream.written[4:12] == b"\0\x1e" + version.to_bytes(2) + header.correlation_id.to_bytes(4)
    assert client.received == b""
    content = created(1, DENIED, version=version)
    if version > 1:  # flexible, so that it ends with tagged fields
        content = content[:-1] + UNKNOWN_TAGGED_FIELD
    upstream.listener.upstream_data(frame(content))
    await turns()
    assert client.received == frame(content)


async def test_the_request_goes_out_whole_as_it_came_in_pieces(client: Client) -> None:
    element = element_type(APIS[CREATE].request[NEWEST], "creations")
    whole = client.shell.request(CREATE, NEWEST, creations=(build(element, **acl("t" * 500)),))
    client.shell.send(whole[:100])
    upstream = await client.shell.upstream()
    assert upstream.written == b""
    client.shell.send(whole[100:])
    await turns()
    assert upstream.written == whole


async def test_a_request_in_tiny_pieces_takes_the_memory_of_its_bytes(client: Client) -> None:
    """And no time for the pieces that are here already: each further one was as expensive as there were others."""
    element = element_type(APIS[CREATE].request[NEWEST], "creations")
    whole = client.shell.request(CREATE, NEWEST, creations=(build(element, **acl("t" * 30_000)),))
    client.shell.send(whole[:100])
    await client.shell.upstream()
    tracemalloc.start()
    try:
        for place in range(100, len(whole) - 2, 2):
            client.shell.send(whole[place : place + 2])
        assert tracemalloc.get_traced_memory()[0] < 4 * len(whole)
    finally:
        tracemalloc.stop()


async def test_each_entry_is_written_down_with_its_own_result(client: Client) -> None:
    upstream = await client.create("a", "b", "c", "d")
    upstream.listener.upstream_data(frame(created(1, OK, DENIED, OK, DENIED)))
    await turns()
    refused = (TEXT.format("b"), TEXT.format("d"))
    assert client.events() == [
        {"type": "acl_created", "outcome": "ok", "acl": TEXT.format("a")},
        {"type": "acl_created", "outcome": "ok", "acl": TEXT.format("c")},
        {
            "type": "acl_created",
            "outcome": "refused",
            "reason": "CLUSTER_AUTHORIZATION_FAILED",
            "acl": refused[0],
            "count": 2,
            "entries": list(refused),
        },
    ]


async def test_what_a_filter_has_deleted_is_written_down_as_the_cluster_tells(client: Client) -> None:
    upstream = await client.delete_all()
    upstream.listener.upstream_data(frame(deleted(1)))
    await turns()
    assert client.events() == [{"type": "acl_deleted", "outcome": "ok", "acl": TEXT.format("t")}]


async def test_a_change_of_a_scram_user_is_written_down_as_the_cluster_tells(client: Client) -> None:
    client.shell.ask(ALTER, 0, deletions=(deletion("carol"),), upsertions=())
    upstream = await client.shell.upstream()
    result = element_type(APIS[ALTER].response[0], "results")(user="carol", error_code=0, error_message=None)
    upstream.listener.upstream_data(frame(answered(ALTER, 1, 0, results=(result,))))
    await turns()
    assert client.events() == [{"type": "scram_user_changed", "outcome": "ok", "user": "carol"}]


async def test_a_client_with_a_token_is_refused_here_and_the_refusal_is_written_down() -> None:
    client = Client("a token")
    client.shell.ask(ALTER, 0, deletions=(deletion("carol"),), upsertions=())
    await turns()
    assert client.shell.connector.made == []
    (event,) = client.events()
    assert (event["reason"], event["user"]) == ("DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", "carol")


async def test_answers_keep_the_order_of_requests(client: Client) -> None:
    client.shell.send(request(JOIN_GROUP, 7))
    upstream = await client.create("a")
    client.shell.send(request(JOIN_GROUP, 8))
    assert upstream.written == request(JOIN_GROUP, 7), "the change waits for what came before it"
    upstream.answer(7)
    await turns()
    asked = len(upstream.written)
    client.shell.send(request(JOIN_GROUP, 9))
    await turns()
    assert len(upstream.written) == asked, "nothing overtakes the change"
    upstream.listener.upstream_data(frame(created(1, OK)))
    await turns()
    assert upstream.written.endswith(request(JOIN_GROUP, 8) + request(JOIN_GROUP, 9))
    upstream.answer(8)
    upstream.answer(9)
    assert client.received == answer(7) + frame(created(1, OK)) + answer(8) + answer(9)


async def test_a_long_answer_is_read_as_well(client: Client) -> None:
    words = "w" * 30_000
    count = MAX_OWN_BYTES // len(words) + 1
    upstream = await client.create(*map(str, range(count)))
    content = created(1, *[(ErrorCode.cluster_authorization_failed, words)] * count)
    upstream.listener.upstream_data(frame(content))
    async for _ in until(lambda: bool(client.received)):
        pass
    assert client.received == frame(content)
    (event,) = client.events()
    assert event["count"] == count


async def test_other_clients_have_their_turn_while_a_long_answer_is_read(client: Client) -> None:
    upstream = await client.delete_all()
    upstream.listener.upstream_data(frame(deleted(1, count=20_000)))
    turns_of_others = 0
    async for _ in until(client.log.told):
        turns_of_others += 1
    assert turns_of_others > 100


@pytest.mark.parametrize("leave", ["lost", "half-closed", "token ended"])
async def test_a_client_that_goes_leaves_the_event_of_what_the_cluster_did(client: Client, leave: str) -> None:
    upstream = await client.create("a")
    match leave:
        case "lost":
            client.shell.transport.abort()
        case "half-closed":
            client.shell.connection.eof_received()
        case _:
            client.shell.connection.revoke()
    await turns()
    assert not upstream.closed
    upstream.listener.upstream_data(frame(created(1, OK)))
    await turns()
    assert client.events() == [{"type": "acl_created", "outcome": "ok", "acl": TEXT.format("a")}]
    assert upstream.closed


def by_loss(upstream: FakeUpstream) -> None:
    upstream.listener.upstream_lost("it closed the connection")


def by_nonsense(upstream: FakeUpstream) -> None:
    upstream.answer(4711)


def by_an_answer_cut_short(upstream: FakeUpstream) -> None:
    upstream.listener.upstream_data(frame(created(1, OK)[:-2]))


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        (by_loss, "REQUEST_TIMED_OUT"),
        (by_nonsense, "REQUEST_TIMED_OUT"),
        (by_an_answer_cut_short, "UNKNOWN_SERVER_ERROR"),
    ],
)
async def test_a_change_without_an_answer_is_written_down_and_closes_the_connection(
    client: Client, fail: Callable[[FakeUpstream], None], reason: str
) -> None:
    upstream = await client.create("a")
    fail(upstream)
    await turns()
    assert client.events() == [{"type": "acl_created", "outcome": "refused", "reason": reason, "acl": TEXT.format("a")}]
    assert client.received == b""
    assert client.shell.transport.closed


async def test_a_cluster_that_never_answers_a_client_that_has_gone_is_left(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream_side, "ANSWER_S", 0.0)
    upstream = await client.create("a")
    client.shell.transport.abort()
    await turns()
    assert upstream.closed
    (event,) = client.events()
    assert event["reason"] == "REQUEST_TIMED_OUT"


async def test_a_cluster_that_never_answers_a_client_that_waits_is_left(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream_side, "ANSWER_S", 0.0)
    upstream = await client.create("a")
    await turns()
    assert upstream.aborted
    (event,) = client.events()
    assert event["reason"] == "REQUEST_TIMED_OUT"
    assert client.received == b""
    assert client.shell.transport.closed


async def test_a_version_that_is_not_known_here_goes_nowhere(client: Client) -> None:
    client.shell.send(request(CREATE, 1, version=4))
    upstream = await client.shell.upstream()
    await turns()
    assert client.shell.transport.closed
    assert upstream.written == b""


async def test_without_audit_events_every_version_goes_through() -> None:
    shell = GatewayShell()
    shell.send(request(CREATE, 1, version=4))
    assert (await shell.upstream()).written == request(CREATE, 1, version=4)


async def test_in_strict_mode_nothing_is_forwarded_while_no_sink_works() -> None:
    client = Client(durability=NoSink(possible=False))
    upstream = await client.create("a")
    await turns()
    assert upstream.written == b""
    (refused,) = client.shell.answers()
    assert [result.error_code for result in refused.results] == [ErrorCode.request_timed_out]
    assert client.shell.forwarding.held_bytes == 0, "the request is forgotten"


async def test_in_strict_mode_a_change_whose_event_is_lost_is_not_acknowledged() -> None:
    client = Client(durability=NoSink(possible=True))
    upstream = await client.create("a")
    upstream.listener.upstream_data(frame(created(1, OK)))
    await turns()
    (refused,) = client.shell.answers()
    assert [result.error_code for result in refused.results] == [ErrorCode.request_timed_out]
