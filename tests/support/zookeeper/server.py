"""A ZooKeeper for the tests: the one that KAFKA_DT_TEST_ZOOKEEPER names, or a child process.

The address is `host:port` without a chroot; every test works in a chroot of its own (`make_chroot`). The first start
with a Java writes an archive of ZooKeeper's classes (12 MB), which saves a third of the CPU time of each later start.
"""

from __future__ import annotations

import itertools
import os
import signal
import tempfile
import uuid
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from kafka_dt.zookeeper.embedded.java import find_java, server_class_path
from kafka_dt.zookeeper.embedded.server import EmbeddedZooKeeper
from kafka_dt.zookeeper.errors import JarsNotFound, JavaNotFound
from tests.support.java.class_archive import WRITING_TIMEOUT_S, archive_file, using, write_archive
from tests.support.java.jvm import QUICK_START
from tests.support.processes.ports import free_ports
from tests.support.processes.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    try:
        server = EmbeddedZooKeeper(
            data_dir,
            port=free_ports(1),
            login=login,
            tick_time_ms=TICK_TIME_MS,
            properties=properties,
            system_properties=system_properties,
            java_options=quick_zookeeper(),
        )
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


@cache
def quick_zookeeper() -> tuple[str, ...]:
    """Options of the JVM of a ZooKeeper that starts quickly; raises JavaNotFound, JarsNotFound."""
    java, jars = find_java(), map(Path, server_class_path().split(os.pathsep))
    file = archive_file("zookeeper", java, jars)
    write_archive(file, _end_writing)
    return (*QUICK_START, *using(file))


def _end_writing(option: str) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedZooKeeper(Path(folder), java_options=(*QUICK_START, option)) as server,
    ):
        assert server.server_pid is not None
        # `stop` would kill it if it took long.
        os.kill(server.server_pid, signal.SIGTERM)
        eventually(lambda: not server.running, WRITING_TIMEOUT_S)
