"""The sockets under kazoo: buffered reading, writing at the right moment, waking without blocking."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from kafka_dt.zookeeper.connection.sockets import BufferedSocket, WakeUp, wait_ready

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def pair() -> Iterator[tuple[BufferedSocket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    buffered = BufferedSocket(ours)
    yield buffered, theirs
    buffered.close()
    theirs.close()


def test_what_has_arrived_is_read_at_once_and_given_in_parts(pair: tuple[BufferedSocket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.sendall(b"abcdef")
    assert ours.recv(2) == b"ab"
    assert ours.pending() == 4
    assert ours.recv(10) == b"cdef"
    assert ours.pending() == 0


def test_buffered_bytes_make_a_socket_readable(pair: tuple[BufferedSocket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.sendall(b"ab")
    ours.recv(1)
    assert wait_ready([ours], [], None) == ([ours], [], [])


def test_an_end_is_empty(pair: tuple[BufferedSocket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.close()
    assert wait_ready([ours], [], 5) == ([ours], [], [])
    assert ours.recv(4) == b""


def test_what_is_written_is_sent_when_there_is_nothing_else_to_do(pair: tuple[BufferedSocket, socket.socket]) -> None:
    ours, theirs = pair
    wake_up = WakeUp()
    theirs.setblocking(False)
    wake_up.send(b"\0")
    assert ours.send(b"one") == 3
    assert wait_ready([ours, wake_up], [], 5) == ([wake_up], [], [])
    with pytest.raises(BlockingIOError):
        theirs.recv(10)
    wake_up.recv(1)
    assert ours.send(b"two") == 3
    assert wait_ready([ours, wake_up], [], 0) == ([], [], [])
    assert theirs.recv(10) == b"onetwo"
    wake_up.close()


def test_much_is_sent_without_waiting_for_a_pause(pair: tuple[BufferedSocket, socket.socket]) -> None:
    ours, theirs = pair
    ours.send(b"x" * 70_000)
    assert len(theirs.recv(70_000)) > 0


def test_a_side_that_takes_nothing_is_an_error(
    pair: tuple[BufferedSocket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_dt.zookeeper.connection.sockets.SEND_TIMEOUT_S", 0.05)
    ours, _ = pair
    with pytest.raises(TimeoutError):
        ours.send(b"x" * 10_000_000)


def test_a_writer_is_ready_at_once(pair: tuple[BufferedSocket, socket.socket]) -> None:
    ours, _ = pair
    assert wait_ready([], [ours], 5) == ([], [ours], [])


def test_waking_never_blocks() -> None:
    wake_up = WakeUp()
    for _ in range(10_000):
        wake_up.send(b"\0")
    for _ in range(10_000):
        assert wake_up.recv(1) == b"\0"
    with pytest.raises(BlockingIOError):
        wake_up.recv(1)
    wake_up.close()


def test_a_wake_up_ends_a_wait() -> None:
    wake_up = WakeUp()
    assert wait_ready([wake_up], [], 0) == ([], [], [])
    threading.Timer(0.05, wake_up.send, (b"\0",)).start()
    assert wait_ready([wake_up], [], 10) == ([wake_up], [], [])
    wake_up.recv(1)
    assert wait_ready([wake_up], [], 0) == ([], [], [])
    wake_up.close()


def test_no_wake_up_is_lost_between_threads() -> None:
    wake_up = WakeUp()
    count = 20_000

    def write() -> None:
        for _ in range(count):
            wake_up.send(b"\0")

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(count):
        assert wait_ready([wake_up], [], 10) == ([wake_up], [], [])
        wake_up.recv(1)
    writer.join()
    wake_up.close()


def test_a_closed_wake_up_is_an_error_and_closes_twice() -> None:
    wake_up = WakeUp()
    wake_up.close()
    wake_up.close()
    with pytest.raises(OSError, match="closed"):
        wake_up.send(b"\0")
