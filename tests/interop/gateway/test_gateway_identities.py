"""The gateway logs in upstream as each client's own principal, so that the cluster's ACLs apply to the client."""

from __future__ import annotations

import asyncio
import struct
import time
import uuid

import aiokafka
import aiokafka.errors
import pytest

from kafka_dt.client import DelegationToken, TokenClient
from kafka_dt.identity.acls.binding import ResourceType
from kafka_dt_protocol.login.authentication import REAUTHENTICATION_INTERVAL_MS
from tests.interop.gateway.conftest import GatewayMaker
from tests.interop.test_scram_users import ALTER_USERS, alter, described
from tests.support.brokers.kraft import GATEWAY, KraftCluster
from tests.support.brokers.kraft_operator import Operator
from tests.support.identity.scram_changes import deletion, upsertion
from tests.support.nodes.gateway import IDENTITY, UPSTREAM, Gateway, service_login
from tests.support.nodes.node import SHA_256
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import EXPIRE, METADATA, SASL_AUTHENTICATE, RawConnection, ms

WITHIN_S = 1.0
COUNT = 20


async def produce(gateway: Gateway, token: DelegationToken, topic: str) -> None:
    login = gateway.settings(token, "aiokafka", "SCRAM-SHA-512")
    async with aiokafka.AIOKafkaProducer(**login, request_timeout_ms=15_000) as producer:
        for number in range(COUNT):
            await producer.send_and_wait(topic, str(number).encode(), partition=number % 2)


async def consume(gateway: Gateway, token: DelegationToken, topic: str) -> list[int]:
    login = gateway.settings(token, "aiokafka")
    consumer = aiokafka.AIOKafkaConsumer(topic, **login, auto_offset_reset="earliest")
    try:
        await consumer.start()
        return sorted([int((await consumer.getone()).value or b"-1") for _ in range(COUNT)])
    finally:
        await consumer.stop()


async def test_acls_of_upstream_hold_for_the_owners_of_tokens(
    gateway: Gateway, alice: DelegationToken, bob: DelegationToken, topic: str, operator: Operator
) -> None:
    await produce(gateway, alice, topic)
    with pytest.raises(aiokafka.errors.TopicAuthorizationFailedError):
        await produce(gateway, bob, topic)
    with pytest.raises(aiokafka.errors.TopicAuthorizationFailedError):
        await consume(gateway, bob, topic)
    assert await consume(gateway, alice, topic) == list(range(COUNT))

    await asyncio.to_thread(operator.allow, "bob", ResourceType.TOPIC, topic)
    assert await consume(gateway, bob, topic) == list(range(COUNT))


async def test_the_gateway_has_a_few_tokens_upstream_for_each_owner_and_renews_them_itself(
    gateway: Gateway, alice: DelegationToken, cluster: KraftCluster, topic: str
) -> None:
    async with TokenClient.from_config({**service_login(), "bootstrap.servers": cluster.sasl}) as client:
        # Other tests have other gateways in front of this cluster, and nodes that were restarted.
        before = await client.describe(["User:alice"])
        for _ in range(3):
            await produce(gateway, alice, topic)
        tokens = await client.describe(["User:alice"])
    assert {str(each.owner) for each in tokens} == {"User:alice"}
    assert {str(each.requester) for each in tokens} == {f"User:{GATEWAY}"}
    assert all(f"User:{GATEWAY}" in map(str, each.renewers) for each in tokens)
    # Workers know nothing of each other, and may make theirs at the same moment.
    assert len({each.token_id for each in tokens} - {each.token_id for each in before}) <= len(gateway.workers())


def test_a_revoked_token_ends_its_connections_here_and_upstream(gateway: Gateway, cluster: KraftCluster) -> None:
    token = gateway.make_token("carol")

    def forwarding() -> RawConnection:
        connection = gateway.connect_by_token(token)
        connection.ask(METADATA, 1, topics=())
        return connection

    # From then on every worker has what it needs for carol, and opens no other connection of its own.
    with gateway.on_every_worker(forwarding), gateway.connect(user="carol") as owner:
        before = gateway.sockets_to(cluster.sasl)
        with forwarding() as holder:
            opened = gateway.sockets_to(cluster.sasl) - before
            assert len(opened) == 1
            owner.ask(EXPIRE, 2, hmac=token.hmac, expiry_time_period=ms(-1))
            assert holder.closed(within_s=WITHIN_S)
            eventually(lambda: not opened & gateway.sockets_to(cluster.sasl), within_s=WITHIN_S)


def test_a_stolen_token_makes_itself_no_password_upstream(gateway: Gateway, operator: Operator) -> None:
    operator.allow("carol", ResourceType.CLUSTER, "kafka-cluster")
    token, user = gateway.make_token("carol"), uuid.uuid4().hex
    with gateway.connect_by_token(token) as thief, gateway.connect(user="carol") as owner:
        assert alter(thief, upsertion(user)) == {user: 64}
        assert described(thief, user) == {user: (91, [])}
        # The cluster refuses nothing, though the gateway logs in there with a token of carol's.
        assert alter(owner, upsertion(user)) == {user: 0}
        assert alter(thief, deletions=(deletion(user),)) == {user: 64}
        eventually(lambda: described(thief, user) == {user: (0, [(1, 4096)])}, WITHIN_S)
        assert alter(owner, deletions=(deletion(user),)) == {user: 0}


def test_a_stolen_token_makes_itself_no_password_in_one_write_with_its_login(
    gateway: Gateway, operator: Operator
) -> None:
    operator.allow("carol", ResourceType.CLUSTER, "kafka-cluster")
    token, users = gateway.make_token("carol"), (uuid.uuid4().hex, uuid.uuid4().hex)
    with gateway.connect() as thief, gateway.connect(user="carol") as owner:
        for user in users:  # at the first login, and at a re-authentication
            _, proof = thief.begin_scram(token.token_id, token.hmac_base64, SHA_256, token=True)
            login = thief.encode(SASL_AUTHENTICATE, 2, auth_bytes=proof)
            change = thief.encode(ALTER_USERS, 0, deletions=(), upsertions=(upsertion(user),))
            thief.send(b"".join(struct.pack(">i", len(frame)) + frame for frame in (login, change)))
            assert thief.answer(SASL_AUTHENTICATE, 2).error_code.value == 0
            assert [result.error_code.value for result in thief.answer(ALTER_USERS, 0).results] == [64]
            time.sleep(REAUTHENTICATION_INTERVAL_MS / 1000)  # no re-authentication is taken sooner
        assert described(owner, *users) == dict.fromkeys(users, (91, []))


@pytest.mark.soak
async def test_everybody_may_be_the_gateway_itself(
    other_gateway: GatewayMaker, bob: DelegationToken, operator: Operator
) -> None:
    with other_gateway("service", **{IDENTITY: "service"}) as gateway:
        await produce(gateway, bob, operator.make_topic("for-the-gateway", 1, 2))


async def test_nobody_may_be_anybody_where_upstream_has_no_logins(
    other_gateway: GatewayMaker, cluster: KraftCluster, bob: DelegationToken, operator: Operator
) -> None:
    plaintext: dict[str, object] = {f"{UPSTREAM}.{key}": None for key in service_login()}
    plaintext |= {IDENTITY: "none", f"{UPSTREAM}.bootstrap.servers": cluster.plaintext}
    with other_gateway("none", **plaintext) as gateway:
        await produce(gateway, bob, operator.make_topic("for-no-user", 1, 2))


async def test_a_file_may_say_who_is_whom(
    small_gateway: Gateway, alice: DelegationToken, bob: DelegationToken, topic: str
) -> None:
    await produce(small_gateway, alice, topic)
    assert await consume(small_gateway, alice, topic) == list(range(COUNT))
    with small_gateway.connect_by_token(bob) as nobody:
        nobody.request(METADATA, 1, topics=())
        assert nobody.closed()
