"""Clients that describe every token, again and again, leave the node to the others."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kafka_dt.tokens import Principal, Token
from tests.support.brokers.broker import USERS
from tests.support.nodes.node import Node, node_properties
from tests.support.processes.waiting import eventually
from tests.support.protocol import bodies
from tests.support.protocol.raw import DESCRIBE
from tests.support.zookeeper.server import make_chroot
from tests.support.zookeeper.token_znodes import token_znodes

DESCRIBES = 20
LOGINS = 20
DAY_MS = 86_400_000
WITHIN_S = 60.0


class Describes:
    """Threads that describe all tokens until they are told to stop, and only count the bytes of the answers."""

    def __init__(self, node: Node, count: int) -> None:
        self._stopping = threading.Event()
        self.answers = [0] * count
        self._connections = [node.connect(user="admin") for _ in range(count)]
        self._threads = [threading.Thread(target=self._describe, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Leave in the middle of an answer."""
        self._stopping.set()
        for connection in self._connections:
            connection.close()
        for thread in self._threads:
            thread.join()

    def _describe(self, number: int) -> None:
        connection = self._connections[number]
        while not self._stopping.is_set():
            try:
                connection.send_frame(connection.header(DESCRIBE, 3, flexible=True) + bodies.describe(3, None))
                connection.receive_frame()
            except (OSError, ValueError):
                continue  # it takes its time, or has been closed by `stop`
            self.answers[number] += 1


@pytest.fixture(scope="module", params=[3_000, pytest.param(100_000, marks=pytest.mark.soak)])
def node(
    zookeeper_address: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Node]:
    """A node of one worker with many tokens."""
    connect = make_chroot(zookeeper_address, "describes")
    now_ms = int(time.time() * 1000)
    owners = [Principal.user(f"owner-{number}") for number in range(100)]
    tokens = [
        Token(f"token-{n:016}", owners[n % 100], owners[n % 100], (), now_ms, now_ms + 7 * DAY_MS, now_ms + DAY_MS)
        for n in range(request.param)
    ]
    with token_znodes(connect) as znodes:
        znodes.write(tokens)
    properties = node_properties(connect, kafka_dt_workers=1)
    with Node(tmp_path_factory.mktemp("describes"), properties) as node:
        yield node
    node.check_log()


def seconds_of_a_login(node: Node) -> float:
    begun = time.monotonic()
    with node.connect() as connection:
        connection.login_plain("alice", USERS["alice"])
    return time.monotonic() - begun


def test_a_login_next_to_twenty_describes_of_everything_takes_less_than_a_second(node: Node) -> None:
    describes = Describes(node, DESCRIBES)
    try:
        eventually(lambda: sum(describes.answers) > 0, within_s=WITHIN_S)
        logins = [seconds_of_a_login(node) for _ in range(LOGINS)]
    finally:
        describes.stop()
    assert statistics.median(logins) < 1
    assert min(logins) < 0.5


def _describe(node: Node) -> int:
    with node.connect(user="admin") as connection:
        connection.send_frame(connection.header(DESCRIBE, 3, flexible=True) + bodies.describe(3, None))
        return len(connection.receive_frame())


def test_a_client_that_does_not_read_its_answer_does_not_hold_up_the_others(node: Node) -> None:
    with ExitStack() as stack:
        for _ in range(DESCRIBES):
            lazy = stack.enter_context(node.connect(user="admin"))
            lazy._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            lazy.send_frame(lazy.header(DESCRIBE, 3, flexible=True) + bodies.describe(3, None))
        assert _describe(node) > 0
        assert statistics.median(seconds_of_a_login(node) for _ in range(5)) < 1
