"""Clients with a certificate at a node that relays logins: they have no login that could pass to the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import aiokafka.errors
import pytest

from kafka_dt.client import ClientConfig, TokenClient
from kafka_dt.tls import client_context
from tests.interop.gateway.test_gateway_certificates import produce
from tests.interop.kraft.conftest import TOPIC, at_brokers, started
from tests.support.brokers.kraft import GATEWAY, KraftCluster
from tests.support.identity.tls_material import Identity, authority, leaf, subject_of
from tests.support.nodes.gateway import IDENTITY, PORT_BASE, PORTS, Gateway
from tests.support.processes.ports import free_ports

SSL: Final = "listener.name.ssl"


@pytest.fixture(scope="module")
def root() -> Identity:
    """Who signs all certificates."""
    return authority("Root")


@pytest.fixture(scope="module")
def node(cluster: KraftCluster, root: Identity, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A node with `relay` that takes passwords at one listener, and certificates at another."""
    folder = tmp_path_factory.mktemp("certificates")
    certificate = leaf("localhost", root)
    (folder / "node.pem").write_text(certificate.key_pem() + certificate.chain_pem)
    (folder / "clients-ca.pem").write_text(root.certificate_pem)
    base = free_ports(PORTS)
    settings = {
        IDENTITY: "relay",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": None,
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:{base}",
        "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL",
        f"{SSL}.{PORT_BASE}": base,
        f"{SSL}.ssl.client.auth": "required",
        f"{SSL}.ssl.keystore.type": "PEM",
        f"{SSL}.ssl.keystore.location": folder / "node.pem",
        f"{SSL}.ssl.truststore.type": "PEM",
        f"{SSL}.ssl.truststore.location": folder / "clients-ca.pem",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/",
    }
    with ExitStack() as stack:
        running = started(stack, cluster, tmp_path_factory, "certified", **settings)
        yield running
    running.check_log()


def stores(name: str, root: Identity) -> dict[str, str]:
    """The client settings of the user that a certificate names."""
    identity = leaf(name, root, subject_of(f"CN={name},O=Example"))
    return {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": root.certificate_pem,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": identity.key_pem(),
        "ssl.keystore.certificate.chain": identity.chain_pem,
    }


async def test_a_client_with_a_certificate_acts_as_its_user_and_has_tokens_of_the_cluster(
    node: Gateway, cluster: KraftCluster, root: Identity
) -> None:
    context = client_context(stores("alice", root))
    await produce(node, context, TOPIC)
    with pytest.raises(aiokafka.errors.TopicAuthorizationFailedError):
        await produce(node, context, "bob-records")
    config = ClientConfig.from_properties(
        {"bootstrap.servers": node.address("SSL"), "security.protocol": "SSL", **stores("alice", root)}
    )
    async with TokenClient(config) as alice:
        made = await alice.create()
        await alice.expire(made.hmac)
    assert (made.owner, made.requester) == ("User:alice", f"User:{GATEWAY}")
    async with at_brokers(cluster, GATEWAY) as gateway:
        of_alice = await gateway.describe(["User:alice"])
    assert made.token_id not in {each.token_id for each in of_alice}
    by_gateway = [each for each in of_alice if each.renewers.count(f"User:{GATEWAY}") == 2]
    assert by_gateway, "it acts upstream by a token that the gateway has created"
