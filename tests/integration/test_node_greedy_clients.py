"""Clients that take time, memory, connections or files of a node and give nothing back: the others are served."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import select
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.identity.tls_listeners import TlsListeners
from tests.support.nodes.node import Node, local_port, node_properties
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import API_VERSIONS, DESCRIBE, ConnectionClosed, RawConnection
from tests.support.zookeeper.server import make_chroot

_LOG = logging.getLogger(__name__)
"""Measured figures, shown with `--log-cli-level=INFO`."""

LISTENERS = {
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "PLAINTEXT": "PLAINTEXT",
    "REAUTH": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "RATED": "PLAINTEXT",
}
LOGIN_TIMEOUT_MS = 1_500
MIB = 1024 * 1024
BUFFER_BYTES = 16 * MIB
REQUEST_BYTES = 32 * MIB
RECEIVE_TIMEOUT_MS = 4_000
MAX_CONNECTIONS = 60
MAX_PER_IP = 4
MAX_OF_LISTENER = 5
RATE = 8
"""Connections a second on the listener RATED."""
WITHIN_S = 15.0
FRAME = b"\0\0\x03\xe8"
"""The length of a frame of 1,000 bytes."""
TLS_RECORD = b"\x16\x03\x01\x01\xf0"
"""The head of a record of the handshake with 496 bytes."""


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TlsListeners:
    return TlsListeners.make(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def strict_node(zookeeper_address: str, tls: TlsListeners, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node of two workers with small limits."""
    properties = node_properties(
        make_chroot(zookeeper_address, "greedy"),
        listeners=",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        listener_security_protocol_map=",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items()),
        kafka_dt_login_timeout_ms=LOGIN_TIMEOUT_MS,
        kafka_dt_request_buffer_bytes=BUFFER_BYTES,
        kafka_dt_request_receive_timeout_ms=RECEIVE_TIMEOUT_MS,
        socket_request_max_bytes=REQUEST_BYTES,
        max_connections=MAX_CONNECTIONS,
        max_connections_per_ip_overrides=f"127.0.0.2:{MAX_PER_IP}",
        listener_name_reauth_max_connections=MAX_OF_LISTENER,
        listener_name_rated_max_connection_creation_rate=RATE,
    )
    tls_settings = {key: value for key, value in tls.properties.items() if key not in properties}
    with Node(tmp_path_factory.mktemp("greedy"), {**tls_settings, **properties}) as node:
        yield node
    node.check_log()


# Time


def says_a_byte_now_and_then(node: Node, connection: RawConnection, reason: str) -> None:
    """See that bytes give a login no more time, and that the log says why it ended."""
    port, since = local_port(connection), len(node.log())

    def closed() -> bool:
        try:
            connection.send(b"\0")
        except OSError:
            return True
        return connection.closed(0.1)

    eventually(closed, WITHIN_S)
    eventually(lambda: any(reason in line for line in node.lines_about(port, since)), WITHIN_S)


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_login_ends_when_its_time_is_over_although_a_byte_comes_now_and_then(
    strict_node: Node, listener: str
) -> None:
    with strict_node.connect(listener) as connection:
        connection.send(TLS_RECORD if listener == "SASL_SSL" else FRAME)
        says_a_byte_now_and_then(strict_node, connection, "(kafka.dt.login.timeout.ms)")


def test_a_login_after_a_tls_handshake_has_no_more_time(strict_node: Node, tls: TlsListeners) -> None:
    with RawConnection(strict_node.address("SASL_SSL"), tls.context()) as connection:
        assert connection.ask(API_VERSIONS, 0).error_code.value == 0
        connection.handshake("PLAIN")
        connection.send(FRAME)
        says_a_byte_now_and_then(strict_node, connection, "the login took longer than 1.5 s")


def test_a_reauthentication_that_is_begun_and_not_completed_ends_the_session(strict_node: Node) -> None:
    with strict_node.connect("REAUTH", "alice") as connection:
        eventually(lambda: connection.handshake("PLAIN").error_code.value == 0, WITHIN_S)
        connection.send(FRAME)
        says_a_byte_now_and_then(strict_node, connection, "the re-authentication took longer than 1.5 s")


def test_who_logged_in_in_time_or_need_not_log_in_stays(strict_node: Node) -> None:
    with (
        strict_node.connect("SASL_PLAINTEXT", "alice") as alice,
        strict_node.connect("PLAINTEXT") as plain,
        strict_node.connect("SASL_PLAINTEXT") as late,
    ):
        assert late.closed(WITHIN_S)
        for connection in (alice, plain):
            connection.ask(DESCRIBE, 1, owners=())


# Memory


def resident_bytes(node: Node) -> int:
    """How much memory the workers have."""
    pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in node.workers())
    return sum(pages) * resource.getpagesize()


class Flood:
    """Sends a long request without its end, as fast as the node reads it."""

    def __init__(self, connection: RawConnection) -> None:
        self.connection = connection
        self._left = memoryview(struct.pack(">i", REQUEST_BYTES) + bytes(REQUEST_BYTES - 1000))

    @property
    def left(self) -> int:
        """How much could not be sent yet."""
        return len(self._left)

    def sends(self) -> bool:
        """Send what the node takes now; says whether it took anything."""
        before = self.left
        self.connection._socket.setblocking(False)
        with contextlib.suppress(OSError):  # it is not read now, or closed
            while self._left:
                self._left = self._left[self.connection._socket.send(self._left) :]
        return self.left < before


async def test_clients_that_do_not_complete_long_requests_cost_bounded_memory_and_keep_nobody_out(
    strict_node: Node,
) -> None:
    before = resident_bytes(strict_node)
    with contextlib.ExitStack() as stack:
        slow = [Flood(stack.enter_context(strict_node.connect(user="alice"))) for _ in range(20)]
        async with asyncio.timeout(WITHIN_S):
            while any([each.sends() for each in slow]):  # noqa: ASYNC110, C419 - each sends; a socket sends no events
                await asyncio.sleep(0.01)
        held = resident_bytes(strict_node) - before
        _LOG.info("20 clients: %.1f MiB more are resident, the limit is %.0f", held / MIB, BUFFER_BYTES / MIB)
        async with strict_node.client("bob") as client:
            token = await client.create()
        with strict_node.connect_by_token(token):
            pass
        assert sum(each.left > 0 for each in slow) > 10, "most of them are told to wait"
        assert held < BUFFER_BYTES + REQUEST_BYTES + 8 * MIB
        eventually(lambda: all(each.connection.closed(0.01) for each in slow), WITHIN_S)
    eventually(lambda: "a request has not arrived within 4 s" in strict_node.log(), WITHIN_S)
    assert resident_bytes(strict_node) - before < held


# Connections


@pytest.mark.parametrize(
    ("listener", "source", "limit", "setting"),
    [
        ("SASL_PLAINTEXT", "127.0.0.1", MAX_CONNECTIONS, "(max.connections)"),
        ("SASL_PLAINTEXT", "127.0.0.2", MAX_PER_IP, "(max.connections.per.ip)"),
        ("REAUTH", "127.0.0.1", MAX_OF_LISTENER, "(max.connections of the listener)"),
    ],
)
def test_a_limit_of_connections_is_that_of_the_node_whichever_workers_serve_them(
    strict_node: Node, listener: str, source: str, limit: int, setting: str
) -> None:
    def served() -> int:
        """How many of some connections too many are served."""
        with contextlib.ExitStack() as stack:
            count = 0
            for _ in range(limit + 6):
                connection = stack.enter_context(RawConnection(strict_node.address(listener), source=source))
                with contextlib.suppress(ConnectionClosed, ConnectionError):
                    connection.ask(API_VERSIONS, 0)
                    count += 1
            return count

    # Connections of the test before may still be about to leave.
    eventually(lambda: served() == limit, WITHIN_S)
    assert setting in strict_node.log()


def test_connections_that_come_faster_than_the_rate_wait_and_are_served(strict_node: Node) -> None:
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(strict_node.connect("RATED")) for _ in range(3 * RATE)]
        for connection in connections:
            connection.request(API_VERSIONS, 0)
        for connection in connections:
            assert connection.answer(API_VERSIONS, 0).error_code.value == 0
    assert time.monotonic() - started > 1, "the first ones come at once, the others as the rate says"


# Files


def test_at_the_limit_of_files_clients_wait_with_one_line_until_others_have_gone(strict_node: Node) -> None:
    with few_files(strict_node, to_spare=16), contextlib.ExitStack() as stack:
        connections = [stack.enter_context(strict_node.connect("PLAINTEXT")) for _ in range(40)]
        for connection in connections:
            connection.request(API_VERSIONS, 0)
        eventually(lambda: strict_node.log().count("no connection is accepted until some are free") == 2, WITHIN_S)
        served = select.select([connection._socket for connection in connections], [], [], WITHIN_S)[0]
        waiting = [connection for connection in connections if connection._socket not in served]
        assert waiting
        assert all(highest_file(pid) < limit * 7 // 8 for pid, limit in file_limits(strict_node).items())
        for sock in served:
            sock.close()
        for connection in waiting:  # some of them wait for others of them
            assert connection.answer(API_VERSIONS, 0).error_code.value == 0
            connection.close()
    assert strict_node.log().count("no connection is accepted until some are free") == 2


def file_limits(node: Node) -> dict[int, int]:
    """How many files each worker may open."""
    return {pid: resource.prlimit(pid, resource.RLIMIT_NOFILE)[0] for pid in node.workers()}


def highest_file(pid: int) -> int:
    """The highest file descriptor of a process."""
    return max(int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir())


@contextlib.contextmanager
def few_files(node: Node, to_spare: int) -> Iterator[None]:
    """Let each worker open only so many files more before it has reached its limit."""
    before = {pid: resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in node.workers()}
    for pid, (_, hard) in before.items():
        limit = (len(list(Path(f"/proc/{pid}/fd").iterdir())) + to_spare) * 8 // 7
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        for pid, limits in before.items():
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
