"""Logins whose secret is elsewhere: Kerberos keys and tickets, and bearer tokens of a file or an issuer."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import (
    BearerLogin,
    BearerTokenMissing,
    ClientConfig,
    ClientConfigError,
    KerberosLogin,
    LoginFailed,
    TokenClient,
)
from kafka_dt.jaas import KERBEROS_LOGIN_MODULE, OAUTHBEARER_LOGIN_MODULE, PLAIN_LOGIN_MODULE, LoginModule
from kafka_dt_protocol.api.registry import ApiKey
from tests.support.identity.issuer import NOT_HTTP, Endpoint, token_endpoint
from tests.support.protocol.scripted_server import ScriptedServer

URL = "sasl.oauthbearer.token.endpoint.url"
SASL = {"bootstrap.servers": "x:1", "security.protocol": "SASL_PLAINTEXT"}
HANDLER = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"


def jaas(module: str, **options: str) -> dict[str, str]:
    return {"sasl.jaas.config": LoginModule(module, options).line}


def kerberos(**options: str) -> dict[str, str]:
    return SASL | {"sasl.mechanism": "GSSAPI"} | jaas(KERBEROS_LOGIN_MODULE, **options)


def bearer(url: str, **options: str) -> dict[str, str]:
    return SASL | {"sasl.mechanism": "OAUTHBEARER", URL: url} | jaas(OAUTHBEARER_LOGIN_MODULE, **options)


def test_the_options_of_krb5_login_module_are_those_of_java() -> None:
    service = {"sasl.kerberos.service.name": "kafka"}
    by_keytab = kerberos(useKeyTab="true", storeKey="true", keyTab="/k", principal="alice@REALM")
    assert ClientConfig.from_properties(by_keytab | service).sasl_login == KerberosLogin(
        service="kafka", principal="alice@REALM", keytab="/k"
    )
    by_ticket = kerberos(useTicketCache="true", ticketCache="/c", serviceName="other")
    assert ClientConfig.from_properties(by_ticket).sasl_login == KerberosLogin(service="other", ticket_cache="/c")
    default = SASL | service | {"sasl.mechanism": "GSSAPI"}
    assert ClientConfig.from_properties(default).sasl_login == KerberosLogin(service="kafka")
    without_mechanism = {key: value for key, value in by_ticket.items() if key != "sasl.mechanism"}
    assert ClientConfig.from_properties(without_mechanism).sasl_login == KerberosLogin(
        service="other", ticket_cache="/c"
    )


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        (kerberos(), "sasl.kerberos.service.name"),
        (kerberos(useKeyTab="true", serviceName="kafka"), "sasl.jaas.config"),
        (SASL | {"sasl.mechanism": "GSSAPI"} | jaas(PLAIN_LOGIN_MODULE, password="secret"), "sasl.jaas.config"),
        (bearer(""), URL),
        (bearer("file:"), URL),
        (bearer("ftp://issuer/token"), URL),
        (bearer("https://[issuer"), URL),
        (bearer("https://issuer/token", clientSecret="secret"), "sasl.jaas.config"),
        (bearer("https://issuer/token", clientId="me"), "sasl.jaas.config"),
        (bearer("https://issuer/token", clientId="me", clientSecret="secret", **{"ssl.truststore.location": "/no"}),
         "sasl.jaas.config"),
        (bearer("file:///t") | {"sasl.login.callback.handler.class": "com.example.Mine"},
         "sasl.login.callback.handler.class"),
        (bearer("file:///t") | jaas(PLAIN_LOGIN_MODULE, password="secret"), "sasl.jaas.config"),
        (bearer("https://issuer/token", clientId="me", clientSecret="secret") | {"sasl.login.read.timeout.ms": "soon"},
         "sasl.login.read.timeout.ms"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_names_its_key_and_no_secret(properties: dict[str, str], key: str) -> None:
    with pytest.raises(ClientConfigError) as caught:
        ClientConfig.from_properties(properties)
    assert caught.value.key == key
    assert "secret" not in str(caught.value).replace("clientSecret", "")


def login(properties: dict[str, str]) -> BearerLogin:
    found = ClientConfig.from_properties(properties).sasl_login
    assert isinstance(found, BearerLogin)
    return found


def test_a_token_file_is_read_for_each_login(tmp_path: Path) -> None:
    file = tmp_path / "token with blank"
    file.write_text("first\n")
    made = login(bearer(file.as_uri(), extension_traceId="1") | {"sasl.login.callback.handler.class": HANDLER})
    assert (made.token(), made.extensions) == ("first", {"traceId": "1"})
    file.write_text("second")
    assert made.token() == "second"
    file.write_text("")
    with pytest.raises(BearerTokenMissing, match="the file is empty"):
        made.token()
    file.unlink()
    with pytest.raises(BearerTokenMissing, match="No such file"):
        made.token()


def answer(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


def test_an_issuer_is_asked_by_client_credentials() -> None:
    with token_endpoint(answer(access_token="made", expires_in=60)) as endpoint:
        assert login(bearer(endpoint.url, clientId="me", clientSecret="s:/ cret", scope="kafka")).token() == "made"
        newer = bearer(endpoint.url) | {
            "sasl.oauthbearer.client.credentials.client.id": "me",
            "sasl.oauthbearer.client.credentials.client.secret": "s:/ cret",
            "sasl.oauthbearer.header.urlencode": "true",
        }
        assert login(newer).token() == "made"
    assert endpoint.requests == [
        (basic("me:s:/ cret"), {"grant_type": ["client_credentials"], "scope": ["kafka"]}),
        (basic("me:s%3A%2F%20cret"), {"grant_type": ["client_credentials"]}),
    ]


def refuse(endpoint: Endpoint) -> None:
    endpoint.status = 401


def redirect(endpoint: Endpoint) -> None:
    endpoint.status, endpoint.location = 302, endpoint.url


def say_nothing(endpoint: Endpoint) -> None:
    endpoint.answer = b"[]"


def flood(endpoint: Endpoint) -> None:
    endpoint.answer = answer(access_token="x" * 2_000_000)


def break_off(endpoint: Endpoint) -> None:
    endpoint.wire = NOT_HTTP["cut off"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (refuse, "the issuer answers 401"),
        (redirect, "the issuer answers 302"),
        (break_off, "the answer is cut off or not HTTP"),
        (say_nothing, "no JSON with an access_token"),
        (flood, "no JSON with an access_token"),
    ],
)
def test_an_issuer_that_gives_no_token_is_told_without_the_secret(change: object, reason: str) -> None:
    with token_endpoint(answer(access_token="made")) as endpoint:
        assert callable(change)
        change(endpoint)
        with pytest.raises(BearerTokenMissing, match=reason) as caught:
            login(bearer(endpoint.url, clientId="me", clientSecret="hunter2")).token()
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(login(bearer(endpoint.url, clientId="me", clientSecret="hunter2")))
    with pytest.raises(BearerTokenMissing, match="refused"):
        login(bearer(endpoint.url, clientId="me", clientSecret="hunter2")).token()


async def test_without_the_extra_a_login_by_kerberos_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafka_dt.client.gss", None)
    server = ScriptedServer()
    server.scripts[ApiKey.SASL_HANDSHAKE] = lambda *_: {"error_code": ErrorCode.none, "mechanisms": ("GSSAPI",)}
    async with server.running():
        properties = kerberos(serviceName="kafka") | {"bootstrap.servers": server.address}
        with pytest.raises(LoginFailed, match=r"it needs the extra kerberos \(in a checkout"):
            async with TokenClient.from_config(properties):
                pass
