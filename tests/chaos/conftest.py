"""Fixtures of the tests that break connections and processes on purpose; each of them gets the marker `chaos`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nodes.node import Node, node_properties
from tests.support.zookeeper.server import make_chroot, running_zookeeper


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.chaos)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node whose clients misbehave; its ZooKeeper is left alone."""
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper")) as address:
        connect = make_chroot(address, "chaos")
        properties = node_properties(connect, delegation_token_metadata_encryption_enable=True)
        with Node(tmp_path_factory.mktemp("node"), properties) as node:
            node.zookeeper = connect
            yield node
        node.check_log()
