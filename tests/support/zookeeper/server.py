"""A ZooKeeper for the tests: the one that KAFKA_DT_TEST_ZOOKEEPER names, or a child process.

The address is `host:port` without a chroot; every test works in a chroot of its own (`make_chroot`).
"""

from __future__ import annotations

import itertools
import os
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from kafka_dt.zookeeper.errors import JarsNotFound, JavaNotFound
from tests.support.java.jvm import QUICK_START

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafka_dt.zookeeper.connection.settings import ZooKeeperLogin

ADDRESS_VARIABLE = "KAFKA_DT_TEST_ZOOKEEPER"
TICK_TIME_MS = 500
"""Short, so that a session can expire while a test waits: sessions last between 2 and 20 ticks."""

_numbers = itertools.count(1)


@contextmanager
def running_zookeeper(data_dir: Path) -> Iterator[str]:
    """Give the address of a ZooKeeper that runs while the block does."""
    given = os.environ.get(ADDRESS_VARIABLE)
    if given:
        yield given
        return
    with child_zookeeper(data_dir) as server:
        yield server.address


@contextmanager
def child_zookeeper(
    data_dir: Path,
    properties: dict[str, str] | None = None,
    system_properties: dict[str, str] | None = None,
    login: ZooKeeperLogin | None = None,
) -> Iterator[EmbeddedZooKeeper]:
    """Start a ZooKeeper of the test's own, to be killed or configured as it likes; skip where there is no Java."""
    server = EmbeddedZooKeeper(
        data_dir,
        login=login,
        tick_time_ms=TICK_TIME_MS,
        properties=properties,
        system_properties=system_properties,
        java_options=QUICK_START,
    )
    try:
        server.start()
    except (JavaNotFound, JarsNotFound) as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))
    try:
        yield server
    finally:
        server.stop()


def make_chroot(address: str, name: str) -> str:
    """Make an empty chroot for one test.

    Returns:
        What `zookeeper.connect` takes: the address and the chroot.
    """
    chroot = f"/test-{name}-{next(_numbers)}-{uuid.uuid4().hex[:8]}"
    kazoo = KazooClient(hosts=address)
    kazoo.start()
    try:
        kazoo.create(chroot, b"")
    finally:
        kazoo.stop()
        kazoo.close()
    return f"{address}{chroot}"
