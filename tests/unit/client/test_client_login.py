"""Logging in: each mechanism, each refusal, and servers that do not keep to the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import (
    ClientConfig,
    LoginFailed,
    MechanismNotEnabled,
    NoServerReached,
    TokenClient,
    UnsupportedByServer,
)
from kafka_dt.tls import server_context
from kafka_dt_protocol.api.registry import ApiKey
from kafka_dt_protocol.sasl import PLAIN, ScramMechanism
from kafka_dt_protocol.wire.times import to_duration
from tests.support.identity.tls_material import authority, leaf
from tests.support.protocol.scripted_server import CLOSE, ScriptedServer
from tests.unit.client.conftest import TOKEN, properties

NEVER = to_duration(0)
MECHANISMS = (PLAIN, *ScramMechanism)


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_every_mechanism_logs_in(server: ScriptedServer, mechanism: str) -> None:
    async with TokenClient.from_config(properties(server, mechanism)) as client:
        assert await client.describe() == []
    assert server.logins == ["alice"]


@pytest.mark.parametrize("mechanism", ScramMechanism)
async def test_a_token_logs_in_with_the_extension(server: ScriptedServer, mechanism: str) -> None:
    server.users[TOKEN.token_id] = TOKEN.hmac_base64
    server.tokens = frozenset({TOKEN.token_id})
    with_extension = properties(server, mechanism, TOKEN.token_id, TOKEN.hmac_base64, token=True)
    async with TokenClient.from_config(with_extension):
        assert server.logins == [TOKEN.token_id]
    without = properties(server, mechanism, TOKEN.token_id, TOKEN.hmac_base64)
    with pytest.raises(LoginFailed):
        await TokenClient.from_config(without).__aenter__()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_wrong_credentials_are_told_without_the_password(server: ScriptedServer, mechanism: str) -> None:
    with pytest.raises(LoginFailed, match=r"login at .* failed: Authentication failed") as caught:
        async with TokenClient.from_config(properties(server, mechanism, password="hunter2")):
            pass
    assert "hunter2" not in str(caught.value)
    assert caught.value.code is ErrorCode.sasl_authentication_failed
    assert caught.value.mechanism == mechanism


async def test_wrong_credentials_are_not_tried_on_the_next_server(server: ScriptedServer) -> None:
    twice = f"{server.address},{server.address}"
    wrong = {**properties(server, password="wrong"), "bootstrap.servers": twice}
    with pytest.raises(LoginFailed):
        await TokenClient.from_config(wrong).__aenter__()
    assert server.connections == 1


async def test_a_mechanism_that_is_not_enabled_is_told_with_those_that_are(server: ScriptedServer) -> None:
    server.mechanisms = ("SCRAM-SHA-256",)
    with pytest.raises(MechanismNotEnabled, match="SCRAM-SHA-256") as caught:
        await TokenClient.from_config(properties(server)).__aenter__()
    assert caught.value.enabled == ("SCRAM-SHA-256",)


async def test_a_refused_handshake_tells_the_code(server: ScriptedServer) -> None:
    server.scripts[ApiKey.SASL_HANDSHAKE] = lambda _header, _request: {
        "error_code": ErrorCode.illegal_sasl_state,
        "mechanisms": (),
    }
    with pytest.raises(LoginFailed) as caught:
        await TokenClient.from_config(properties(server)).__aenter__()
    assert caught.value.code is ErrorCode.illegal_sasl_state


@pytest.mark.parametrize(
    ("server_first", "server_final", "reason"),
    [
        ("r={nonce}srv,s=c2FsdA==,i=4096", "v=AAAA", "server-final"),
        ("r={nonce}srv,s=c2FsdA==,i=4096", "e=other-error", "other-error"),
        ("r={nonce}srv,s=c2FsdA==,i=4095", "", "4095 iterations"),
        ("r={nonce}srv,s=c2FsdA==,i=2000000000", "", "2000000000 iterations"),
        ("r=another,s=c2FsdA==,i=4096", "", "nonce"),
        ("nonsense", "", "server-first"),
    ],
)
async def test_a_server_that_breaks_scram_is_not_trusted(
    server: ScriptedServer, server_first: str, server_final: str, reason: str
) -> None:
    answers = [server_first, server_final]

    def impostor(_header: object, request: Any) -> dict[str, object]:
        nonce = request.auth_bytes.rpartition(b"r=")[2].decode()
        message = answers.pop(0).format(nonce=nonce).encode()
        return {"error_code": ErrorCode.none, "error_message": "", "auth_bytes": message, "session_lifetime": NEVER}

    server.scripts[ApiKey.SASL_AUTHENTICATE] = impostor
    with pytest.raises(LoginFailed, match=reason):
        await TokenClient.from_config(properties(server, "SCRAM-SHA-256")).__aenter__()


async def test_a_server_that_hangs_up_during_the_login_was_not_reached(server: ScriptedServer) -> None:
    server.scripts[ApiKey.SASL_AUTHENTICATE] = lambda _header, _request: CLOSE
    with pytest.raises(NoServerReached, match="closed the connection"):
        await TokenClient.from_config(properties(server)).__aenter__()


async def test_a_server_without_sasl_authenticate_is_named(server: ScriptedServer) -> None:
    del server.versions[ApiKey.SASL_AUTHENTICATE]
    with pytest.raises(UnsupportedByServer, match="SaslAuthenticate"):
        await TokenClient.from_config(properties(server)).__aenter__()


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_every_version_of_sasl_authenticate_serves(server: ScriptedServer, version: int) -> None:
    server.versions[ApiKey.SASL_AUTHENTICATE] = (0, version)
    async with TokenClient.from_config(properties(server, "SCRAM-SHA-512")):
        assert (ApiKey.SASL_AUTHENTICATE, version) in server.requests


async def test_tls_and_sasl_together(server: ScriptedServer) -> None:
    root = authority("Root")
    identity = leaf("localhost", root)
    context = server_context(
        {"ssl.keystore.key": identity.key_pem(), "ssl.keystore.certificate.chain": identity.chain_pem}
    )
    encrypted = ScriptedServer(users=server.users, scripts=server.scripts)
    async with encrypted.running(context):
        trusting = {
            **properties(encrypted),
            "security.protocol": "SASL_SSL",
            "ssl.truststore.certificates": root.certificate_pem,
        }
        async with TokenClient.from_config(trusting) as client:
            assert await client.describe() == []
        await _is_not_reached({**trusting, "ssl.truststore.certificates": authority("Other").certificate_pem})
        await _is_not_reached({**trusting, "security.protocol": "SASL_PLAINTEXT"}, "does security.protocol fit")
        await _is_not_reached({**trusting, "bootstrap.servers": server.address}, "does security.protocol fit")
    async with encrypted.running(context):
        only_tls = {
            "bootstrap.servers": encrypted.address,
            "security.protocol": "SSL",
            "ssl.truststore.certificates": root.certificate_pem,
        }
        async with TokenClient.from_config(only_tls) as client:
            assert await client.describe() == []


def _client_at(server: ScriptedServer, monotonic: Callable[[], float]) -> TokenClient:
    """A client that logs in again after exactly 90 % of a session."""
    config = ClientConfig.from_properties(properties(server))
    return TokenClient(config, monotonic=monotonic, jitter=lambda: 0.5)


async def _is_not_reached(config: dict[str, str], reason: str = "certificate is not trusted") -> None:
    with pytest.raises(NoServerReached, match=reason):
        await TokenClient.from_config(config).__aenter__()


async def test_a_session_is_renewed_before_it_ends(server: ScriptedServer) -> None:
    now = 1000.0
    server.session_lifetimes_ms = [10_000, 20_000]
    client = _client_at(server, lambda: now)
    async with client:
        now += 8.9
        await client.describe()
        assert server.logins == ["alice"]
        now += 0.2
        await client.describe()
        assert server.logins == ["alice", "alice"]
        now += 17.9
        await client.describe()
        assert len(server.logins) == 2
        now += 0.2
        await client.describe()
        # The third login got no lifetime: it is the last.
        now += 1_000_000
        await client.describe()
        assert len(server.logins) == 3
    assert server.connections == 1


async def test_a_connection_lost_in_the_second_login_is_made_again(server: ScriptedServer) -> None:
    now = 0.0
    server.session_lifetimes_ms = [10_000]
    async with _client_at(server, lambda: now) as client:
        server.drop_connections()
        now = 9.5
        assert await client.describe() == []
    assert server.connections == 2


async def test_a_refused_second_login_is_told_and_the_next_call_starts_anew(server: ScriptedServer) -> None:
    now = 0.0
    server.session_lifetimes_ms = [10_000]
    async with _client_at(server, lambda: now) as client:
        server.users["alice"] = "changed"
        now = 9.5
        with pytest.raises(LoginFailed):
            await client.describe()
        server.users["alice"] = "wonder"
        assert await client.describe() == []
    assert server.connections == 2


async def test_nothing_is_asked_before_the_login(server: ScriptedServer) -> None:
    async with TokenClient.from_config(properties(server)) as client:
        await client.describe()
    apis = [api for api, _ in server.requests]
    assert apis == [
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ]
