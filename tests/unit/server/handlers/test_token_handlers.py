"""The four token APIs: each answer and each refusal, in every version, on a store in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.config import Endpoint, SecurityProtocol
from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.server.handlers import RequestContext, dispatcher
from kafka_dt.tokens import (
    ANONYMOUS,
    CreationLimits,
    OwnConnection,
    Principal,
    SecretKey,
    StoreUnavailable,
    TokenLimits,
)
from kafka_dt.tokens.manager import TokenManager
from kafka_dt_protocol import APIS, ApiKey, RequestHeader, build, decode_response, element_type, encode_response
from kafka_dt_protocol.wire.times import from_timestamp, to_duration
from tests.support.server.parts import token_handlers
from tests.support.tokens.nodes import ALICE, BOB, CAROL, DAY, HOUR, MALLORY, SECRET_KEY, START, Cluster, Node

CREATE, RENEW = ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN
EXPIRE, DESCRIBE = ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN
ADMIN = Principal.user("admin")
UNKNOWN_HMAC = bytes(64)
OWNERLESS: Mapping[str, Any] = {"owner_principal_type": None, "owner_principal_name": None}


@dataclass
class Server:
    """The handlers on a node in memory, asked as clients ask."""

    secret_key: SecretKey | None = SECRET_KEY
    allow_everyone: bool = True
    security_protocol: SecurityProtocol = SecurityProtocol.SASL_PLAINTEXT
    token_login: bool = False
    own: OwnConnection | None = None
    cluster: Cluster = field(default_factory=Cluster)

    def __post_init__(self) -> None:
        self.node: Node = self.cluster.node(self.secret_key)
        authorizer = Authorizer(
            AclCache(),
            enabled=True,
            super_users=frozenset({ADMIN}),
            allow_everyone=self.allow_everyone,
            super_users_revoke_any=True,
        )
        self._handler = dispatcher(token_handlers(self.node, authorizer))

    async def ask(self, principal: Principal, api: ApiKey, version: int | None = None, **values: Any) -> Any:
        """Ask as `principal`; in the newest version unless another is given."""
        asked = APIS[api].max_version if version is None else version
        context = RequestContext(
            header=RequestHeader(api, asked, 1, "test"),
            principal=principal,
            client_host="127.0.0.1",
            token_login=self.token_login,
            security_protocol=self.security_protocol,
            endpoint=Endpoint("SASL_PLAINTEXT", "localhost", 9092),
            own=self.own,
        )
        answer = await self._handler(context, build(APIS[api].request[asked], **values))
        assert type(answer) is APIS[api].response[asked]
        _, received = decode_response(api, asked, encode_response(api, asked, 1, answer))
        return received

    async def create(
        self, principal: Principal = ALICE, version: int | None = None, renewers: tuple[Any, ...] = (), **values: Any
    ) -> Any:
        asked = APIS[CREATE].max_version if version is None else version
        element = element_type(APIS[CREATE].request[asked], "renewers")
        entities = tuple(element(principal_type=each.type, principal_name=each.name) for each in renewers)
        wanted = {"max_lifetime": to_duration(-1), **OWNERLESS, **values}
        return await self.ask(principal, CREATE, asked, renewers=entities, **wanted)

    async def renew(self, principal: Principal, hmac: bytes, period_ms: int = -1, version: int | None = None) -> Any:
        return await self.ask(principal, RENEW, version, hmac=hmac, renew_period=to_duration(period_ms))

    async def expire(self, principal: Principal, hmac: bytes, period_ms: int = -1, version: int | None = None) -> Any:
        return await self.ask(principal, EXPIRE, version, hmac=hmac, expiry_time_period=to_duration(period_ms))

    async def describe(
        self, principal: Principal, owners: tuple[Principal, ...] | None = None, version: int | None = None
    ) -> Any:
        asked = APIS[DESCRIBE].max_version if version is None else version
        element = element_type(APIS[DESCRIBE].request[asked], "owners")
        entities = (
            None
            if owners is None
            else tuple(element(principal_type=each.type, principal_name=each.name) for each in owners)
        )
        return await self.ask(principal, DESCRIBE, asked, owners=entities)


def code(answer: Any) -> int:
    value: int = answer.error_code.value
    return value


# Create


@pytest.mark.parametrize("version", range(4))
async def test_a_token_is_created_in_every_version(version: int) -> None:
    server = Server()
    answer = await server.create(version=version, renewers=(BOB,))
    assert code(answer) == 0
    assert (answer.principal_type, answer.principal_name) == ("User", "alice")
    assert from_timestamp(answer.issue_timestamp) == START
    assert from_timestamp(answer.expiry_timestamp) == START + DAY
    assert from_timestamp(answer.max_timestamp) == START + 7 * DAY
    assert len(answer.hmac) == 64
    stored = server.cluster.stored(answer.token_id)
    assert stored is not None
    assert stored.renewers == (BOB,)
    assert server.node.cache.by_hmac(answer.hmac) is not None


async def test_a_token_for_another_owner_shows_both() -> None:
    answer = await Server().create(ALICE, owner_principal_type="Group", owner_principal_name="ops")
    assert code(answer) == 0
    assert (answer.principal_type, answer.principal_name) == ("Group", "ops")
    assert (answer.token_requester_principal_type, answer.token_requester_principal_name) == ("User", "alice")


@pytest.mark.parametrize("version", range(4))
async def test_a_token_with_more_renewers_than_can_be_stored_is_an_invalid_request(version: int) -> None:
    server = Server()
    answer = await server.create(version=version, renewers=(Principal.user("r" * 1_000),) * 1_000)
    assert answer.error_code is ErrorCode.invalid_request
    assert server.cluster.database.tokens == {}


@pytest.mark.parametrize("kind", [None, "User", "Group", ""])
@pytest.mark.parametrize("name", [None, ""])
async def test_an_owner_without_a_name_is_the_requester_whatever_its_type(kind: str | None, name: str | None) -> None:
    answer = await Server(allow_everyone=False).create(ALICE, owner_principal_type=kind, owner_principal_name=name)
    assert (code(answer), answer.principal_type, answer.principal_name) == (0, "User", "alice")


@pytest.mark.parametrize("kind", [None, "", "Us:er", ":"])
async def test_an_owner_without_a_valid_type_is_refused(kind: str | None) -> None:
    server = Server()
    answer = await server.create(ALICE, owner_principal_type=kind, owner_principal_name="bob")
    assert answer.error_code is ErrorCode.invalid_principal_type
    assert server.cluster.database.tokens == {}


async def test_a_token_for_another_needs_a_right() -> None:
    server = Server(allow_everyone=False)
    bobs: dict[str, Any] = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    assert code(await server.create(ALICE, **bobs)) == 65
    assert code(await server.create(BOB, **bobs)) == 0
    assert code(await server.create(ADMIN, **bobs)) == 0


async def test_of_a_client_with_a_connection_of_its_own_the_store_decides_whether_it_may_create_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    async def create(*_: object, own: object) -> None:
        asked.append(own)
        raise StoreUnavailable("the test has no cluster")

    monkeypatch.setattr(TokenManager, "create", create)
    server = Server(allow_everyone=False, own=object())
    assert code(await server.create(ALICE, owner_principal_type="User", owner_principal_name="bob")) == 7
    assert asked == [server.own]
    server.token_login = True
    assert code(await server.create(ALICE)) == 64


@pytest.mark.parametrize("kind", ["Group", "user", "", "USER"])
async def test_a_renewer_that_is_no_user_is_refused(kind: str) -> None:
    assert code(await Server().create(renewers=(BOB, Principal(kind, "ops")))) == 67


async def test_the_owner_is_looked_at_before_the_renewers() -> None:
    server = Server(allow_everyone=False)
    answer = await server.create(
        ALICE, renewers=(Principal("Group", "ops"),), owner_principal_type="User", owner_principal_name="bob"
    )
    assert code(answer) == 65


@pytest.mark.parametrize("version", range(4))
async def test_a_refused_create_carries_who_would_have_owned_the_token_and_no_times(version: int) -> None:
    answer = await Server(secret_key=None).create(MALLORY, version=version)
    assert code(answer) == 61
    assert (answer.principal_type, answer.principal_name) == ("User", "mallory")
    times = (answer.issue_timestamp, answer.expiry_timestamp, answer.max_timestamp)
    assert [from_timestamp(each) for each in times] == [-1, -1, -1]
    assert (answer.token_id, answer.hmac) == ("", b"")


async def test_a_lifetime_is_cut_to_the_limit() -> None:
    server = Server()
    short = await server.create(max_lifetime=to_duration(HOUR))
    assert from_timestamp(short.max_timestamp) == from_timestamp(short.expiry_timestamp) == START + HOUR
    for lifetime in (0, -5, 2**63 - 1):
        answer = await server.create(max_lifetime=to_duration(lifetime))
        assert from_timestamp(answer.max_timestamp) == START + 7 * DAY


LIMITS = {
    "tokens_per_owner": ("kafka.dt.tokens.per.owner.max", 44, 0),
    "creates_per_minute": ("kafka.dt.token.creates.per.minute.max", 89, 1_000),
    "renewers": ("kafka.dt.token.renewers.max", 44, 0),
    "token_bytes": ("kafka.dt.token.bytes.max", 44, 0),
}


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("limit", LIMITS)
async def test_a_create_beyond_a_limit_is_refused_and_a_line_of_the_log_names_the_setting(
    limit: str, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    setting, expected, throttle_ms = LIMITS[limit]
    limits = TokenLimits(creations=CreationLimits(**{limit: 0}))
    server = Server(cluster=Cluster(limits=limits))
    answer = await server.create(ADMIN, version, renewers=(BOB,))
    assert (code(answer), from_timestamp(answer.expiry_timestamp), answer.hmac) == (expected, -1, b"")
    assert answer.throttle_time == to_duration(throttle_ms)
    assert server.cluster.database.tokens == {}
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert f"{setting}=0" in line


# Renew and expire


@pytest.mark.parametrize("version", range(3))
async def test_owner_and_renewers_renew_and_expire_in_every_version(version: int) -> None:
    server = Server()
    hmac = (await server.create(renewers=(BOB,))).hmac
    server.cluster.clock.now_ms += HOUR
    renewed = await server.renew(ALICE, hmac, version=version)
    assert (code(renewed), from_timestamp(renewed.expiry_timestamp)) == (0, START + HOUR + DAY)
    shortened = await server.expire(BOB, hmac, HOUR, version=version)
    assert (code(shortened), from_timestamp(shortened.expiry_timestamp)) == (0, START + 2 * HOUR)
    deleted = await server.expire(ALICE, hmac, version=version)
    assert (code(deleted), from_timestamp(deleted.expiry_timestamp)) == (0, START + HOUR)
    assert server.cluster.database.tokens == {}


@pytest.mark.parametrize("period_ms", [2**63 - 1, 30 * DAY])
async def test_no_renewal_goes_beyond_the_max_timestamp(period_ms: int) -> None:
    server = Server()
    hmac = (await server.create()).hmac
    answer = await server.renew(ALICE, hmac, period_ms)
    assert (code(answer), from_timestamp(answer.expiry_timestamp)) == (0, START + 7 * DAY)


@pytest.mark.parametrize("version", range(3))
async def test_refused_changes_carry_no_time(version: int) -> None:
    server = Server()
    for answer in (
        await server.renew(ALICE, UNKNOWN_HMAC, version=version),
        await server.expire(ALICE, UNKNOWN_HMAC, version=version),
    ):
        assert (code(answer), from_timestamp(answer.expiry_timestamp)) == (62, -1)


@pytest.mark.parametrize("hmac", [b"", b"short", bytes(63), bytes(65)])
async def test_an_hmac_of_another_length_is_nobodys(hmac: bytes) -> None:
    server = Server()
    assert code(await server.renew(ALICE, hmac)) == 62
    assert server.node.store.catch_ups == 0


async def test_strangers_may_neither_renew_nor_expire() -> None:
    server = Server()
    hmac = (await server.create(renewers=(BOB,))).hmac
    for principal in (MALLORY, Principal("Group", "alice")):
        assert code(await server.renew(principal, hmac)) == 63
        assert code(await server.expire(principal, hmac)) == 63


async def test_a_super_user_expires_any_token_and_renews_none() -> None:
    server = Server()
    hmac = (await server.create()).hmac
    assert code(await server.renew(ADMIN, hmac)) == 63
    assert code(await server.expire(ADMIN, hmac)) == 0
    assert server.cluster.database.tokens == {}


async def test_an_expired_token_can_only_be_deleted() -> None:
    server = Server()
    hmac = (await server.create()).hmac
    server.cluster.clock.now_ms += DAY + 1
    assert code(await server.renew(ALICE, hmac)) == 66
    assert code(await server.expire(ALICE, hmac, HOUR)) == 66
    assert code(await server.renew(MALLORY, hmac)) == 63
    assert code(await server.expire(ALICE, hmac)) == 0
    assert code(await server.expire(ALICE, hmac)) == 62


# Describe


@pytest.mark.parametrize("version", range(4))
async def test_tokens_are_described_in_every_version(version: int) -> None:
    server = Server()
    made = await server.create(renewers=(BOB, CAROL, BOB))
    (token,) = (await server.describe(ALICE, version=version)).tokens
    assert (token.token_id, token.hmac) == (made.token_id, made.hmac)
    assert (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp) == (START, START + DAY, START + 7 * DAY)
    assert [each.principal_name for each in token.renewers] == ["bob", "carol", "bob"]
    assert getattr(token, "token_requester_principal_name", "alice") == "alice"


@pytest.mark.parametrize("version", range(4))
async def test_a_token_that_has_changed_is_described_as_it_is_now(version: int) -> None:
    server = Server()
    hmac = (await server.create()).hmac
    before = await server.describe(version=version, principal=ALICE)
    assert await server.describe(version=version, principal=ALICE) == before
    server.cluster.clock.now_ms += HOUR
    await server.renew(ALICE, hmac)
    (token,) = (await server.describe(version=version, principal=ALICE)).tokens
    assert token.expiry_timestamp == START + HOUR + DAY
    await server.expire(ALICE, hmac)
    assert (await server.describe(version=version, principal=ALICE)).tokens == ()


async def test_describe_selects_by_owner_and_renewer_and_shows_what_may_be_seen() -> None:
    server = Server(allow_everyone=False)
    alices = (await server.create(ALICE)).token_id
    bobs = (await server.create(BOB, renewers=(ALICE,))).token_id
    carols = (await server.create(CAROL)).token_id

    async def seen(principal: Principal, *owners: Principal) -> set[str]:
        answer = await server.describe(principal, owners or None)
        return {token.token_id for token in answer.tokens}

    assert await seen(ALICE) == {alices, bobs}
    assert await seen(BOB) == {bobs}
    assert await seen(ALICE, BOB) == {bobs}
    assert await seen(ALICE, CAROL) == set()
    assert await seen(ADMIN) == {alices, bobs, carols}
    assert await seen(ADMIN, Principal("Group", "alice")) == set()
    assert (await server.describe(ADMIN, ())).tokens == ()


# Refusals of all four


async def all_four(server: Server, version: int | None = None) -> list[Any]:
    return [
        await server.create(ALICE, version),
        await server.renew(ALICE, UNKNOWN_HMAC, version=version),
        await server.expire(ALICE, UNKNOWN_HMAC, version=version),
        await server.describe(ALICE, version=version),
    ]


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"secret_key": None}, 61),
        ({"token_login": True}, 64),
        ({"token_login": True, "secret_key": None}, 64),
        ({"security_protocol": SecurityProtocol.PLAINTEXT}, 64),
    ],
)
async def test_all_requests_about_tokens_are_refused(changes: dict[str, Any], expected: int, version: int) -> None:
    server = Server(**changes)
    answers = await all_four(server, version)
    assert [code(answer) for answer in answers] == [expected] * 4
    assert [from_timestamp(answer.expiry_timestamp) for answer in answers[:3]] == [-1] * 3
    assert answers[3].tokens == ()


async def test_a_tls_client_without_certificate_may_not_ask() -> None:
    server = Server(security_protocol=SecurityProtocol.SSL)
    assert code(await server.create(ANONYMOUS)) == 64
    assert code(await server.create(ALICE)) == 0


async def test_the_way_in_is_looked_at_before_the_right() -> None:
    server = Server(token_login=True, allow_everyone=False)
    answer = await server.create(ALICE, owner_principal_type="User", owner_principal_name="bob")
    assert (code(answer), answer.principal_name, answer.token_requester_principal_name) == (64, "bob", "alice")


async def test_without_a_store_changes_are_refused_with_a_retriable_error_and_describe_goes_on() -> None:
    server = Server()
    made = await server.create()
    server.node.store.connected = False
    answers = [await server.create(), await server.renew(ALICE, made.hmac), await server.expire(ALICE, made.hmac)]
    assert {answer.error_code for answer in answers} == {ErrorCode.request_timed_out}
    assert len((await server.describe(ALICE)).tokens) == 1
    server.node.store.stale_ms = 31_000
    assert (await server.describe(ALICE)).error_code is ErrorCode.request_timed_out
