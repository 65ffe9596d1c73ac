"""SCRAM users of a Kafka 4 cluster, changed by kafka-dt's own client."""

from __future__ import annotations

from kafka_dt.client.admin_client import AdminClient
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.brokers.kraft import KraftCluster


async def test_a_user_gets_and_loses_both_mechanisms_at_once(cluster: KraftCluster) -> None:
    async with AdminClient.from_config({"bootstrap.servers": cluster.plaintext}) as client:
        await client.set_password("zoe", "opensesame")
        assert set((await client.scram_users(["zoe"]))["zoe"]) == set(ScramMechanism)
        await client.delete_user("zoe", ScramMechanism)
        assert await client.scram_users(["zoe"]) == {}
