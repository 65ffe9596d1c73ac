"""DescribeUserScramCredentials and AlterUserScramCredentials: each answer and each refusal, on a store in memory."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.config import Endpoint, SecurityProtocol
from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.credentials.scram_changes import ScramUserManager
from kafka_dt.server.handlers import RequestContext, dispatcher
from kafka_dt.server.handlers.scram_users import ScramUserHandlers
from kafka_dt.tokens import Principal
from kafka_dt_protocol import APIS, ApiKey, RequestHeader, build
from kafka_dt_protocol.sasl import ScramMechanism
from kafka_dt_protocol.wire.encoding import encode
from tests.support.identity.scram_changes import MemoryScramUserStore, deletion, names, salted_password, upsertion

DESCRIBE, ALTER = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS
ADMIN, ALICE = Principal.user("admin"), Principal.user("alice")


@dataclass
class Server:
    """The handlers, asked as clients ask; only the super user may do anything."""

    token_login: bool = False
    store: MemoryScramUserStore = field(default_factory=MemoryScramUserStore)

    def __post_init__(self) -> None:
        authorizer = Authorizer(
            AclCache(), enabled=True, super_users=frozenset({ADMIN}), allow_everyone=False, super_users_revoke_any=True
        )
        self._handler = dispatcher(ScramUserHandlers(ScramUserManager(self.store), authorizer).served())

    async def ask(self, principal: Principal, api: ApiKey, **values: Any) -> Any:
        context = RequestContext(
            header=RequestHeader(api, 0, 1, "test"),
            principal=principal,
            client_host="127.0.0.1",
            token_login=self.token_login,
            security_protocol=SecurityProtocol.SASL_PLAINTEXT,
            endpoint=Endpoint("SASL_PLAINTEXT", "localhost", 9092),
        )
        answer = await self._handler(context, build(APIS[api].request[0], **values))
        assert type(answer) is APIS[api].response[0]
        assert encode(answer)
        return answer

    async def alter(
        self, *upsertions: Any, deletions: tuple[Any, ...] = (), principal: Principal = ADMIN
    ) -> dict[str, int]:
        answer = await self.ask(principal, ALTER, deletions=deletions, upsertions=upsertions)
        return {result.user: result.error_code.value for result in answer.results}

    async def describe(self, *users: str, principal: Principal = ADMIN) -> Any:
        return await self.ask(principal, DESCRIBE, users=names(*users))


async def test_users_are_altered_and_described() -> None:
    server = Server()
    assert await server.alter(upsertion("alice"), upsertion("alice", mechanism=2, iterations=8192), upsertion("")) == {
        "": 93,
        "alice": 0,
    }
    answer = await server.describe()
    (alice,) = answer.results
    assert (answer.error_code, alice.user, alice.error_code) == (ErrorCode.none, "alice", ErrorCode.none)
    assert [(info.mechanism, info.iterations) for info in alice.credential_infos] == [(1, 4096), (2, 8192)]
    assert await server.alter(deletions=(deletion("alice"), deletion("bob"))) == {"alice": 0, "bob": 91}
    (alice,) = (await server.describe("alice")).results
    assert [info.mechanism for info in alice.credential_infos] == [2]


async def test_each_error_of_a_user_has_its_code_and_a_text() -> None:
    server = Server()
    answer = await server.ask(
        ADMIN,
        ALTER,
        deletions=(deletion("nobody"), deletion("unknown", 3)),
        upsertions=(upsertion("few", iterations=1), upsertion("twice"), upsertion("twice")),
    )
    assert {each.user: each.error_code.value for each in answer.results} == {
        "nobody": 91,
        "unknown": 33,
        "few": 93,
        "twice": 92,
    }
    assert all(each.error_message for each in answer.results)


async def test_null_and_no_users_are_all_users() -> None:
    server = Server()
    await server.alter(upsertion("alice"), upsertion("bob"))
    for users in (None, ()):
        answer = await server.ask(ADMIN, DESCRIBE, users=users)
        assert [each.user for each in answer.results] == ["alice", "bob"]


async def test_who_may_not_use_the_cluster_changes_and_sees_nothing() -> None:
    server = Server()
    await server.alter(upsertion("bob"))
    altered = await server.alter(upsertion("eve"), deletions=(deletion("bob"),), principal=ALICE)
    assert altered == {"bob": 31, "eve": 31}
    assert list(server.store.users) == ["bob"]
    assert server.store.users["bob"]
    described = await server.describe("bob", principal=ALICE)
    assert (described.error_code, described.results) == (ErrorCode.cluster_authorization_failed, ())


async def test_a_login_by_token_may_not_alter_but_describe() -> None:
    server = Server(token_login=True)
    assert await server.alter(upsertion("eve"), deletions=(deletion("bob"),)) == {"bob": 64, "eve": 64}
    assert server.store.users == {}
    assert (await server.describe()).error_code is ErrorCode.none


async def test_a_store_that_cannot_be_reached_is_retriable() -> None:
    server = Server()
    server.store.unavailable = True
    assert await server.alter(upsertion("alice")) == {"alice": 7}
    described = await server.describe()
    assert (described.error_code, described.results) == (ErrorCode.request_timed_out, ())


async def test_the_log_names_caller_and_users_and_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server = Server()
    await server.alter(upsertion("bob\nfaked line"), deletions=(deletion("eve"),))
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].startswith("User:admin could not alter (The user has no such SCRAM credential) the SCRAM cred")
    assert lines[1] == r"User:admin altered the SCRAM credentials of 'bob\nfaked line'"
    secret = salted_password(ScramMechanism.SHA_256, "secret")
    assert not any(repr(secret)[2:-1] in line or secret.hex() in line for line in lines)
