"""A ZooKeeper that wants a login refuses one: a command says so in one line, and a client that runs waits for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_dt.zookeeper.connection.client import ZooKeeperClient
from kafka_dt.zookeeper.connection.settings import LoginScheme, ZooKeeperLogin, ZooKeeperSettings
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from tests.integration.zookeeper_nodes import eventually
from tests.support.java.properties import write_properties
from tests.support.nodes.node import node_properties
from tests.support.zookeeper.server import child_zookeeper, quick_zookeeper

PROGRAM = str(Path(sys.executable).with_name("kafka-dt"))
JAAS = 'org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka-dt" password="{}";'
LOGIN = ZooKeeperLogin(LoginScheme.SASL_DIGEST_MD5, "kafka-dt", "a-password-of-zookeeper")
WITHIN_S = 60


def test_a_wrong_password_is_one_line_that_names_its_setting(tmp_path: Path) -> None:
    with child_zookeeper(tmp_path / "zookeeper", login=LOGIN) as server:
        properties = {
            **node_properties(server.address),
            "kafka.dt.zookeeper.sasl.jaas.config": JAAS.format("wrong"),
            "zookeeper.connection.timeout.ms": str(WITHIN_S * 1000),
        }
        file = str(write_properties(tmp_path / "server.properties", properties))
        for command in (["keys", "list"], ["serve"]):
            done = subprocess.run(
                [PROGRAM, *command, "--config", file], capture_output=True, text=True, check=False, timeout=WITHIN_S / 2
            )
            assert done.returncode == 1
            errors = [line for line in done.stderr.splitlines() if " INFO " not in line and " WARNING " not in line]
            assert errors == [
                f"Error: kafka.dt.zookeeper.sasl.jaas.config: ZooKeeper at {server.address} refuses this login: check "
                "its user name and password"
            ]


async def test_a_client_that_runs_outlives_another_password_of_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with child_zookeeper(tmp_path, login=LOGIN) as server:
        client = ZooKeeperClient(ZooKeeperSettings(server.address, login=LOGIN))
        await client.start()
        try:
            await asyncio.to_thread(server.stop)
            other = replace(LOGIN, password="another")
            with EmbeddedZooKeeper(tmp_path, port=server.port, login=other, java_options=quick_zookeeper()):
                await eventually(lambda: "refuses this login" in caplog.text)
            await asyncio.to_thread(server.start)
            await eventually(lambda: client.connected)
            await client.get("/")
        finally:
            await client.close()
    assert all(each.exc_info is None for each in caplog.records)
