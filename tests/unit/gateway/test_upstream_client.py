"""How the cluster behind a gateway is reached, from the settings of a node."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import cast

import pytest

from kafka_dt.client import Address, ConnectionLost, Credentials, SecurityProtocol
from kafka_dt.client.session import ClientSession
from kafka_dt.config import ConfigError, from_properties, gateway_settings, listeners, upstream_client_properties
from kafka_dt.gateway.upstream import Upstream, UpstreamListener
from kafka_dt.identity.mechanisms import MECHANISMS
from kafka_dt.tls import server_context
from kafka_dt.upstream import UpstreamClient
from tests.support.identity.tls_material import Identity, authority, leaf
from tests.support.protocol.scripted_server import ScriptedServer

UPSTREAM = "kafka.dt.gateway.upstream."
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PROPERTIES = {
    "listeners": "SASL_PLAINTEXT://:9092",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "kafka.dt.gateway.broker.port.base": "9200",
    f"{UPSTREAM}bootstrap.servers": "k1:9092,[::1]:9093",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    f"{UPSTREAM}identity": "owner-token",
    f"{UPSTREAM}security.protocol": "SASL_PLAINTEXT",
    f"{UPSTREAM}sasl.mechanism": "SCRAM-SHA-512",
    f"{UPSTREAM}sasl.jaas.config": f'{SCRAM} username="gateway" password="hush";',
}


def made(**changes: str) -> UpstreamClient:
    settings = from_properties(PROPERTIES | {UPSTREAM + key: text for key, text in changes.items()}).settings
    gateway = gateway_settings(settings, listeners(settings, MECHANISMS))
    assert gateway is not None
    return UpstreamClient(gateway.client)


CERTIFIED = {
    "security.protocol": "SSL",
    "ssl.truststore.type": "PEM",
    "ssl.keystore.type": "PEM",
    "identity": "service",
}


@pytest.fixture
def signer() -> Identity:
    return authority("Root")


@pytest.fixture
def stores(tmp_path: Path, signer: Identity) -> dict[str, str]:
    """Settings of a gateway that shows a certificate, with the files that they name."""
    trust, key = tmp_path / "trust.pem", tmp_path / "key.pem"
    trust.write_text(signer.certificate_pem)
    write(str(key), store(leaf("gateway", authority("Unknown"))))
    return {"ssl.truststore.location": str(trust), "ssl.keystore.location": str(key)}


def store(identity: Identity) -> str:
    return identity.key_pem() + identity.chain_pem


def write(path: str, text: str) -> None:
    Path(path).write_text(text)


async def test_renewed_certificates_are_shown_from_then_on(stores: dict[str, str], signer: Identity) -> None:
    server = leaf("localhost", signer)
    asking = server_context(
        {
            "ssl.keystore.key": server.key_pem(),
            "ssl.keystore.certificate.chain": server.chain_pem,
            "ssl.truststore.certificates": signer.certificate_pem,
            "ssl.client.auth": "required",
        }
    )
    async with ScriptedServer().running(asking) as broker:
        client = made(**CERTIFIED, **stores, **{"bootstrap.servers": broker.address})

        async def opened() -> None:
            upstream = Upstream(client.config, cast("UpstreamListener", None))
            (await upstream.open(client.config.bootstrap_servers[0], None)).abort()

        with pytest.raises(ConnectionLost):
            await opened()
        renewed = leaf("gateway", signer)
        write(stores["ssl.keystore.location"], store(renewed))
        await client.refresh_certificates()
        await opened()
        assert client.certificate_end_s == renewed.certificate.not_valid_after_utc.timestamp()


async def test_certificates_that_cannot_be_used_change_nothing(
    stores: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    client = made(**CERTIFIED, **stores)
    before = client.config.tls
    assert before is not None
    write(stores["ssl.keystore.location"], "nonsense")
    for _ in range(2):
        await client.refresh_certificates()
    assert client.config.tls is before
    (line,) = caplog.messages
    assert f"{UPSTREAM}ssl.keystore.location" in line


async def test_without_tls_there_are_no_certificates_to_look_at() -> None:
    client = made()
    await client.refresh_certificates()
    assert client.config.tls is None
    assert client.certificate_end_s is None


# Changes


def changed(client: UpstreamClient, **changes: str) -> None:
    """Have a client take over settings, as `made` would make it of them."""
    settings = from_properties(PROPERTIES | {UPSTREAM + key: text for key, text in changes.items()}).settings
    client.prepare(upstream_client_properties(settings))()


async def test_a_session_logs_in_anew_when_its_login_has_changed_and_not_before() -> None:
    async with ScriptedServer(users={"gateway": "hush"}).running() as broker:
        servers = {"bootstrap.servers": broker.address}
        client = made(**servers)
        session = ClientSession(
            client.config, servers=client.servers, monotonic=time.monotonic, random_bytes=os.urandom, jitter=lambda: 0.5
        )
        first = await session.ready()
        changed(client, **servers)
        assert await session.ready() is first
        broker.users["gateway"] = "another"
        changed(client, **servers, **{"sasl.jaas.config": f'{SCRAM} username="gateway" password="another";'})
        assert await session.ready() is not first
        assert not first.usable
        await session.close()


def test_servers_change_when_they_are_taken_over_and_not_when_they_are_checked() -> None:
    client = made()
    take_over = client.prepare({"bootstrap.servers": "k9:9092"})
    assert client.servers() == (Address("k1", 9092), Address("::1", 9093))
    take_over()
    assert client.servers() == (Address("k9", 9092),)


def test_changes_that_cannot_be_used_are_an_error_that_names_the_key() -> None:
    client = made()
    with pytest.raises(ConfigError, match=f"{UPSTREAM}sasl.jaas.config"):
        changed(client, **{"sasl.jaas.config": "hidden words"})
    assert client.config.login == Credentials("SCRAM-SHA-512", "gateway", "hush")


def test_the_settings_become_those_of_a_client() -> None:
    client = made(**{"request.timeout.ms": "7", "socket.connection.setup.timeout.ms": "8", "client.id": "me"}).config
    assert client.bootstrap_servers == (Address("k1", 9092), Address("::1", 9093))
    assert client.security_protocol is SecurityProtocol.SASL_PLAINTEXT
    assert client.login == Credentials("SCRAM-SHA-512", "gateway", "hush")
    assert (client.request_timeout_ms, client.setup_timeout_ms, client.client_id) == (7, 8, "me")
    assert "hush" not in repr(client)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"bootstrap.servers": "nothing"}, "bootstrap.servers"),
        ({"sasl.mechanism": ""}, "sasl.mechanism"),
        ({"sasl.mechanism": "PLAIN"}, "sasl.jaas.config"),
        ({"sasl.jaas.config": f'{SCRAM} username="gateway";'}, "sasl.jaas.config"),
        (
            {"security.protocol": "SASL_SSL", "ssl.truststore.location": "/no/such/store.pem"},
            "ssl.truststore.location",
        ),
    ],
)
def test_a_mistake_is_told_by_its_own_key(changes: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(**changes)
    assert caught.value.key == UPSTREAM + key
    assert "hush" not in str(caught.value)
