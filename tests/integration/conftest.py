"""Fixtures of the tests that need a real ZooKeeper or server; every test of this folder gets the marker `integration`.

Both are child processes of the run, or those whose addresses are in the environment, as in docker-compose.yml:

    KAFKA_DT_TEST_ZOOKEEPER    host:port of a ZooKeeper; the tests work in chroots of their own
    KAFKA_DT_TEST_BOOTSTRAP    host:port of a SASL_PLAINTEXT listener of a kafka-dt that uses the root of this
                               ZooKeeper, with the users and the secret key of tests/support/brokers/broker.py, and
                               delegation.token.metadata.encryption.enable=false
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.nodes.node import Node, node_properties
from tests.support.nodes.server import KafkaDt, server_properties
from tests.support.zookeeper.server import make_chroot, running_zookeeper

if TYPE_CHECKING:
    from collections.abc import Iterator

BOOTSTRAP_VARIABLE = "KAFKA_DT_TEST_BOOTSTRAP"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a server and its ZooKeeper are."""

    bootstrap: str
    """`host:port` of its SASL_PLAINTEXT listener."""
    zookeeper_connect: str
    """What its `zookeeper.connect` leads to, seen from here."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session")
def zookeeper_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of the ZooKeeper that the whole run shares."""
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as address:
        yield address


@pytest.fixture
def zookeeper_connect(zookeeper_address: str, request: pytest.FixtureRequest) -> str:
    """`host:port/chroot` with an empty chroot that is this test's own."""
    name = "".join(character if character.isalnum() else "-" for character in request.node.name)
    return make_chroot(zookeeper_address, name[:40])


@pytest.fixture(scope="session")
def addresses(zookeeper_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    """The server that the whole run shares: the one that the environment names, or a child process."""
    if given := os.environ.get(BOOTSTRAP_VARIABLE):
        yield Addresses(given, zookeeper_address)
        return
    connect = make_chroot(zookeeper_address, "server")
    with KafkaDt(tmp_path_factory.mktemp("server"), server_properties(connect)) as server:
        yield Addresses(server.sasl, connect)


@pytest.fixture(scope="session")
def node(zookeeper_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node of two workers that tests share and look behind; its log must stay free of tracebacks and secrets."""
    connect = make_chroot(zookeeper_address, "node")
    with Node(tmp_path_factory.mktemp("node"), node_properties(connect)) as node:
        node.zookeeper = connect
        yield node
    node.check_log()


@pytest.fixture(scope="session")
def other_node(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A second node on the same ZooKeeper; what it writes is sealed, what the first one writes is plain."""
    properties = node_properties(node.zookeeper, delegation_token_metadata_encryption_enable=True)
    with Node(tmp_path_factory.mktemp("other-node"), properties, "other-node") as other:
        other.zookeeper = node.zookeeper
        yield other
    other.check_log()
