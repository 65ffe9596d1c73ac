"""What the gateway itself refuses, because the cluster behind it would let a stolen token outlive its revocation."""

from __future__ import annotations

import pytest

from kafka_dt.identity.credentials.scram_changes import ScramUserManager
from kafka_dt.identity.login.login import Identity
from kafka_dt.server.handlers import dispatcher
from kafka_dt.server.handlers.scram_users import ScramUserHandlers
from kafka_dt_protocol import ApiKey
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.identity.authorization import ADMIN, authorizer
from tests.support.identity.scram_changes import MemoryScramUserStore, deletion, upsertion
from tests.support.server.fake_gateway import JOIN_GROUP, GatewayShell, request
from tests.support.server.fake_transport import FakeLogin, turns

ALTER = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
DESCRIBE = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
ENVELOPE = 58


class Client:
    """A super user's connection, to a gateway that could alter users of its own: so nothing but the login refuses."""

    def __init__(self, token_id: str | None) -> None:
        self.users = MemoryScramUserStore()
        handlers = ScramUserHandlers(ScramUserManager(self.users), authorizer())
        self.login = FakeLogin()
        self.shell = GatewayShell(dispatcher(handlers.served()), new_login=lambda _: self.login)
        self.log_in(token_id)

    def log_in(self, token_id: str | None) -> None:
        self.login.identity = Identity(ADMIN, ScramMechanism.SHA_256, token_id)

    async def alter(self) -> None:
        self.shell.ask(ALTER, 0, deletions=(deletion("bob"),), upsertions=(upsertion("eve"),))
        await turns()

    def forwarded(self) -> bytes:
        return b"".join(bytes(each.written) for each in self.shell.connector.made)


async def test_who_logged_in_with_a_token_alters_no_users_upstream_and_none_here() -> None:
    client = Client("a token")
    await client.alter()
    (answer,) = client.shell.answers()
    assert {result.user: result.error_code.value for result in answer.results} == {"bob": 64, "eve": 64}
    assert client.forwarded() == b""
    assert client.users.users == {}
    assert not client.shell.transport.closed


async def test_who_logged_in_with_a_password_alters_the_users_upstream() -> None:
    client = Client(None)
    await client.alter()
    assert client.forwarded()
    assert client.shell.answers() == []
    assert client.users.users == {}


async def test_the_last_login_of_a_connection_says_whether_it_is_by_token() -> None:
    client = Client(None)
    client.log_in("a token")
    await client.alter()
    assert client.forwarded() == b""
    assert len(client.shell.answers()) == 1


async def test_the_refusal_waits_for_the_answers_to_earlier_requests() -> None:
    client = Client("a token")
    client.shell.send(request(JOIN_GROUP, 1))
    upstream = await client.shell.upstream()
    client.shell.request(ApiKey.METADATA, 0, topics=())  # takes the number of the request above
    await client.alter()
    assert not client.shell.transport.written
    upstream.written.clear()
    upstream.answer(1)
    await turns()
    assert client.shell.transport.written
    assert upstream.written == b""


async def test_who_logged_in_with_a_token_may_ask_which_users_there_are_upstream() -> None:
    client = Client("a token")
    client.shell.ask(DESCRIBE, 0, users=None)
    await turns()
    assert client.forwarded()


@pytest.mark.parametrize("token_id", ["a token", None])
async def test_an_envelope_with_the_request_of_somebody_else_is_not_forwarded(
    token_id: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    client = Client(token_id)
    client.shell.send(request(ENVELOPE, 1, version=0))
    await turns()
    assert client.forwarded() == b""
    assert client.shell.transport.closed
    assert "API 58 is for brokers only and not forwarded" in caplog.text
