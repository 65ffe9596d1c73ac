"""The stores of a node in a cluster, as the settings make them and as a reload changes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

import pytest
from kio.schema.errors import ErrorCode

from kafka_dt.client import Address, Credentials
from kafka_dt.config import Settings, from_properties, upstream_client_properties
from kafka_dt.idle import IdleTime
from kafka_dt.kraft.node import creates_tokens, node_stores, proof_patience_s
from kafka_dt.stores import ClusterUnavailable, StoreNeeds, WorkerPlace
from kafka_dt.tokens import DelegationToken, Expiry, TokenCache, TokenLimits
from kafka_dt.upstream import UpstreamClient
from kafka_dt_protocol.api.registry import ApiKey, AskedApi
from kafka_dt_protocol.wire.times import to_timestamp
from tests.support.tokens.nodes import ALICE, START
from tests.support.tokens.scripted_cluster import ScriptedCluster
from tests.support.tokens.scripted_topic import ScriptedTopic
from tests.support.tokens.store_contract import new_token

UPSTREAM = "kafka.dt.gateway.upstream."
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def settings(servers: str, password: str, **more: str) -> Settings:
    properties = {
        "kafka.dt.token.store": "upstream",
        f"{UPSTREAM}bootstrap.servers": servers,
        f"{UPSTREAM}security.protocol": "SASL_PLAINTEXT",
        f"{UPSTREAM}sasl.mechanism": "PLAIN",
        f"{UPSTREAM}sasl.jaas.config": f'{PLAIN} username="gateway" password="{password}";',
    }
    return from_properties(properties | more).settings


async def test_the_stores_take_over_another_login_and_other_servers() -> None:
    before = settings("k1:9092", "one")
    upstream = UpstreamClient(upstream_client_properties(before))
    with ThreadPoolExecutor(1) as executor:
        needs = StoreNeeds(None, TokenCache(None), TokenLimits(), executor, IdleTime(executor))
        stores = node_stores(before, WorkerPlace(0, 1, "a node"), needs, upstream=upstream, now_ms=lambda: 0)
        take_over = stores.prepare(settings("k2:9092", "two"))
        assert upstream.servers() == (Address("k1", 9092),)
        take_over()
        assert upstream.servers() == (Address("k2", 9092),)
        assert upstream.config.login == Credentials("PLAIN", "gateway", "two")
        await stores.close()


RELAY = {f"{UPSTREAM}identity": "relay", "listeners": "SASL_SSL://:9092", "sasl.enabled.mechanisms": "SCRAM-SHA-512"}
BOTH = {"listeners": "SASL_SSL://:9092,SSL://:9093", "ssl.client.auth": "required"}
KERBEROS = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-512,GSSAPI",
    "sasl.kerberos.service.name": "kafka",
    "listener.name.sasl_ssl.gssapi.sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required "
    'useKeyTab="true" keyTab="/etc/kafka.keytab" principal="kafka/node.example.com@EXAMPLE.COM";',
}


@pytest.mark.parametrize(
    ("more", "creates"),
    [
        pytest.param(RELAY, False, id="every client logs in at the cluster"),
        pytest.param(RELAY | BOTH, True, id="or has a certificate"),
        pytest.param(RELAY | KERBEROS, True, id="or a ticket"),
        pytest.param(RELAY | {"kafka.dt.token.store": "zookeeper,upstream"}, True, id="or a token in ZooKeeper"),
        pytest.param(RELAY | {f"{UPSTREAM}identity": "owner-token"}, True, id="clients log in here"),
    ],
)
def test_a_gateway_creates_tokens_for_clients_that_do_not_log_in_at_the_cluster(
    more: dict[str, str], *, creates: bool
) -> None:
    assert creates_tokens(settings("k1:9092", "one", **more)) is creates


class Place:
    """A worker of a node of its own."""

    def __init__(self, cluster: ScriptedCluster, stack: AsyncExitStack, **more: str) -> None:
        chosen = settings(cluster.server.address, "secret", **more)
        executor = stack.enter_context(ThreadPoolExecutor(1))
        upstream = UpstreamClient(upstream_client_properties(chosen))
        self.cache = TokenCache(None)
        needs = StoreNeeds(None, self.cache, TokenLimits(), executor, IdleTime(executor))
        self.stores = node_stores(chosen, WorkerPlace(0, 1, "a node"), needs, upstream=upstream, now_ms=lambda: START)
        self.stores.tokens.on_change(self.cache.apply)
        stack.push_async_callback(self.stores.close)

    async def start(self) -> None:
        await self.stores.cluster.start()
        await self.stores.tokens.load()

    async def delete(self, held: DelegationToken) -> None:
        assert self.stores.token_changes is not None
        await self.stores.token_changes.change(held.token.token_id, held.hmac, Expiry(ALICE, -1))

    @property
    def silence_s(self) -> float:
        assert self.stores.news_silence_s is not None
        return self.stores.news_silence_s()


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - a condition about a server has no event
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(("max_staleness_ms", "seconds"), [(3_000, 1.5), (30_000, 15), (600_000, 15)])
def test_a_broker_that_is_cut_off_is_left_soon_whatever_staleness_is_allowed(
    max_staleness_ms: int, seconds: float
) -> None:
    assert proof_patience_s(max_staleness_ms) == seconds


async def test_a_node_obeys_a_revocation_of_another_one_whose_record_its_broker_does_not_have(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    cluster = ScriptedCluster.fit("gateway", "secret")
    topic = ScriptedTopic(cluster.server, "__kafka_dt_revocations", exists=False)
    held = DelegationToken(new_token(owner=ALICE), bytes(64))
    cluster.described[held.token.token_id] = held
    cluster.server.scripts[ApiKey.EXPIRE_DELEGATION_TOKEN] = lambda *_: {
        "error_code": ErrorCode.none,
        "expiry_timestamp": to_timestamp(START),
    }
    async with cluster.running(), AsyncExitStack() as stack:
        one, other = Place(cluster, stack), Place(cluster, stack)
        for each in (one, other):
            await each.start()
        assert len(topic.made) == 1
        assert "has created topic __kafka_dt_revocations" in caplog.text
        await eventually(lambda: one.silence_s < 5 and other.silence_s < 5)
        cluster.offsets = [cluster._offset] * 10_000  # from now on the broker is cut off from its controllers
        await one.delete(held)
        await eventually(lambda: other.cache.get(held.token.token_id) is None)
        await asyncio.sleep(0.6)
        assert held.token.token_id in cluster.described
        assert other.cache.get(held.token.token_id) is None, "looks at that broker do not bring it back"


async def test_without_a_topic_nodes_tell_each_other_nothing() -> None:
    cluster = ScriptedCluster.fit("gateway", "secret")
    topic = ScriptedTopic(cluster.server, "__kafka_dt_revocations", exists=False)
    async with cluster.running(), AsyncExitStack() as stack:
        place = Place(cluster, stack, **{"kafka.dt.upstream.news.topic": ""})
        await place.start()
        assert place.stores.news_silence_s is None
        assert topic.made == []


async def test_a_topic_that_may_not_be_made_is_a_warning_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    cluster = ScriptedCluster.fit("gateway", "secret")
    topic = ScriptedTopic(cluster.server, "__kafka_dt_revocations", exists=False)
    topic.errors[AskedApi.CREATE_TOPICS] = [ErrorCode.topic_authorization_failed]
    async with cluster.running(), AsyncExitStack() as stack:
        await Place(cluster, stack).start()
        assert "there is no topic __kafka_dt_revocations" in caplog.text
        assert "kafka-dt upstream init" in caplog.text


async def test_in_a_cluster_that_cannot_be_the_store_no_topic_is_made() -> None:
    cluster = ScriptedCluster.fit("gateway", "secret")
    topic = ScriptedTopic(cluster.server, "__kafka_dt_revocations", exists=False)
    cluster.describe_error = ErrorCode.delegation_token_auth_disabled
    async with cluster.running(), AsyncExitStack() as stack:
        with pytest.raises(ClusterUnavailable):
            await Place(cluster, stack).start()
        assert topic.made == []
