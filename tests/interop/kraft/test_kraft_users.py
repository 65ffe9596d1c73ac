"""SCRAM users of a Kafka 4 cluster, changed by kafka-dt's own client.

The cluster is its own: a broker of Kafka 3.9.1 or 4.4.0 forgets all SCRAM users when it starts again after one has been
deleted, and other tests start theirs again.

The controller answers a change as soon as it is committed; a broker describes it some milliseconds later.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from kafka_dt.client.admin_client import AdminClient
from kafka_dt_protocol.sasl import ScramMechanism
from tests.support.brokers.kraft import KraftCluster
from tests.support.java.jvm import Java
from tests.support.java.maven import Classpath
from tests.support.processes.waiting import eventually

WITHIN_S = 5.0


def test_a_user_gets_and_loses_both_mechanisms_at_once(java: Java, kraft_classpath: Classpath, tmp_path: Path) -> None:
    with KraftCluster(tmp_path, java=java, classpath=kraft_classpath, brokers=1) as cluster:

        def client() -> AdminClient:
            return AdminClient.from_config({"bootstrap.servers": cluster.plaintext})

        async def set_password() -> None:
            async with client() as admin:
                await admin.set_password("zoe", "opensesame")

        async def delete_user() -> None:
            async with client() as admin:
                await admin.delete_user("zoe", ScramMechanism)

        async def mechanisms() -> set[ScramMechanism]:
            async with client() as admin:
                return set((await admin.scram_users(["zoe"])).get("zoe", ()))

        asyncio.run(set_password())
        eventually(lambda: asyncio.run(mechanisms()) == set(ScramMechanism), WITHIN_S)
        asyncio.run(delete_user())
        eventually(lambda: not asyncio.run(mechanisms()), WITHIN_S)
