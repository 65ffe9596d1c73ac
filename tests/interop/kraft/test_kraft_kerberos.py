"""Clients with Kerberos at a node that relays logins: the cluster takes no Kerberos, so their login cannot pass."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafka_dt.client import DelegationToken
from tests.interop.kdc import REALM, SERVICE, Kdc, accepting
from tests.interop.kraft.conftest import TOPIC, at_brokers, started
from tests.interop.kraft.test_kraft_nodes import HOUR, marked
from tests.support.brokers.broker import USERS
from tests.support.brokers.kraft import GATEWAY, KraftCluster
from tests.support.java.properties import kerberos, plain, token
from tests.support.java.reference_client import JavaClientError, ReferenceClient
from tests.support.nodes.gateway import IDENTITY, Gateway


@pytest.fixture(scope="module")
def node(kdc: Kdc, cluster: KraftCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A node with `relay` that takes passwords, which the cluster checks, and Kerberos at the same listener."""
    settings = accepting(kdc.keytab(SERVICE)) | {
        IDENTITY: "relay",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": None,
        "sasl.enabled.mechanisms": "GSSAPI,PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    }
    with ExitStack() as stack:
        running = started(stack, cluster, tmp_path_factory, "kerberos", kdc.environment, **settings)
        yield running
    running.check_log()


@pytest.fixture(scope="module")
def keytab(kdc: Kdc) -> Path:
    """The keys of two clients."""
    return kdc.keytab("alice", "svc-bob")


@pytest.fixture
def client(java_4x: ReferenceClient, kdc: Kdc) -> ReferenceClient:
    java_4x.set_property("java.security.krb5.conf", str(kdc.krb5_conf))
    return java_4x


async def tokens_at_brokers(cluster: KraftCluster, user: str) -> list[DelegationToken]:
    async with at_brokers(cluster, GATEWAY) as gateway:
        return [each for each in await gateway.describe([f"User:{user}"]) if each.owner == f"User:{user}"]


@pytest.mark.parametrize("name", ["alice", "svc-bob"])
def test_a_client_with_a_keytab_acts_upstream_as_the_user_that_the_rules_make_of_its_name(
    node: Gateway, cluster: KraftCluster, client: ReferenceClient, keytab: Path, name: str
) -> None:
    user = name.removeprefix("svc-")
    of_the_user, of_another = (TOPIC, "bob-records") if user == "alice" else ("bob-records", TOPIC)
    with client.open(node.sasl, kerberos(f"{name}@{REALM}", keytab)) as session:
        assert session.produce(of_the_user, "by Kerberos") >= 0
        with pytest.raises(JavaClientError) as refused:
            session.produce(of_another, "by Kerberos")
    assert refused.value.kind == "TopicAuthorizationException"
    by_gateway = marked(asyncio.run(tokens_at_brokers(cluster, user)))
    assert by_gateway, "it acts upstream by a token that the gateway has created"


def test_a_client_with_a_keytab_gets_a_token_of_the_cluster_from_the_gateway(
    node: Gateway, cluster: KraftCluster, client: ReferenceClient, keytab: Path
) -> None:
    with client.open(node.sasl, kerberos(f"alice@{REALM}", keytab)) as session:
        made = session.create()
        assert (made.owner, made.requester, made.renewers) == ("User:alice", f"User:{GATEWAY}", ())
        session.renew(made.hmac, HOUR)
        with client.open(node.sasl, token(made.login)) as holder:
            assert holder.produce(TOPIC, "by a token") >= 0
        session.expire(made.hmac)
        assert made.token_id not in {each.token_id for each in session.describe()}
    assert made.token_id not in {each.token_id for each in asyncio.run(tokens_at_brokers(cluster, "alice"))}


def test_a_client_with_a_password_at_the_same_listener_is_relayed(node: Gateway, client: ReferenceClient) -> None:
    with client.open(node.sasl, plain("alice", USERS["alice"])) as session:
        assert session.create().requester == "User:alice"
