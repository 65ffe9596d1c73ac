"""`kafka_dt.client` and the command line log in to a real node by each mechanism that is no password of a user."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafka_dt.cli import main
from kafka_dt.client import BearerTokenMissing, DelegationToken, LoginFailed, TokenClient
from kafka_dt.jaas import OAUTHBEARER_LOGIN_MODULE, PLAIN_LOGIN_MODULE, LoginModule
from tests.support.brokers.broker import USERS
from tests.support.identity.issuer import AUDIENCE, NAME, Issuer, publishing, token_endpoint
from tests.support.identity.tls_listeners import TlsListeners
from tests.support.java.properties import plain, write_properties
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.zookeeper.server import make_chroot

ISSUER = Issuer()
URL = "sasl.oauthbearer.token.endpoint.url"
SESSION_MS = 2_000


@dataclass(frozen=True, slots=True)
class Listeners:
    """A node whose listeners take bearer tokens, DIGEST-MD5, and client certificates."""

    node: KafkaDt
    tls: TlsListeners

    def sasl(self, listener: str, mechanism: str, module: str, **options: str) -> dict[str, str]:
        """Client properties of a login by SASL."""
        return {
            "bootstrap.servers": self.node.address(listener),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": LoginModule(module, options).line,
        }

    def bearer(self, url: str, **options: str) -> dict[str, str]:
        """Client properties of a login by a bearer token."""
        return self.sasl("BEARER", "OAUTHBEARER", OAUTHBEARER_LOGIN_MODULE, **options) | {URL: url}

    def digest(self, token: DelegationToken, hmac: str | None = None) -> dict[str, str]:
        """Client properties of a login by a delegation token with DIGEST-MD5."""
        secret = token.hmac_base64 if hmac is None else hmac
        return self.sasl("DIGEST", "DIGEST-MD5", PLAIN_LOGIN_MODULE, username=token.token_id, password=secret)


@pytest.fixture(scope="module")
def listeners(zookeeper_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    tls = TlsListeners.make(tmp_path_factory.mktemp("tls"))
    with publishing(ISSUER.jwks()) as published:
        names = ("SASL_PLAINTEXT", "BEARER", "DIGEST")
        others = {
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in (*names, "SSL")),
            "listener.security.protocol.map": ",".join(f"{name}:SASL_PLAINTEXT" for name in names) + ",SSL:SSL",
            "listener.name.bearer.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.bearer.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": published.url,
            "listener.name.bearer.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
            "listener.name.bearer.oauthbearer.sasl.oauthbearer.expected.issuer": NAME,
            "listener.name.digest.sasl.enabled.mechanisms": "DIGEST-MD5",
            "listener.name.digest.connections.max.reauth.ms": SESSION_MS,
            "kafka.dt.workers": 1,
        }
        of_ssl = {key: value for key, value in tls.properties.items() if not key.startswith("listener.name.sasl_ssl")}
        connect = make_chroot(zookeeper_address, "mechanisms")
        properties = server_properties(connect) | of_ssl | others
        with KafkaDt(tmp_path_factory.mktemp("mechanisms"), properties) as node:
            yield Listeners(node, tls)


@pytest.fixture
async def token(listeners: Listeners) -> DelegationToken:
    properties = plain("alice", USERS["alice"]) | {"bootstrap.servers": listeners.node.sasl}
    async with TokenClient.from_config(properties) as alice:
        return await alice.create()


async def owner_of_a_new_token(properties: dict[str, str]) -> str:
    async with TokenClient.from_config(properties) as client:
        return (await client.create()).owner


async def test_a_bearer_token_of_a_file_gets_a_delegation_token(listeners: Listeners, tmp_path: Path) -> None:
    file = tmp_path / "bearer"
    file.write_text(ISSUER.token("carol"))
    assert await owner_of_a_new_token(listeners.bearer(file.as_uri())) == "User:carol"
    file.write_text(ISSUER.token("carol", exp=int(time.time()) - 3600, iat=int(time.time()) - 7200))
    with pytest.raises(LoginFailed, match=r"OAUTHBEARER failed: .*invalid_token.* \(check the token"):
        await owner_of_a_new_token(listeners.bearer(file.as_uri()))


async def test_an_issuer_gives_the_bearer_token(listeners: Listeners) -> None:
    with token_endpoint(json.dumps({"access_token": ISSUER.token("service")}).encode()) as endpoint:
        properties = listeners.bearer(endpoint.url, clientId="me", clientSecret="secret")
        assert await owner_of_a_new_token(properties) == "User:service"
        endpoint.status = 503
        with pytest.raises(BearerTokenMissing, match="503"):
            await owner_of_a_new_token(properties)


async def test_a_token_logs_in_by_digest_md5_and_again_before_its_session_ends(
    listeners: Listeners, token: DelegationToken
) -> None:
    async with TokenClient.from_config(listeners.digest(token)) as client:
        connection = await client._session.ready()
        assert client._session._login_due < time.monotonic() + SESSION_MS / 1000
        client._session._login_due = time.monotonic()  # a machine that stands still would miss the real moment
        assert await client._session.ready() is connection
        assert client._session._login_due > time.monotonic()
    with pytest.raises(LoginFailed, match="DIGEST-MD5 failed"):
        async with TokenClient.from_config(listeners.digest(token, "d3Jvbmc=")):
            pass


async def test_a_client_certificate_gets_a_delegation_token(listeners: Listeners) -> None:
    login = listeners.tls.client({}, listeners.tls.alice) | {"bootstrap.servers": listeners.node.address("SSL")}
    assert await owner_of_a_new_token(login) == "User:alice"


def test_the_command_line_logs_in_by_a_bearer_token(listeners: Listeners, tmp_path: Path) -> None:
    file = tmp_path / "bearer"
    file.write_text(ISSUER.token("carol"))
    config = write_properties(tmp_path / "carol.properties", listeners.bearer(file.as_uri()))
    done = CliRunner().invoke(main, ["token", "create", "--command-config", str(config), "--output", "json"])
    assert done.exit_code == 0, done.output
    made: dict[str, Any] = json.loads(done.stdout)
    assert made["owner"] == "User:carol"
    file.unlink()
    failed = CliRunner().invoke(main, ["token", "list", "--command-config", str(config)])
    assert (failed.exit_code, failed.stderr.count("\n")) == (1, 1)
    assert "no bearer token from" in failed.stderr
