"""Python's Kafka clients log in with a token of kafka-dt as plain SCRAM credentials: they cannot say tokenauth."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import aiokafka.admin
import confluent_kafka.admin
import kafka
import kafka.errors
import pytest

from kafka_dt.client import DelegationToken, TokenClient, TokenNotFound, TokenRequestNotAllowed, settings
from tests.interop.conftest import Authority
from tests.support.brokers.broker import USERS
from tests.support.java.properties import SCRAM_MECHANISMS, TokenLogin, plain, token
from tests.support.nodes.server import KafkaDt

TIMEOUT_S = 20.0

pytestmark = pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)


@pytest.fixture
async def alice(server: KafkaDt) -> AsyncIterator[TokenClient]:
    properties = {**plain("alice", USERS["alice"]), "bootstrap.servers": server.sasl}
    async with TokenClient.from_config(properties) as client:
        yield client


@pytest.fixture
async def alices_token(alice: TokenClient) -> DelegationToken:
    return await alice.create(max_lifetime_ms=60_000)


def pasted(made: DelegationToken, kind: str, server: KafkaDt, mechanism: str) -> dict[str, str]:
    """The settings as a user pastes them."""
    return dict(
        settings(
            made,
            kind,
            bootstrap_servers=server.sasl,
            security_protocol="SASL_PLAINTEXT",
            mechanism=mechanism,
        )
    )


@pytest.mark.client("aiokafka", "login")
async def test_aiokafka_lists_metadata(alices_token: DelegationToken, server: KafkaDt, mechanism: str) -> None:
    admin = aiokafka.admin.AIOKafkaAdminClient(**pasted(alices_token, "aiokafka", server, mechanism))
    await admin.start()
    try:
        assert await admin.list_topics() == []
        (node,) = (await admin.describe_cluster())["brokers"]
        assert f"{node['host']}:{node['port']}" == server.sasl
    finally:
        await admin.close()


@pytest.mark.client("kafka-python", "login")
def test_kafka_python_lists_metadata(alices_token: DelegationToken, server: KafkaDt, mechanism: str) -> None:
    admin = kafka.KafkaAdminClient(**pasted(alices_token, "kafka-python", server, mechanism))
    try:
        assert admin.list_topics() == []
        (node,) = admin.describe_cluster()["brokers"]
        assert f"{node['host']}:{node['port']}" == server.sasl
    finally:
        admin.close()


@pytest.mark.client("confluent-kafka", "login")
def test_confluent_kafka_lists_metadata(alices_token: DelegationToken, server: KafkaDt, mechanism: str) -> None:
    admin = confluent_kafka.admin.AdminClient({**pasted(alices_token, "confluent", server, mechanism)})
    metadata = admin.list_topics(timeout=TIMEOUT_S)
    assert metadata.topics == {}
    assert [f"{node.host}:{node.port}" for node in metadata.brokers.values()] == [server.sasl]


async def test_a_wrong_secret_is_refused(alices_token: DelegationToken, server: KafkaDt, mechanism: str) -> None:
    wrong = replace(alices_token, hmac=b"wrong")
    admin = aiokafka.admin.AIOKafkaAdminClient(**pasted(wrong, "aiokafka", server, mechanism))
    try:
        with pytest.raises(aiokafka.errors.KafkaError):
            await admin.start()
    finally:
        await admin.close()


async def test_our_own_client_speaks_to_a_broker_and_to_kafka_dt(authority: Authority, mechanism: str) -> None:
    properties = {**plain("alice", USERS["alice"]), "bootstrap.servers": authority.sasl}
    async with TokenClient.from_config(properties) as client:
        made = await client.create(renewers=["User:bob"])
        assert made in await client.describe(["User:bob"])
        assert await client.renew(made.hmac, 60_000) < made.expiry_timestamp_ms
        login = token(TokenLogin(made.token_id, made.hmac_base64), mechanism)
        async with TokenClient.from_config({**login, "bootstrap.servers": authority.sasl}) as holder:
            with pytest.raises(TokenRequestNotAllowed):
                await holder.create()
        await client.expire(made.hmac)
        with pytest.raises(TokenNotFound):
            await client.renew(made.hmac)
