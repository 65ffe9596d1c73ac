"""SCRAM users of a Kafka 4 cluster, changed by kafka-dt's own client.

The cluster is its own: a broker of Kafka 3.9.1 or 4.4.0 forgets all SCRAM users when it starts again after one has been
deleted, and other tests start theirs again.
"""

from __future__ import annotations

from pathlib import Path

from kafka_dt.client.admin_client import AdminClient
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.brokers.kraft import KraftCluster
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath


async def test_a_user_gets_and_loses_both_mechanisms_at_once(
    java: Java, kraft_classpath: Classpath, tmp_path: Path
) -> None:
    with KraftCluster(tmp_path, java=java, classpath=kraft_classpath, brokers=1) as cluster:
        async with AdminClient.from_config({"bootstrap.servers": cluster.plaintext}) as client:
            await client.set_password("zoe", "opensesame")
            assert set((await client.scram_users(["zoe"]))["zoe"]) == set(ScramMechanism)
            await client.delete_user("zoe", ScramMechanism)
            assert await client.scram_users(["zoe"]) == {}
