"""Encrypted listeners: a real broker and kafka-dt with the same settings, and clients that cannot tell them apart."""

from __future__ import annotations

import base64
import ssl
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import TokenClient, TokenRequestNotAllowed
from tests.interop.conftest import Authority
from tests.support.brokers.broker import USERS
from tests.support.identity.tls_listeners import STRANGER, TlsListeners
from tests.support.identity.tls_material import Identity, leaf
from tests.support.identity.tls_material import authority as another_authority
from tests.support.java.properties import SCRAM_MECHANISMS, plain, token
from tests.support.java.reference_client import JavaClientError, ReferenceClient
from tests.support.java.tools import KafkaTools, parse_tokens
from tests.support.nodes.server import KafkaDt
from tests.support.protocol.raw import (
    API_VERSIONS,
    CREATE,
    DESCRIBE,
    EXPIRE,
    RENEW,
    ConnectionClosed,
    RawConnection,
    ms,
)

ALICE = plain("alice", USERS["alice"])
CLOSED_WITHIN_S = 2.0
NEW_TOKEN = {"owner_principal_type": None, "owner_principal_name": None, "renewers": (), "max_lifetime": ms(-1)}


def create(connection: RawConnection) -> Any:
    return connection.ask(CREATE, 3, **NEW_TOKEN)


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_a_java_client_makes_a_token_over_tls_and_logs_in_with_it(
    java_client: ReferenceClient, authority: Authority, tls: TlsListeners, mechanism: str
) -> None:
    address = authority.address("SASL_SSL")
    with java_client.open(address, tls.client(ALICE)) as alice:
        made = alice.create()
    assert made.owner == "User:alice"
    with java_client.open(address, tls.client(token(made.login, mechanism))) as holder:
        assert holder.cluster()[1] == 1
        with pytest.raises(JavaClientError, match=r"Delegation Token requests are not allowed") as refused:
            holder.create()
        assert refused.value.kind == "UnsupportedByAuthenticationException"


def test_the_token_tool_works_with_a_client_certificate(
    tools: KafkaTools, authority: Authority, tls: TlsListeners
) -> None:
    config = tls.client({}, tls.alice)
    created = tools.delegation_tokens(authority.address("SSL"), config, "--create", "--max-life-time-period", "-1").ok()
    assert parse_tokens(created.stdout)[0].owner == "User:alice"


@pytest.mark.parametrize(("who", "owner"), [("alice", "User:alice"), ("stranger", STRANGER)])
def test_the_certificate_makes_the_principal(authority: Authority, tls: TlsListeners, who: str, owner: str) -> None:
    with RawConnection(authority.address("SSL"), tls.context(getattr(tls, who))) as connection:
        made = create(connection)
    assert made.error_code is ErrorCode.none
    assert f"{made.principal_type}:{made.principal_name}" == owner


def test_without_a_client_certificate_no_request_about_tokens_is_served(
    authority: Authority, tls: TlsListeners
) -> None:
    with RawConnection(authority.address("SSL"), tls.context()) as connection:
        answers = [
            create(connection),
            connection.ask(RENEW, 2, hmac=b"unknown", renew_period=ms(-1)),
            connection.ask(EXPIRE, 2, hmac=b"unknown", expiry_time_period=ms(-1)),
            connection.ask(DESCRIBE, 3, owners=None),
        ]
    assert {answer.error_code for answer in answers} == {ErrorCode.delegation_token_request_not_allowed}
    assert answers[0].principal_name == "ANONYMOUS"


def test_a_certificate_of_another_authority_is_refused_with_an_alert(authority: Authority, tls: TlsListeners) -> None:
    stranger = foreign_identity()
    with pytest.raises((ssl.SSLError, ConnectionClosed, OSError)) as refused:  # noqa: PT012 - one of two moments
        connection = RawConnection(authority.address("SSL"), tls.context(stranger))
        with connection:
            create(connection)
    assert "alert" in str(refused.value).lower()


def test_a_java_client_is_told_why_its_certificate_is_refused(
    java_client: ReferenceClient, server: KafkaDt, tls: TlsListeners
) -> None:
    # A broker names the authorities that it trusts, and a Java client of another one then shows no certificate at all.
    config = tls.client({}, foreign_identity())
    with java_client.open(server.address("SSL"), config) as session, pytest.raises(JavaClientError) as told:
        session.describe()
    assert told.value.kind == "SslAuthenticationException"


def test_a_sasl_listener_asks_for_no_certificate_unless_told_by_name(authority: Authority, tls: TlsListeners) -> None:
    with RawConnection(authority.address("SASL_SSL"), tls.context(foreign_identity())) as connection:
        connection.login_plain("alice", USERS["alice"])
        assert create(connection).error_code is ErrorCode.none


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_tls_are_spoken(authority: Authority, tls: TlsListeners, version: ssl.TLSVersion) -> None:
    context = tls.context()
    context.minimum_version = context.maximum_version = version
    with RawConnection(authority.address("SASL_SSL"), context) as connection:
        connection.login_plain("alice", USERS["alice"])
        made = create(connection)
        assert made.error_code is ErrorCode.none


def test_tls_1_1_is_not_spoken(authority: Authority, tls: TlsListeners) -> None:
    context = tls.context()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        RawConnection(authority.address("SASL_SSL"), context)


@pytest.mark.parametrize("listener", ["SASL_SSL", "SSL"])
def test_a_plaintext_client_on_an_encrypted_port_is_closed(authority: Authority, listener: str) -> None:
    with RawConnection(authority.address(listener)) as connection:
        connection.request(API_VERSIONS, 0)
        assert connection.receives_alert_and_end(CLOSED_WITHIN_S)


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "PLAINTEXT"])
def test_a_tls_client_on_a_plaintext_port_is_closed(authority: Authority, tls: TlsListeners, listener: str) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        RawConnection(authority.address(listener), tls.context())


@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
async def test_our_client_makes_a_token_over_tls_and_logs_in_with_it(
    authority: Authority, tls: TlsListeners, mechanism: str
) -> None:
    address = {"bootstrap.servers": authority.address("SASL_SSL")}
    async with TokenClient.from_config(tls.client(ALICE) | address) as alice:
        made = await alice.create(renewers=["User:bob"])
    login = {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{made.token_id}" password="{base64.b64encode(made.hmac).decode()}" tokenauth="true";',
    }
    async with TokenClient.from_config(tls.client(login) | address) as holder:
        with pytest.raises(TokenRequestNotAllowed):
            await holder.describe()


async def test_our_client_shows_its_certificate(authority: Authority, tls: TlsListeners) -> None:
    config = tls.client({}, tls.alice) | {"bootstrap.servers": authority.address("SSL")}
    async with TokenClient.from_config(config) as alice:
        made = await alice.create()
    assert str(made.owner) == "User:alice"


def foreign_identity() -> Identity:
    return leaf("stranger", another_authority("Another root"))
