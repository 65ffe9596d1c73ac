"""Sockets for kazoo's thread that cost few system calls, and take TLS from an SSLContext.

kazoo makes a system call for each part of a request and of an answer, and each hands Python's lock to the other thread
and back. `BufferedSocket` reads whatever has arrived at once and keeps what is written; `WakeUp` counts in memory.
`wait_ready` asks them first, and only when none has anything to do it sends what was written and makes a system call
to wait. This also mends TLS (several answers may come in one record), and never blocks the writer of a wake-up (the
event loop), as kazoo's socket pair does when some 280 requests are queued. Linux only: a WakeUp is an eventfd.

Source: kazoo.handlers.utils (create_tcp_connection, create_socket_pair, selector_select), eventfd(2).
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import time
from collections import deque
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

READ_BYTES = 65_536
UNSENT_BYTES = 65_536
SEND_TIMEOUT_S = 10.0


class Waitable(Protocol):
    """An object that kazoo waits for."""

    def fileno(self) -> int:
        """Return the file descriptor."""

    def pending(self) -> int:
        """Return how much can be had without waiting."""

    def before_wait(self) -> None:
        """Do what has to be done before a wait for the file descriptor."""

    def readable(self) -> bool:
        """Say whether a signal of the file descriptor means that reading does not wait."""


class BufferedSocket:
    """The part of a socket's interface that kazoo uses, with a buffer for reading, over a connected socket."""

    __slots__ = ("_buffer", "_position", "_socket", "_unsent")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = b""
        self._position = 0
        self._unsent = bytearray()

    def pending(self) -> int:
        """Return how many bytes can be had without waiting."""
        waiting = len(self._buffer) - self._position
        decrypted = getattr(self._socket, "pending", None)
        return waiting or (decrypted() if decrypted is not None else 0)

    def recv(self, size: int) -> bytes:
        """Return up to `size` bytes; empty when the other side has closed."""
        if self._position == len(self._buffer):
            self._buffer = self._socket.recv(max(size, READ_BYTES))
            self._position = 0
        part = self._buffer[self._position : self._position + size]
        self._position += len(part)
        return part

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Take data to be written before the next wait; returns how many bytes were taken: all."""
        self._unsent += data
        if len(self._unsent) > UNSENT_BYTES:
            self.before_wait()
        return len(data)

    def before_wait(self) -> None:
        """Write the bytes that were taken; OSError if the other side takes nothing for some seconds."""
        while self._unsent:
            try:
                sent = self._socket.send(self._unsent)
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._wait(select.POLLOUT)
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN)
            else:
                del self._unsent[:sent]

    def readable(self) -> bool:
        """Say that it does: bytes, the end, or an error."""
        return True

    def _wait(self, mask: int) -> None:
        poll = select.poll()
        poll.register(self._socket, mask)
        if not poll.poll(SEND_TIMEOUT_S * 1000):
            raise TimeoutError("ZooKeeper does not take what is sent to it")

    def setblocking(self, flag: bool) -> None:
        """Switch between waiting and not."""
        self._socket.setblocking(flag)

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._socket.fileno()

    def has_news(self) -> bool:
        """Say whether there is something to read now, or the end."""
        return bool(self.pending() or _poll([self], 0))

    def hang_up(self) -> None:
        """End the connection, from any thread; the descriptor stays the owner's to close."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class WakeUp:
    """Both ends of the pipe by which kazoo's thread is told that a request is queued."""

    __slots__ = ("_descriptor", "_is_signalled", "_wake_ups")

    def __init__(self) -> None:
        self._descriptor: int | None = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._wake_ups: deque[None] = deque()
        self._is_signalled = False

    def send(self, data: bytes) -> int:
        """Wake the reader once for each byte."""
        descriptor = self.fileno()
        self._wake_ups.extend([None] * len(data))
        if not self._is_signalled:
            self._is_signalled = True
            os.eventfd_write(descriptor, 1)
        return len(data)

    def recv(self, size: int) -> bytes:
        """Take up to one wake-up back; BlockingIOError if there is none."""
        try:
            self._wake_ups.popleft()
        except IndexError:
            raise BlockingIOError from None
        return b"\0"[:size]

    def pending(self) -> int:
        """Return how many wake-ups there are."""
        return len(self._wake_ups)

    def readable(self) -> bool:
        """Say whether a signal stands for a wake-up that has not been taken."""
        return bool(self._wake_ups)

    def before_wait(self) -> None:
        """Have the next wake-up signalled again; one that came just before is seen by `pending` after this."""
        self._is_signalled = False
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.fileno())

    def fileno(self) -> int:
        """Return the file descriptor; OSError if it is closed."""
        if self._descriptor is None:
            raise OSError("the connection to ZooKeeper is closed")
        return self._descriptor

    def close(self) -> None:
        """Close the pipe; both ends are this one object, so the second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def connect(address: tuple[str, int], hostname: str, timeout_s: float, tls: ssl.SSLContext | None) -> BufferedSocket:
    """Connect to an IP address and port, or raise OSError; `timeout_s` is for connection and TLS handshake, each.

    The certificate is checked against `hostname`, as the configuration names the server.
    """
    sock = socket.create_connection(address, timeout_s)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return BufferedSocket(tls.wrap_socket(sock, server_hostname=hostname) if tls is not None else sock)
    except BaseException:
        sock.close()
        raise


def wait_ready(
    readers: Sequence[Waitable], writers: Sequence[Waitable], timeout_s: float | None
) -> tuple[list[Waitable], list[Waitable], list[Waitable]]:
    """Wait like `select.select`, without its limit on descriptors, and aware of buffers; OSError if sending fails.

    A reader with something pending is readable already, and writers are always writable: what they get is buffered.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        ready = [reader for reader in readers if reader.pending()]
        if ready or writers:
            return ready, list(writers), []
        for reader in readers:
            reader.before_wait()
        ready = [reader for reader in readers if reader.pending()]
        if ready:
            return ready, [], []
        left_s = None if deadline is None else deadline - time.monotonic()
        signalled = _poll(readers, left_s)
        # The signal of a wake-up may come after the wake-up itself was taken: then nothing is there.
        ready = [reader for reader in signalled if reader.readable()]
        if ready or not signalled:
            return ready, [], []


def _poll(readers: Sequence[Waitable], timeout_s: float | None) -> list[Waitable]:
    """Wait for descriptors; a broken one is readable, too: reading tells what is wrong."""
    poll = select.poll()
    by_descriptor = {reader.fileno(): reader for reader in readers}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    events = poll.poll(None if timeout_s is None else max(0, round(timeout_s * 1000)))
    return [by_descriptor[descriptor] for descriptor, _ in events]
