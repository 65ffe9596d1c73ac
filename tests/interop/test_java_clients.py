"""Unmodified Java clients of the last Kafka with ZooKeeper and of the newest one, against kafka-dt."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.brokers.broker import USERS
from tests.support.java.properties import SCRAM_MECHANISMS, TokenLogin, plain, token
from tests.support.java.reference_client import JavaClientError, JavaSession, ReferenceClient
from tests.support.java.tools import KafkaTools, ToolResult, parse_tokens
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.processes.waiting import again_if_lost, eventually

ALICE = plain("alice", USERS["alice"])
BOB = plain("bob", USERS["bob"])
DAY_MS = 86_400_000
TOLERANCE_MS = 10_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def alice(java_client: ReferenceClient, server: KafkaDt) -> Iterator[JavaSession]:
    with java_client.open(server.sasl, ALICE) as session:
        yield session


@pytest.fixture
def bob(java_client: ReferenceClient, server: KafkaDt) -> Iterator[JavaSession]:
    with java_client.open(server.sasl, BOB) as session:
        yield session


def tokens_tool(tools: KafkaTools, server: KafkaDt, *arguments: str) -> ToolResult:
    return tools.delegation_tokens(server.sasl, ALICE, *arguments)


@pytest.mark.client("java", "tokens")
def test_the_token_tool_creates_renews_describes_and_expires(tools: KafkaTools, server: KafkaDt) -> None:
    options = ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    (created,) = parse_tokens(tokens_tool(tools, server, *options).ok().stdout)
    assert (created.owner, created.requester, created.renewers) == ("User:alice", "User:alice", ("User:bob",))

    renewed = tokens_tool(tools, server, "--renew", "--renew-time-period", "-1", "--hmac", created.hmac).ok()
    assert "Completed renew operation" in renewed.stdout

    listed = tokens_tool(tools, server, "--describe", "--owner-principal", "User:alice").ok()
    (row,) = [each for each in parse_tokens(listed.stdout) if each.token_id == created.token_id]
    assert (row.hmac, row.max_date) == (created.hmac, created.max_date)
    without_owner = tokens_tool(tools, server, "--describe").ok()
    assert parse_tokens(without_owner.stdout) == [], "the tool names no owner, and a broker lists no token either"

    expired = tokens_tool(tools, server, "--expire", "--expiry-time-period", "-1", "--hmac", created.hmac).ok()
    assert "Completed expire operation" in expired.stdout
    again = tokens_tool(tools, server, "--expire", "--expiry-time-period", "-1", "--hmac", created.hmac)
    assert again.status == 1
    assert "DelegationTokenNotFoundException" in again.stderr


@pytest.mark.client("java", "login")
def test_tools_log_in_with_a_token(tools: KafkaTools, server: KafkaDt) -> None:
    created = tokens_tool(tools, server, "--create", "--max-life-time-period", "60000").ok()
    login = parse_tokens(created.stdout)[0].login
    versions = tools.broker_api_versions(server.sasl, token(login, "SCRAM-SHA-256")).ok()
    assert "CreateDelegationToken(38): 0 to 3 [usable: 3]" in versions.stdout
    assert tools.topics(server.sasl, token(login, "SCRAM-SHA-512"), "--list").ok().stdout.strip() == ""
    refused = tools.delegation_tokens(server.sasl, token(login), "--create", "--max-life-time-period", "-1")
    assert refused.status == 1
    assert "UnsupportedByAuthenticationException" in refused.stderr


def test_a_wrong_secret_is_refused_with_the_words_of_a_broker(tools: KafkaTools, server: KafkaDt) -> None:
    wrong = token(TokenLogin("AAAAAAAAAAAAAAAAAAAAAA", "d3Jvbmc="))
    refused = tools.topics(server.sasl, wrong, "--list")
    assert refused.status == 1
    assert "due to invalid credentials with SASL mechanism SCRAM-SHA-256" in refused.stdout + refused.stderr


def test_the_admin_client_reads_every_field_of_a_token(alice: JavaSession) -> None:
    created = alice.create(renewers=["User:bob", "User:carol"], max_lifetime_ms=2 * DAY_MS)
    assert created.max_timestamp_ms == created.issue_timestamp_ms + 2 * DAY_MS
    assert created.expiry_timestamp_ms == created.issue_timestamp_ms + DAY_MS
    assert created.renewers == ("User:bob", "User:carol")
    assert created in alice.describe()
    assert created in alice.describe(["User:carol"])
    assert created not in alice.describe(["User:bob2"])
    assert alice.describe([]) == []


def test_owner_and_renewer_change_the_expiry_within_the_maximum(alice: JavaSession, bob: JavaSession) -> None:
    created = alice.create(renewers=["User:bob"])
    assert abs(bob.renew(created.hmac, 60_000) - now_ms() - 60_000) < TOLERANCE_MS
    assert alice.renew(created.hmac, 30 * DAY_MS) == created.max_timestamp_ms
    assert abs(alice.expire(created.hmac, 60_000) - now_ms() - 60_000) < TOLERANCE_MS
    assert abs(bob.expire(created.hmac) - now_ms()) < TOLERANCE_MS


def test_a_token_made_for_another_owner_logs_in_as_that_owner(
    alice: JavaSession, bob: JavaSession, java_client: ReferenceClient, server: KafkaDt
) -> None:
    created = alice.create(owner="User:bob")
    assert (created.owner, created.requester) == ("User:bob", "User:alice")
    bob.renew(created.hmac)
    with java_client.open(server.sasl, token(created.login)) as holder:
        assert holder.cluster() == alice.cluster()


def test_refusals_are_the_exceptions_that_applications_catch(alice: JavaSession, bob: JavaSession) -> None:
    created = alice.create()
    with pytest.raises(JavaClientError, match="DelegationTokenOwnerMismatchException"):
        bob.renew(created.hmac)
    with pytest.raises(JavaClientError, match="InvalidPrincipalTypeException"):
        alice.create(renewers=["Group:admins"])
    with pytest.raises(JavaClientError, match="DelegationTokenNotFoundException"):
        alice.expire("d3Jvbmc=")
    expiry_ms = alice.expire(created.hmac, 0)
    eventually(lambda: now_ms() > expiry_ms, within_s=1)
    with pytest.raises(JavaClientError, match="DelegationTokenExpiredException"):
        alice.renew(created.hmac)


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_an_expired_token_no_longer_logs_in(
    alice: JavaSession, java_client: ReferenceClient, server: KafkaDt, mechanism: str
) -> None:
    created = alice.create()
    with java_client.open(server.sasl, token(created.login, mechanism)) as holder:
        assert holder.topics() == []
    alice.expire(created.hmac)

    with (
        java_client.open(server.sasl, token(created.login, mechanism)) as late,
        pytest.raises(JavaClientError, match="SaslAuthenticationException"),
    ):
        late.topics()


def test_a_java_client_logs_in_again_before_its_session_ends(
    java_client: ReferenceClient, zookeeper_connect: str, tmp_path: Path
) -> None:
    session_ms = 1500
    properties = {**server_properties(zookeeper_connect), "connections.max.reauth.ms": session_ms}
    with KafkaDt(tmp_path, properties) as impatient:

        def ask_beyond_a_session() -> None:
            # Without retries, a connection that the server closed at the end of its session would be an error here.
            with java_client.open(impatient.sasl, {**ALICE, "retries": "0"}) as alice:
                alice.goes_on_for(3 * session_ms / 1000)

        again_if_lost(ask_beyond_a_session, lost=(JavaClientError,))
