"""The stores of a node in a cluster, as the settings make them and as a reload changes them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from kafka_dt.client import Address, Credentials
from kafka_dt.config import Settings, from_properties, upstream_client_properties
from kafka_dt.idle import IdleTime
from kafka_dt.kraft.node import node_stores
from kafka_dt.stores import StoreNeeds, WorkerPlace
from kafka_dt.tokens import TokenCache, TokenLimits
from kafka_dt.upstream import UpstreamClient

UPSTREAM = "kafka.dt.gateway.upstream."
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def settings(servers: str, password: str) -> Settings:
    properties = {
        "kafka.dt.token.store": "upstream",
        f"{UPSTREAM}bootstrap.servers": servers,
        f"{UPSTREAM}security.protocol": "SASL_PLAINTEXT",
        f"{UPSTREAM}sasl.mechanism": "PLAIN",
        f"{UPSTREAM}sasl.jaas.config": f'{PLAIN} username="gateway" password="{password}";',
    }
    return from_properties(properties).settings


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
