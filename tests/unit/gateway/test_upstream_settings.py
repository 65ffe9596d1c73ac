"""How the cluster behind a gateway is reached, from the settings of a node."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from kafka_dt.client import Address, ConnectionLost, Credentials, SecurityProtocol
from kafka_dt.config import ConfigError, UpstreamIdentity, from_properties, gateway_settings, listeners
from kafka_dt.gateway.upstream import Upstream, UpstreamListener
from kafka_dt.gateway.upstream_settings import UpstreamSettings
from kafka_dt.identity.mechanisms import MECHANISMS
from kafka_dt.tls import server_context
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.scripted_server import ScriptedServer
from tests.support.tls_material import Identity, authority, leaf

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


def made(**changes: str) -> UpstreamSettings:
    settings = from_properties(PROPERTIES | {UPSTREAM + key: text for key, text in changes.items()}).settings
    gateway = gateway_settings(settings, listeners(settings, MECHANISMS))
    assert gateway is not None
    return UpstreamSettings.of(gateway)


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
        settings = made(**CERTIFIED, **stores, **{"bootstrap.servers": broker.address})

        async def opened() -> None:
            address = settings.client.bootstrap_servers[0]
            (await Upstream.open(address, settings, None, cast("UpstreamListener", None))).abort()

        with pytest.raises(ConnectionLost):
            await opened()
        write(stores["ssl.keystore.location"], store(leaf("gateway", signer)))
        await settings.refresh_certificates()
        await opened()


async def test_certificates_that_cannot_be_used_change_nothing(
    stores: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    settings = made(**CERTIFIED, **stores)
    before = settings.client.tls
    assert before is not None
    write(stores["ssl.keystore.location"], "nonsense")
    for _ in range(2):
        await settings.refresh_certificates()
    assert settings.client.tls is before
    (line,) = caplog.messages
    assert f"{UPSTREAM}ssl.keystore.location" in line


async def test_without_tls_there_are_no_certificates_to_look_at() -> None:
    settings = made()
    await settings.refresh_certificates()
    assert settings.client.tls is None


def test_the_settings_become_those_of_a_client() -> None:
    settings = made(**{"request.timeout.ms": "7", "socket.connection.setup.timeout.ms": "8", "client.id": "me"})
    client = settings.client
    assert client.bootstrap_servers == (Address("k1", 9092), Address("::1", 9093))
    assert client.security_protocol is SecurityProtocol.SASL_PLAINTEXT
    assert client.credentials == Credentials("SCRAM-SHA-512", "gateway", "hush")
    assert (client.request_timeout_ms, client.setup_timeout_ms, client.client_id) == (7, 8, "me")
    assert settings.identity is UpstreamIdentity.OWNER_TOKEN
    assert settings.identity_mechanism is ScramMechanism.SHA_512
    assert "hush" not in repr(settings)


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
