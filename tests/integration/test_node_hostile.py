"""Send bytes that no client sends: the node closes that connection, logs one line, and serves all other clients.

What may arrive at which moment is walked through without sockets in tests/unit/protocol; here the question is whether a
real node holds: every other connection goes on, the line names the client, there is no traceback.
"""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Callable, Iterator

import pytest

from tests.support.nodes.node import Node, local_port
from tests.support.processes.waiting import eventually
from tests.support.protocol.raw import API_VERSIONS, CREATE, DESCRIBE, METADATA, RENEW, SASL_HANDSHAKE, RawConnection

CLOSED_WITHIN_S = 10.0
LOGGED_WITHIN_S = 10.0
_LIMIT_BEFORE_LOGIN = 524288
_LIMIT_AFTER_LOGIN = 104857600


def request(api: int, version: int, body: bytes = b"", *, flexible: bool = False) -> bytes:
    """A frame with a good header and any body."""
    payload = struct.pack(">hhih", api, version, 1, 4) + b"test" + (b"\0" if flexible else b"") + body
    return struct.pack(">i", len(payload)) + payload


def length(announced: int) -> bytes:
    return struct.pack(">i", announced)


HOSTILE_ANYWHERE = {
    "a negative length": length(-1),
    "the smallest length": length(-(2**31)),
    "an empty frame": length(0),
    "a frame too short for a header": length(4) + bytes(4),
    "an unknown API": request(999, 0),
    "an API of controllers": request(52, 0),
    "a version that does not exist": request(METADATA, 99),
    "a negative version": request(METADATA, -1),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": bytes.fromhex("16030102000100 01fc0303") + bytes(508),
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a client id longer than the frame": length(10) + struct.pack(">hhih", METADATA, 1, 1, 32767),
    "a client id of a negative length": length(10) + struct.pack(">hhih", 999, 1, 1, -7),
}
HOSTILE_BEFORE_LOGIN = {
    "a length over the limit": length(_LIMIT_BEFORE_LOGIN + 1),
    "a request about tokens": request(DESCRIBE, 1, b"\xff\xff\xff\xff"),
    "a handshake without a mechanism": request(SASL_HANDSHAKE, 1),
    "a handshake that is cut short": request(SASL_HANDSHAKE, 1, struct.pack(">h", 100) + b"PLAIN"),
    "a login without a handshake": request(36, 1, struct.pack(">i", 3) + b"abc"),
    "an ApiVersions that is cut short": request(API_VERSIONS, 3, b"\x20abc", flexible=True),
}
HOSTILE_AFTER_LOGIN = {
    "a length over the limit": length(_LIMIT_AFTER_LOGIN + 1),
    "the largest length": length(2**31 - 1),
    "an array of 2^31-1 elements": request(DESCRIBE, 1, struct.pack(">i", 2**31 - 1)),
    "a compact array of 2^32-2 elements": request(DESCRIBE, 3, b"\xff\xff\xff\xff\x0f", flexible=True),
    "renewers without end": request(CREATE, 2, b"\xff\xff\xff\xff\x0f", flexible=True),
    "null where it is not allowed": request(METADATA, 0, struct.pack(">i", -1)),
    "a body that is cut short": request(RENEW, 1, struct.pack(">i", 64) + bytes(10)),
    "a varint without end": request(DESCRIBE, 3, b"\xff" * 12, flexible=True),
    "tags without end": request(DESCRIBE, 3, b"\0\xff\xff\xff\xff\x0f", flexible=True),
    "text that is not UTF-8": request(CREATE, 1, struct.pack(">ih", 1, 2) + b"\xff\xfe" + bytes(20)),
    "more elements than any client needs": request(DESCRIBE, 1, struct.pack(">i", 200_000) + bytes(4) * 200_000),
}


@pytest.fixture(scope="module")
def neighbour(node: Node) -> Iterator[dict[int, RawConnection]]:
    """A connection to each worker that must not notice anything."""
    with node.on_every_worker(lambda: node.connect(user="bob")) as connections:
        yield connections


def serves(connections: dict[int, RawConnection]) -> bool:
    return all(each.ask(DESCRIBE, 3, owners=()).error_code.value == 0 for each in connections.values())


def rows(cases: dict[str, bytes]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("hostile", cases.values(), ids=cases.keys())


def costs_only_itself(node: Node, connection: RawConnection, hostile: bytes) -> str:
    """Send it; see that the connection ends, without an answer, and give the one line about it."""
    port, before = local_port(connection), len(node.log())
    with contextlib.suppress(ConnectionError):  # it may be closed before everything is sent
        connection.send(hostile)
    assert connection.closed(CLOSED_WITHIN_S)
    eventually(lambda: bool(node.lines_about(port, before)), LOGGED_WITHIN_S)
    (line,) = node.lines_about(port, before)
    assert " INFO " in line
    return line


@rows(HOSTILE_ANYWHERE | HOSTILE_BEFORE_LOGIN)
def test_hostile_bytes_before_the_login_cost_their_connection_only(
    node: Node, neighbour: dict[int, RawConnection], hostile: bytes
) -> None:
    with node.connect() as connection:
        assert "SASL_PLAINTEXT" in costs_only_itself(node, connection, hostile)
    assert serves(neighbour)


@rows(HOSTILE_ANYWHERE | HOSTILE_AFTER_LOGIN)
def test_hostile_bytes_after_the_login_cost_their_connection_only(
    node: Node, neighbour: dict[int, RawConnection], hostile: bytes
) -> None:
    with node.connect(user="alice") as connection:
        costs_only_itself(node, connection, hostile)
    assert serves(neighbour)


@rows(HOSTILE_ANYWHERE | HOSTILE_AFTER_LOGIN)
def test_hostile_bytes_on_a_listener_without_login_cost_their_connection_only(
    node: Node, neighbour: dict[int, RawConnection], hostile: bytes
) -> None:
    with node.connect("PLAINTEXT") as connection:
        assert " PLAINTEXT:" in costs_only_itself(node, connection, hostile)
    assert serves(neighbour)


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "PLAINTEXT"])
def test_random_bytes_are_survived(node: Node, neighbour: dict[int, RawConnection], listener: str) -> None:
    source = random.Random(listener)  # noqa: S311 - a test that can be repeated
    for _ in range(60):
        with node.connect(listener) as connection, contextlib.suppress(ConnectionError):
            connection.send(source.randbytes(source.randrange(1, 300)))
            connection.send(length(source.randrange(1, 60)) + source.randbytes(60))
    assert serves(neighbour)


def test_a_good_request_before_a_bad_one_is_answered(node: Node) -> None:
    with node.connect(user="alice") as connection:
        good = connection.encode(DESCRIBE, 3, owners=())
        connection.send(struct.pack(">i", len(good)) + good + length(-1))
        assert connection.answer(DESCRIBE, 3).error_code.value == 0
        assert connection.closed(CLOSED_WITHIN_S)


def test_clients_that_leave_in_the_middle_write_no_line(node: Node, neighbour: dict[int, RawConnection]) -> None:
    ports, before = [], len(node.log())
    for sent in (b"", b"\0\0", b"\0\0\0\x20half a frame"):
        with node.connect() as connection:
            ports.append(local_port(connection))
            connection.send(sent)
    assert serves(neighbour)
    assert [line for port in ports for line in node.lines_about(port, before)] == []


@pytest.mark.parametrize(
    "login",
    [
        lambda connection: connection.login_plain("alice", "wrong"),
        lambda connection: connection.login_plain("nobody", "alice-secret"),
        lambda connection: connection.login_scram("nobody", "alice-secret", "SCRAM-SHA-512"),
    ],
)
def test_a_failed_login_is_one_line_too(node: Node, login: Callable[[RawConnection], object]) -> None:
    before = len(node.log())
    with node.connect() as connection:
        with pytest.raises(Exception, match="58: Authentication failed"):
            login(connection)
        assert connection.closed(CLOSED_WITHIN_S)
        port = local_port(connection)
        eventually(lambda: bool(node.lines_about(port, before)), LOGGED_WITHIN_S)
        (line,) = node.lines_about(port, before)
        assert "failed authentication" in line


def test_names_cannot_forge_lines_of_the_log(node: Node) -> None:
    forged = "x\n2026-01-01 00:00:00,000 INFO [worker 0] forged"
    with node.connect() as connection, contextlib.suppress(Exception):
        connection.login_plain(forged, "wrong")
    with node.connect() as connection, contextlib.suppress(Exception):
        connection.handshake(forged)
    with node.connect() as connection:
        connection.send(request(API_VERSIONS, 3, b"\x05for\n\x05for\n\0", flexible=True))
        connection.receive_frame()
    assert not [line for line in node.log().splitlines() if line.endswith("forged")]
