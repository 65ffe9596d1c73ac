"""What docker-compose.yml starts with the profile `kraft`, with real brokers and nodes and without containers.

The same secrets, scripts, properties and overrides; only the names of hosts and the paths are those of this machine.
"""

from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import aiokafka
import pytest
import yaml  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from kafka_dt.client import TokenClient
from tests.interop.gateway.conftest import RELEASE
from tests.support.brokers.broker import LOGGING_PROPERTIES
from tests.support.docs.documents import ROOT
from tests.support.java.jvm import QUICK_START, Java
from tests.support.java.maven import Classpath
from tests.support.nodes.server import READY
from tests.support.processes.process import ChildProcess

START_TIMEOUT_S: Final = 120.0
SCRIPTS: Final = {
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-server-start": "kafka.Kafka",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
}
TOPIC: Final = "alice-records"

pytestmark = [pytest.mark.soak, pytest.mark.skipif(RELEASE == "3.9", reason="the profile is Kafka 4")]


class Composed:
    """The services, on addresses of this machine.

    Args:
        folder: receives everything that they write.
        java: what runs the brokers.
        classpath: the jars of the brokers.
    """

    def __init__(self, folder: Path, java: Java, classpath: Classpath) -> None:
        self.secrets, self._cluster = folder / "secrets", folder / "cluster"
        self._folder = folder
        self._services: Mapping[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
        self._network = f"127.{random.randrange(1, 250)}.{random.randrange(250)}"  # noqa: S311 - its ports are given
        hosts = [f"{kind}-{number}" for kind in ("kafka", "gateway") for number in range(1, 4)]
        self._hosts = {name: f"{self._network}.{number}" for number, name in enumerate(hosts, start=1)}
        self._environment = {
            "KAFKA_BIN": str(_scripts(folder / "bin", java, classpath)),
            "KAFKA_SECRETS": str(self._cluster),
            "KAFKA_DATA": str(folder / "data"),
        }
        (folder / "kraft").mkdir()
        for path in (ROOT / "docker" / "kraft").iterdir():
            copy = folder / "kraft" / path.name
            copy.write_text(self._here(path.read_text()))
            copy.chmod(path.stat().st_mode)

    def make_secrets(self) -> None:
        """Do what `kraft-secrets` does."""
        command = self._services["kraft-secrets"]["entrypoint"][4:]
        maker = self._folder / "make_secrets.py"
        maker.write_text(self._here((ROOT / "docker" / "make_secrets.py").read_text()))
        arguments = [sys.executable, "-I", "-S", str(maker), *(self._here(each) for each in command)]
        subprocess.run(
            arguments, check=True, env={**os.environ, "KAFKA_DT_BOOTSTRAP": self.address("gateway-1", 29092)}
        )

    def broker(self, name: str) -> ChildProcess:
        """Make one of the brokers."""
        return ChildProcess(name, self._script(name), self._folder / f"{name}.log", self._environment)

    def give_rights(self) -> None:
        """Do what `kraft-rights` does."""
        subprocess.run(self._script("kraft-rights"), check=True, env={**os.environ, **self._environment})

    def node(self, name: str) -> ChildProcess:
        """Make one of the nodes."""
        program = Path(sys.executable).with_name("kafka-dt")
        command = [self._here(each, name) for each in self._services[name]["command"]]
        return ChildProcess(name, [str(program), *command], self._folder / f"{name}.log")

    def address(self, name: str, port: int) -> str:
        """host:port of a service."""
        return f"{self._hosts[name]}:{port}"

    def client(self, user: str, name: str) -> dict[str, str]:
        """The settings of a user's client at a node, as copied from the volume."""
        lines = (self.secrets / f"{user}.properties").read_text().splitlines()
        port = 29092 if name == "gateway-1" else 39092
        return {**dict(line.split("=", 1) for line in lines), "bootstrap.servers": self.address(name, port)}

    def _script(self, name: str) -> list[str]:
        return [self._here(each) for each in self._services[name]["command"]]

    def _here(self, text: str, node: str = "") -> str:
        """A text of the containers with what this machine has in place of it; `node`: whose text it is."""
        places = {
            "/etc/kafka-dt/secrets": str(self.secrets),
            "/etc/kafka-dt/cluster": str(self._cluster),
            "/etc/kafka-dt/gateway.properties": str(self._folder / "kraft" / "gateway.properties"),
            "/opt/kraft": str(self._folder / "kraft"),
            **{f"{name}:": f"{address}:" for name, address in self._hosts.items()},
            **({"://:": f"://{self._hosts[node]}:", "localhost": self._hosts[node]} if node else {}),
            "kafka-$1:": f"{self._network}.$1:",
        }
        for there, here in places.items():
            text = text.replace(there, here)
        return text


def _scripts(folder: Path, java: Java, classpath: Classpath) -> Path:
    """Write the scripts of Kafka's distribution that are used."""
    folder.mkdir()
    logging = folder / "log4j.properties"
    logging.write_text(LOGGING_PROPERTIES)
    properties = {"log4j.configuration": logging.as_uri()}
    for name, main in SCRIPTS.items():
        command = java.command(main, classpath=classpath, heap_mb=320, properties=properties, flags=QUICK_START)
        path = folder / f"{name}.sh"
        path.write_text("#!/bin/bash\nexec " + " ".join(f"'{each}'" for each in command) + ' "$@"\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture(scope="module")
def composed(java: Java, kraft_classpath: Classpath, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    services = Composed(tmp_path_factory.mktemp("compose"), java, kraft_classpath)
    services.make_secrets()
    with ExitStack() as stack:
        brokers = [stack.enter_context(services.broker(f"kafka-{number}")) for number in range(1, 4)]
        for broker in brokers:
            broker.wait_for("Kafka Server started", START_TIMEOUT_S)
        services.give_rights()
        for name in ("gateway-1", "gateway-2"):
            stack.enter_context(services.node(name)).wait_for(READY, START_TIMEOUT_S)
        yield services


async def test_a_token_of_one_node_logs_in_at_the_other_and_at_a_broker_and_writes(composed: Composed) -> None:
    async with TokenClient.from_config(composed.client("admin", "gateway-1")) as admin:
        assert (await admin.describe()) == []
    async with TokenClient.from_config(composed.client("alice", "gateway-1")) as alice:
        made = await alice.create()
    assert made.owner == "User:alice"
    login: dict[str, str] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": made.token_id,
        "sasl_plain_password": made.hmac_base64,
    }
    await make_topic(composed)
    address = composed.address("gateway-2", 39092)
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=address, acks="all", **login) as producer:
        assert (await producer.send_and_wait(TOPIC, b"by a token")).offset >= 0
    at_broker = {
        **composed.client("alice", "gateway-2"),
        "bootstrap.servers": composed.address("kafka-2", 9092),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{made.token_id}" password="{made.hmac_base64}" tokenauth="true";',
    }
    async with TokenClient.from_config(at_broker):
        pass


async def make_topic(composed: Composed) -> None:
    """Make the topic as alice, through a node and with her password."""
    settings = composed.client("alice", "gateway-1")
    password = settings["sasl.jaas.config"].rpartition('password="')[2].removesuffix('";')
    admin = AIOKafkaAdminClient(
        bootstrap_servers=settings["bootstrap.servers"],
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="alice",
        sasl_plain_password=password,
    )
    await admin.start()
    try:
        await admin.create_topics([NewTopic(TOPIC, 1, 3)])
    finally:
        await admin.close()
