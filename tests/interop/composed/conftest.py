"""A node and a Kafka 3.9 broker on one ensemble and one key, as docker-compose.yml starts them.

Inside the network of `docker compose run tests` they are there already:

    KAFKA_DT_TEST_BOOTSTRAP    host:port of the node
    KAFKA_DT_TEST_BROKER       host:port of the broker

Elsewhere the services of the profiles `tests` and `kafka` run as processes of this machine, for `make soak`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import pytest

from tests.integration.conftest import BOOTSTRAP_VARIABLE
from tests.support.brokers.broker import USERS
from tests.support.java.maven import KAFKA_39, LOGGING
from tests.support.java.properties import plain
from tests.support.nodes.compose import Composed, kafka_scripts
from tests.support.nodes.server import READY
from tests.support.zookeeper.server import make_chroot

BROKER_VARIABLE: Final = "KAFKA_DT_TEST_BROKER"
INSIDE: Final = BROKER_VARIABLE in os.environ
"""Whether the services are those of containers."""
START_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Profile:
    """The services of a profile that a broker beside a node takes."""

    zookeeper: str
    secrets: str
    broker: str
    node: str
    rights: str | None
    """Allows alice to use topics that begin with `alice-`; without it everyone may do everything."""


PROFILES: Final = {
    "tests": Profile("tests-zookeeper", "tests-secrets", "tests-kafka", "tests-kafka-dt", None),
    "kafka": Profile("beside-zookeeper", "beside-secrets", "kafka", "kafka-dt-beside", "beside-rights"),
}


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The node and the broker, and how alice logs in."""

    node: str
    """host:port of its listener with login."""
    broker: str
    password: str
    """Of alice."""

    @property
    def alice(self) -> dict[str, str]:
        """How alice logs in with PLAIN at either of them, as a Java client."""
        return plain("alice", self.password)


@pytest.fixture(scope="package", params=["containers"] if INSIDE else list(PROFILES))
def neighbours(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbours]:
    """The node and the broker."""
    if INSIDE:
        yield Neighbours(os.environ[BOOTSTRAP_VARIABLE], os.environ[BROKER_VARIABLE], USERS["alice"])
        return
    java, jars = request.getfixturevalue("java"), request.getfixturevalue("classpath_of")
    folder = tmp_path_factory.mktemp(f"composed-{request.param}")
    programs = {"kafka-server-start": "kafka.Kafka"}
    scripts = kafka_scripts(folder / "bin", java, (*jars(KAFKA_39), *jars(LOGGING)), programs)
    profile = PROFILES[request.param]
    connect = make_chroot(request.getfixturevalue("zookeeper_connect").partition("/")[0], request.param)
    others = {f"{profile.zookeeper}:2181": connect}
    composed = Composed(folder, [profile.broker, profile.node], scripts, others)
    with ExitStack() as stack:
        yield _started(profile, composed, stack)


def _started(profile: Profile, composed: Composed, stack: ExitStack) -> Neighbours:
    composed.run(profile.secrets)
    broker = stack.enter_context(composed.process(profile.broker))
    broker.wait_for(r"\[KafkaServer id=\d+\] started", START_TIMEOUT_S)
    address = composed.address(profile.node, 9092)
    # The image's settings listen on all addresses of a container.
    listeners = f"listeners=SASL_PLAINTEXT://{address},HOST://{composed.address(profile.node, 19092)}"
    node = stack.enter_context(composed.process(profile.node, "--override", listeners))
    node.wait_for(READY, START_TIMEOUT_S)
    if profile.rights:
        composed.run(profile.rights)
    (password,) = re.findall(r'user_alice="([^"]+)"', (composed.secrets / "users.jaas").read_text())
    return Neighbours(address, composed.address(profile.broker, 9092), password)
