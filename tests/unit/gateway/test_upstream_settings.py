"""How the cluster behind a gateway is reached, from the settings of a node."""

from __future__ import annotations

import pytest

from kafka_dt.client import Address, Credentials, SecurityProtocol
from kafka_dt.config import ConfigError, UpstreamIdentity, from_properties, gateway_settings, listeners
from kafka_dt.gateway.upstream_settings import UpstreamSettings
from protocol.sasl import ScramMechanism

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
    gateway = gateway_settings(settings, listeners(settings))
    assert gateway is not None
    return UpstreamSettings.of(gateway)


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
