"""Unmodified Java clients that log in with the JDK's own DIGEST-MD5, as the first draft of KIP-48 meant it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from puresasl.client import SASLClient

from tests.support.brokers.broker import USERS
from tests.support.java.properties import TokenLogin, digest_md5, plain
from tests.support.java.reference_client import JavaClientError, JavaSession, JavaToken, ReferenceClient
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.processes.waiting import again_if_lost, eventually
from tests.support.protocol.raw import API_VERSIONS, RawConnection

ALICE = plain("alice", USERS["alice"])
SESSION_MS = 2000
LISTENERS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,DIGEST://127.0.0.1:0",
    "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,DIGEST:SASL_PLAINTEXT",
    "listener.name.digest.sasl.enabled.mechanisms": "DIGEST-MD5",
    "listener.name.digest.connections.max.reauth.ms": SESSION_MS,
}


@pytest.fixture(scope="module")
def digest_server(zookeeper_connect: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaDt]:
    with KafkaDt(tmp_path_factory.mktemp("digest"), server_properties(zookeeper_connect) | LISTENERS) as running:
        yield running


@pytest.fixture
def alice(java_client: ReferenceClient, digest_server: KafkaDt) -> Iterator[JavaSession]:
    with java_client.open(digest_server.sasl, ALICE) as session:
        yield session


@pytest.fixture
def created(alice: JavaSession) -> JavaToken:
    return alice.create()


@pytest.fixture
def holder(java_client: ReferenceClient, digest_server: KafkaDt, created: JavaToken) -> Iterator[JavaSession]:
    """A client that has logged in with the token; a connection that was closed would be an error to it."""
    with java_client.open(digest_server.address("DIGEST"), {**digest_md5(created.login), "retries": "0"}) as session:
        session.topics()
        yield session


def test_a_token_logs_in_and_is_served_what_logins_by_token_are(alice: JavaSession, holder: JavaSession) -> None:
    assert holder.cluster() == alice.cluster()
    for refused in (holder.describe, holder.create):
        with pytest.raises(JavaClientError, match="UnsupportedByAuthenticationException"):
            refused()


def test_a_client_logs_in_again_before_its_session_ends(holder: JavaSession) -> None:
    again_if_lost(lambda: holder.goes_on_for(1.5 * SESSION_MS / 1000), lost=(JavaClientError,))


@pytest.mark.parametrize("how", ["a wrong HMAC", "an unknown id", "a user"])
def test_whoever_has_no_token_is_refused_with_the_same_words(
    java_client: ReferenceClient, digest_server: KafkaDt, created: JavaToken, how: str
) -> None:
    login = {
        "a wrong HMAC": TokenLogin(created.token_id, created.hmac[::-1]),
        "an unknown id": TokenLogin("AAAAAAAAAAAAAAAAAAAAAA", created.hmac),
        "a user": TokenLogin("alice", USERS["alice"]),
    }[how]
    words = "Authentication failed during authentication due to invalid credentials with SASL mechanism DIGEST-MD5"
    with (
        java_client.open(digest_server.address("DIGEST"), digest_md5(login)) as stranger,
        pytest.raises(JavaClientError, match=words) as refused,
    ):
        stranger.topics()
    assert refused.value.kind == "SaslAuthenticationException"


@pytest.mark.parametrize("period_ms", [-1, 300], ids=["deleted", "expired"])
def test_a_session_ends_with_its_token(
    alice: JavaSession, holder: JavaSession, created: JavaToken, period_ms: int
) -> None:
    alice.expire(created.hmac, period_ms)

    def refused() -> bool:
        try:
            holder.topics()
        except JavaClientError as error:
            return error.kind == "SaslAuthenticationException"
        return False

    # Sooner than the client would log in again.
    eventually(refused, within_s=1.2)


def test_where_it_is_not_listed_the_handshake_is_refused(
    java_client: ReferenceClient, digest_server: KafkaDt, created: JavaToken
) -> None:
    with (
        java_client.open(digest_server.sasl, digest_md5(created.login)) as holder,
        pytest.raises(
            JavaClientError, match=r"enabled mechanisms are \[PLAIN, SCRAM-SHA-256, SCRAM-SHA-512\]"
        ) as refused,
    ):
        holder.topics()
    assert refused.value.kind == "UnsupportedSaslMechanismException"


@pytest.mark.parametrize("version", [0, 1])
def test_only_a_listener_that_offers_it_names_it(digest_server: KafkaDt, version: int) -> None:
    for listener, code in (("DIGEST", 0), ("SASL_PLAINTEXT", 33)):
        with RawConnection(digest_server.address(listener)) as connection:
            answer = connection.handshake("DIGEST-MD5", version)
        assert answer.error_code.value == code
        assert ("DIGEST-MD5" in answer.mechanisms) == (code == 0)


def test_its_messages_may_come_as_bare_frames_of_an_old_client(digest_server: KafkaDt, created: JavaToken) -> None:
    client = SASLClient("localhost", "kafka", "DIGEST-MD5", username=created.token_id, password=created.hmac)
    with RawConnection(digest_server.address("DIGEST")) as connection:
        connection.handshake("DIGEST-MD5", 0)
        connection.send_frame(b"")
        connection.send_frame(client.process(connection.receive_frame()))
        client.process(connection.receive_frame())
        assert client.complete
        assert connection.ask(API_VERSIONS, 0).error_code.value == 0


def test_the_start_says_once_that_it_is_historic(digest_server: KafkaDt) -> None:
    warning = "sasl.enabled.mechanisms: DIGEST offers DIGEST-MD5; it is historic (RFC 6331), SCRAM is safer"
    assert digest_server.process.log.read_text().count(warning) == 1
