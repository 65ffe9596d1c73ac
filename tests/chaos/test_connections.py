"""Connections that are cut at every byte, that dawdle, that flood, and very many of them: the node goes on."""

from __future__ import annotations

import base64
import contextlib
import resource
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from kafka_dt_protocol.sasl import ScramClient, ScramMechanism
from tests.support.nodes.node import SHA_256, Node, connected_ports, local_port, node_properties
from tests.support.nodes.server import PROGRAM
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import (
    API_VERSIONS,
    CREATE,
    DESCRIBE,
    DESCRIBE_CLUSTER,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    ConnectionClosed,
    RawConnection,
    ms,
)

SETTLED_WITHIN_S = 20.0
MANY = 1_000
DAWDLERS = 100
FEW_FILES = 80
LOGINS_MEANWHILE = 20
FLOOD_BYTES = 256 * 1024 * 1024
HELD_UP_S = 1.0
MEBIBYTE = 1024 * 1024
MAX_GROWTH = 48 * MEBIBYTE


class Cut(Exception):
    """The connection has been cut where the test wanted it."""


class CutConnection(RawConnection):
    """Ends after so many bytes have been sent, orderly or with a reset."""

    def __init__(self, address: str, after_bytes: int, *, reset: bool) -> None:
        super().__init__(address)
        self._left = after_bytes
        self._reset = reset
        self.sent = 0

    def send(self, data: bytes) -> None:
        super().send(data[: self._left])
        self.sent += len(data[: self._left])
        self._left -= len(data)
        if self._left <= 0:
            self.cut()
            raise Cut

    def cut(self) -> None:
        if self._reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()


@pytest.fixture(autouse=True)
def nothing_left_behind(node: Node) -> Iterator[None]:
    """After each test every connection is gone, the workers are the same and serve."""
    workers = node.workers()
    before = {pid: open_files(pid) for pid in workers}
    yield
    assert node.workers() == workers
    eventually(lambda: all(open_files(pid) <= before[pid] for pid in workers), SETTLED_WITHIN_S)
    with node.on_every_worker(lambda: node.connect(user="alice")) as connections:
        assert all(each.ask(DESCRIBE, 3, owners=()).error_code.value == 0 for each in connections.values())
    eventually(lambda: all(open_files(pid) <= before[pid] for pid in workers), SETTLED_WITHIN_S)
    node.check_log()


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def resident_bytes(pids: list[int]) -> int:
    pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return sum(pages) * resource.getpagesize()


def stored_tokens(node: Node) -> set[str]:
    kazoo = KazooClient(hosts=node.zookeeper)
    kazoo.start()
    try:
        return set(kazoo.get_children("/delegation_token/tokens"))
    finally:
        kazoo.stop()
        kazoo.close()


# Cut at every byte


def plain_login(connection: RawConnection) -> None:
    connection.ask(API_VERSIONS, 0)
    connection.login_plain("alice", "alice-secret")


def bare_login(connection: RawConnection) -> None:
    connection.handshake("PLAIN", 0)
    connection.send_frame(b"\0alice\0alice-secret")
    assert connection.receive_frame() == b""


def token_login(token_id: str, password: str) -> Callable[[RawConnection], None]:
    """A login by token."""

    def log_in(connection: RawConnection) -> None:
        connection.ask(SASL_HANDSHAKE, 1, mechanism=SHA_256)
        machine = ScramClient(ScramMechanism.SHA_256, token_id, password, "nonce", token=True)
        challenge = connection.ask(SASL_AUTHENTICATE, 2, auth_bytes=machine.first())
        answer = connection.ask(SASL_AUTHENTICATE, 2, auth_bytes=machine.challenge(challenge.auth_bytes))
        machine.verify(answer.auth_bytes)

    return log_in


def cut_everywhere(address: str, conversation: Callable[[RawConnection], None]) -> int:
    """Have a conversation, cut after each of its bytes; returns how many there are."""
    for after_bytes in range(1, 5_000):
        with CutConnection(address, after_bytes, reset=bool(after_bytes % 2)) as connection:
            try:
                conversation(connection)
            except Cut:
                continue
            return connection.sent
    raise AssertionError("it does not end")


@pytest.mark.parametrize("login", [plain_login, bare_login])
def test_a_login_may_be_cut_at_every_byte(node: Node, login: Callable[[RawConnection], None]) -> None:
    assert cut_everywhere(node.sasl, login) > 20


def test_a_login_by_token_may_be_cut_at_every_byte(node: Node) -> None:
    with node.connect(user="alice") as connection:
        token = create(connection)
    log_in = token_login(token.token_id, _password(token.hmac))
    assert cut_everywhere(node.sasl, log_in) > 200


def create(connection: RawConnection) -> Any:
    connection.request(CREATE, 3, **_CREATION)
    answer = connection.answer(CREATE, 3)
    assert answer.error_code.value == 0
    return answer


def test_a_create_that_is_cut_before_its_last_byte_makes_no_token(node: Node) -> None:
    with node.connect(user="alice") as connection:
        payload = connection.encode(CREATE, 3, **_CREATION)
    whole = struct.pack(">i", len(payload)) + payload
    before = stored_tokens(node)
    for after_bytes in range(1, len(whole)):
        with node.connect(user="alice") as connection:
            connection.send(whole[:after_bytes])
    with node.connect(user="alice") as connection:
        create(connection)
    assert len(stored_tokens(node) - before) == 1


def test_a_create_whose_client_does_not_wait_for_the_answer_is_completed(node: Node) -> None:
    count = 50
    before = stored_tokens(node)
    for _ in range(count):
        with node.connect(user="alice") as connection:
            connection.request(CREATE, 3, **_CREATION)
    eventually(lambda: len(stored_tokens(node) - before) == count, SETTLED_WITHIN_S)


def test_logins_split_at_any_byte_succeed(node: Node) -> None:
    with node.connect() as connection:
        bytewise = connection.send

        def send(data: bytes) -> None:
            for byte in data:
                bytewise(bytes([byte]))

        connection.send = send  # type: ignore[method-assign]
        plain_login(connection)
        create(connection)


# Slow, many, and too much


def test_clients_that_dawdle_keep_nobody_waiting(node: Node) -> None:
    with contextlib.ExitStack() as stack:
        dawdlers = [stack.enter_context(node.connect()) for _ in range(DAWDLERS)]
        payload = dawdlers[0].encode(SASL_HANDSHAKE, 1, mechanism="PLAIN")
        handshake = struct.pack(">i", len(payload)) + payload
        for position in range(LOGINS_MEANWHILE):
            for each in dawdlers:
                each.send(handshake[position : position + 1])
            with node.connect(user="alice") as connection:
                assert connection.ask(DESCRIBE, 3, owners=()).error_code.value == 0
        for each in dawdlers:
            each.send(handshake[LOGINS_MEANWHILE:])
            assert each.answer(SASL_HANDSHAKE, 1).error_code.value == 0


def test_many_connections_are_served_at_the_same_time(node: Node) -> None:
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(node.connect(user="alice")) for _ in range(MANY)]
        for each in many:
            each.request(DESCRIBE, 3, owners=())
        for each in many:
            assert each.answer(DESCRIBE, 3).error_code.value == 0


def send_until_held_up(connection: RawConnection, data: bytes) -> int:
    """Send the same bytes again and again until the server has taken nothing for a while; how much it took."""
    sock = connection._socket
    sock.setblocking(False)
    sent, moved = 0, time.monotonic()
    while time.monotonic() - moved < HELD_UP_S and sent < FLOOD_BYTES:
        try:
            # Always a whole number of requests in the end: the rest of one that was cut short goes first.
            sent += sock.send(data[sent % len(data) :])
            moved = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    sock.settimeout(SETTLED_WITHIN_S)
    return sent


@pytest.mark.parametrize("api", [API_VERSIONS, DESCRIBE])
def test_a_client_that_floods_and_reads_nothing_is_held_up_and_costs_no_memory(node: Node, api: int) -> None:
    workers = node.workers()
    with node.connect(user="alice") as flooding, node.connect(user="bob") as other:
        payload = flooding.encode(api, 0) if api == API_VERSIONS else flooding.encode(api, 3, owners=None)
        before = resident_bytes(workers)
        sent = send_until_held_up(flooding, (struct.pack(">i", len(payload)) + payload) * 1_000)
        assert sent < FLOOD_BYTES, "it is never held up"
        assert resident_bytes(workers) - before < MAX_GROWTH
        assert other.ask(DESCRIBE, 3, owners=()).error_code.value == 0


def test_a_client_that_floods_and_reads_is_answered_to_the_end(node: Node) -> None:
    count = 20_000
    with node.connect(user="alice") as connection:
        payload = connection.encode(API_VERSIONS, 0)
        flood = memoryview((struct.pack(">i", len(payload)) + payload) * count)
        sock = connection._socket
        sent = answers = 0
        while answers < count:
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                sent += sock.send(flood[sent : sent + 65536])
            sock.settimeout(SETTLED_WITHIN_S)
            for _ in range(1 if sent < len(flood) else count - answers):
                assert connection.receive_frame()
                answers += 1


def test_a_frame_that_is_never_finished_costs_what_has_arrived_and_no_more(node: Node) -> None:
    workers = node.workers()
    before = resident_bytes(workers)
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            connection = stack.enter_context(node.connect())
            connection.send(struct.pack(">i", 500_000) + b"x")
        assert resident_bytes(workers) - before < MAX_GROWTH
        with node.connect(user="alice") as other:
            other.send(struct.pack(">i", 100 * MEBIBYTE) + b"x")
            assert resident_bytes(workers) - before < MAX_GROWTH


def test_a_frame_of_the_largest_size_is_read_and_refused_by_its_content(node: Node) -> None:
    with node.connect() as connection:
        with contextlib.suppress(ConnectionError):
            connection.send(struct.pack(">i", 524_288) + bytes(524_288))
        assert connection.closed(SETTLED_WITHIN_S)
    with node.connect(user="alice") as connection:
        big = 8 * MEBIBYTE
        payload = connection.encode(DESCRIBE, 3, owners=())
        connection.send(struct.pack(">i", len(payload) + big) + payload + bytes(big))
        assert connection.answer(DESCRIBE, 3).error_code.value == 0


def test_connections_that_come_and_go_leave_nothing(node: Node) -> None:
    for number in range(300):
        with node.connect() as connection, contextlib.suppress(ConnectionClosed):
            if number % 3:
                connection.send(b"\0\0\0\1" if number % 2 else b"\0")


def test_a_node_that_runs_out_of_files_serves_its_clients_and_lets_others_wait(node: Node, tmp_path: Path) -> None:
    """Accepted clients are served, also for the first time of an API; the others are when files are free again."""
    (program := tmp_path / PROGRAM.name).write_text(f'#!/bin/sh\nulimit -n {FEW_FILES}; exec {PROGRAM} "$@"\n')
    program.chmod(0o755)
    scarce = Node(tmp_path, node_properties(node.zookeeper, kafka_dt_workers=1), program=program)
    with scarce, contextlib.ExitStack() as stack:
        (worker,) = scarce.workers()
        connections = [stack.enter_context(scarce.connect()) for _ in range(2 * FEW_FILES)]
        eventually(lambda: "no connection is accepted until some are free" in scarce.log(), SETTLED_WITHIN_S)
        ports = connected_ports(worker)
        accepted = [each for each in connections if local_port(each) in ports]
        assert FEW_FILES / 3 < len(accepted) < FEW_FILES
        for each in accepted:
            serve(each)
        for each in accepted:
            each.close()
        for each in connections:
            if each not in accepted:
                serve(each)
                each.close()
        eventually(lambda: open_files(worker) < FEW_FILES / 2, SETTLED_WITHIN_S)
        with scarce.connect() as connection:
            serve(connection)
    scarce.check_log()


def serve(connection: RawConnection) -> None:
    """Log in, make a token and ask for the brokers."""
    connection.login_plain("alice", "alice-secret")
    create(connection)
    assert connection.ask(DESCRIBE_CLUSTER, 0, include_cluster_authorized_operations=False)


_CREATION = {
    "owner_principal_type": None,
    "owner_principal_name": None,
    "renewers": (),
    "max_lifetime": ms(-1),
}


def _password(hmac: bytes) -> str:
    return base64.b64encode(hmac).decode()
