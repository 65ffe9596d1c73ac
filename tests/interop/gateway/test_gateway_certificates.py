"""Clients with a certificate are users of the cluster: the settings of docs/how-to/certificates.md."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Final

import aiokafka
import aiokafka.errors
import javaproperties
import pytest

from kafka_dt.tls import client_context
from tests.support.brokers.kraft import KraftCluster
from tests.support.docs.documents import blocks
from tests.support.identity.tls_material import Identity, authority, leaf, subject_of
from tests.support.nodes.gateway import PORT_BASE, PORTS, UPSTREAM, Gateway, service_login
from tests.support.processes.ports import free_ports

PAGE: Final = "docs/how-to/certificates.md"
SETTINGS, CLIENT = (javaproperties.loads(block.text) for block in blocks(PAGE, "properties"))
FOLDER: Final = "/etc/kafka-dt"


@pytest.fixture(scope="module")
def root() -> Identity:
    """Who signs all certificates."""
    return authority("Root")


@pytest.fixture(scope="module")
def tls_gateway(cluster: KraftCluster, root: Identity, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with the page's settings, in front of brokers without TLS."""
    folder = tmp_path_factory.mktemp("tls-gateway")
    certificate = leaf("localhost", root)
    key_store = folder / "gateway.pem"
    key_store.touch(mode=0o600)
    key_store.write_text(certificate.key_pem() + certificate.chain_pem)
    (folder / "clients-ca.pem").write_text(root.certificate_pem)
    base = free_ports(PORTS)
    here = {
        "listeners": f"SSL://127.0.0.1:{base}",
        "advertised.listeners": f"SSL://127.0.0.1:{base}",
        PORT_BASE: str(base),
        f"{UPSTREAM}.bootstrap.servers": cluster.sasl,
        **{f"{UPSTREAM}.{key}": value for key, value in service_login().items()},
    }
    settings = {key: value.replace(FOLDER, str(folder)) for key, value in SETTINGS.items()} | here
    for key in [key for key in settings if key.startswith(f"{UPSTREAM}.ssl.")]:
        del settings[key]
    with Gateway(folder, settings, name="tls-gateway") as running:
        yield running
    running.check_log()


def login(name: str | None, root: Identity) -> ssl.SSLContext:
    """The client settings of the page, with the certificate of a user."""
    stores = {
        key: value
        for key, value in CLIENT.items()
        if key.startswith("ssl.") and not key.endswith(".location") and not (name is None and "keystore" in key)
    }
    stores["ssl.truststore.certificates"] = root.certificate_pem
    if name is not None:
        identity = leaf(name, root, subject_of(f"CN={name},O=Example"))
        stores |= {"ssl.keystore.key": identity.key_pem(), "ssl.keystore.certificate.chain": identity.chain_pem}
    return client_context(stores)


async def produce(gateway: Gateway, context: ssl.SSLContext, topic: str) -> None:
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=gateway.address("SSL"),
        security_protocol=CLIENT["security.protocol"],
        ssl_context=context,
        request_timeout_ms=15_000,
    )
    try:
        await producer.start()
        await producer.send_and_wait(topic, b"a record")
    finally:
        await producer.stop()


async def test_the_cluster_sees_the_user_of_each_certificate(tls_gateway: Gateway, root: Identity, topic: str) -> None:
    await produce(tls_gateway, login("alice", root), topic)
    with pytest.raises(aiokafka.errors.TopicAuthorizationFailedError):
        await produce(tls_gateway, login("bob", root), topic)


async def test_a_client_without_a_certificate_does_not_come_in(
    tls_gateway: Gateway, root: Identity, topic: str
) -> None:
    with pytest.raises(aiokafka.errors.KafkaConnectionError):
        await produce(tls_gateway, login(None, root), topic)
