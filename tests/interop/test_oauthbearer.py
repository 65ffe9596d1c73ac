"""Unmodified Java clients that log in to kafka-dt with bearer tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.identity.issuer import AUDIENCE, NAME, Issuer, publishing, unsigned
from tests.support.java.properties import ClientConfig, bearer, token, unsigned_bearer
from tests.support.java.reference_client import JavaClientError, ReferenceClient
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.processes.waiting import again_if_lost

ISSUER = Issuer()
LISTENERS = {
    "listeners": "SIGNED://127.0.0.1:0,UNSIGNED://127.0.0.1:0",
    "listener.security.protocol.map": "SIGNED:SASL_PLAINTEXT,UNSIGNED:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER,SCRAM-SHA-256",
    "listener.name.signed.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
    "listener.name.signed.oauthbearer.sasl.oauthbearer.expected.issuer": NAME,
    "listener.name.unsigned.oauthbearer.kafka.dt.sasl.oauthbearer.allow.unsigned.tokens": "true",
}


@pytest.fixture(scope="module")
def oauth_server(zookeeper_connect: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaDt]:
    with publishing(ISSUER.jwks()) as published:
        base = server_properties(zookeeper_connect)
        # Without the users of the listener that `server_properties` is for.
        properties = {key: value for key, value in base.items() if not key.startswith("listener.name.")} | LISTENERS
        properties["listener.name.signed.oauthbearer.sasl.oauthbearer.jwks.endpoint.url"] = published.url
        with KafkaDt(tmp_path_factory.mktemp("oauth"), properties) as running:
            yield running


def login_with(client: ReferenceClient, folder: Path, text: str) -> ClientConfig:
    """Log in with the token in a file, which newer clients open only if a system property allows it."""
    path = folder / "bearer.jwt"
    path.write_text(text)
    client.set_property("org.apache.kafka.sasl.oauthbearer.allowed.urls", path.as_uri())
    return bearer(path)


def test_a_bearer_token_logs_in_and_makes_a_delegation_token_that_logs_in(
    java_client: ReferenceClient, oauth_server: KafkaDt, tmp_path: Path
) -> None:
    login = login_with(java_client, tmp_path, ISSUER.token("alice"))
    with java_client.open(oauth_server.address("SIGNED"), login) as alice:
        created = alice.create()
        cluster = alice.cluster()
    assert created.owner == "User:alice"
    with java_client.open(oauth_server.address("SIGNED"), token(created.login)) as holder:
        assert holder.cluster() == cluster


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ISSUER.token("alice", exp=int(time.time()) - 3600, iat=int(time.time()) - 7200), id="expired"),
        pytest.param(ISSUER.token("alice", aud="other"), id="for another service"),
        pytest.param(ISSUER.token("alice", iss="https://other.example"), id="by another issuer"),
        pytest.param(Issuer().token("alice"), id="with another key of the same name"),
    ],
)
def test_a_bearer_token_that_is_not_good_is_refused(
    java_client: ReferenceClient, oauth_server: KafkaDt, tmp_path: Path, text: str
) -> None:
    login = login_with(java_client, tmp_path, text)
    with (
        java_client.open(oauth_server.address("SIGNED"), login) as alice,
        pytest.raises(JavaClientError, match="invalid_token") as refused,
    ):
        alice.topics()
    assert refused.value.kind == "SaslAuthenticationException"


def test_what_a_client_signs_with_nothing_is_taken_only_where_a_setting_says_so(
    java_client: ReferenceClient, oauth_server: KafkaDt
) -> None:
    login = unsigned_bearer("alice", traceId="123")
    with java_client.open(oauth_server.address("UNSIGNED"), login) as alice:
        assert alice.create().owner == "User:alice"
    with (
        java_client.open(oauth_server.address("SIGNED"), login) as alice,
        pytest.raises(JavaClientError, match="invalid_token"),
    ):
        alice.topics()


def test_a_java_client_takes_a_new_bearer_token_before_its_session_ends(
    java_client: ReferenceClient, oauth_server: KafkaDt
) -> None:
    # Long enough for the pause of a second that must be between two logins on one connection.
    login = unsigned_bearer("alice") | {"retries": "0"}
    login["sasl.jaas.config"] = login["sasl.jaas.config"].replace(";", ' unsecuredLoginLifetimeSeconds="4";')
    login |= {
        "sasl.login.refresh.window.factor": "0.5",
        "sasl.login.refresh.min.period.seconds": "0",
        "sasl.login.refresh.buffer.seconds": "0",
    }

    def ask_beyond_a_session() -> None:
        # Without retries, a connection that the server closed at the end of its session would be an error here.
        with java_client.open(oauth_server.address("UNSIGNED"), login) as alice:
            alice.goes_on_for(6)

    again_if_lost(ask_beyond_a_session, lost=(JavaClientError,))


def test_an_unsigned_token_in_a_file_is_refused_as_well(
    java_client: ReferenceClient, oauth_server: KafkaDt, tmp_path: Path
) -> None:
    now = int(time.time())
    claims = {"sub": "alice", "iss": NAME, "aud": AUDIENCE, "iat": now, "exp": now + 60}
    # The client looks at the form of the token itself: the signature may not be empty.
    login = login_with(java_client, tmp_path, unsigned({"alg": "none"}, claims, "AAAA"))
    for listener in ("SIGNED", "UNSIGNED"):
        with (
            java_client.open(oauth_server.address(listener), login) as alice,
            pytest.raises(JavaClientError, match="invalid_token"),
        ):
            alice.topics()
