"""Sockets for kazoo's thread that cost fewer system calls, and take TLS from an SSLContext.

kazoo writes every request by itself, reads an answer in two parts with a wait before each, and makes a new selector for
every wait; with hundreds of requests in flight that is most of its time. `BufferedSocket` reads whatever has arrived
at once and keeps what is written until kazoo has nothing more to write and waits; `wait_ready` sees to that. The latter
also mends TLS: several answers may come in one TLS record, and a wait on the bare socket would not see those that
are decrypted already.

Linux only: `WakeUp` is an eventfd, because kazoo's socket pair blocks its writer (here the event loop) when some 280
requests are queued.

Source: kazoo.handlers.utils (create_tcp_connection, selector_select), eventfd(2).
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

READ_BYTES = 65_536
UNSENT_BYTES = 65_536
SEND_TIMEOUT_S = 10.0


class HasDescriptor(Protocol):
    """Whatever a wait can wait for."""

    def fileno(self) -> int:
        """Return the file descriptor."""


class BufferedSocket:
    """The part of a socket's face that kazoo uses, with a buffer for reading.

    Args:
        sock: a connected socket, plain or TLS.
    """

    __slots__ = ("_buffer", "_position", "_socket", "_unsent", "last_heard_s")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = b""
        self._position = 0
        self._unsent = bytearray()
        self.last_heard_s = time.monotonic()
        """When bytes last came from the other side, on the monotonic clock in seconds."""

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
            self.last_heard_s = time.monotonic()
        part = self._buffer[self._position : self._position + size]
        self._position += len(part)
        return part

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Take data to be written with the next `flush`; returns how many bytes were taken: all."""
        self._unsent += data
        if len(self._unsent) > UNSENT_BYTES:
            self.flush()
        return len(data)

    def flush(self) -> None:
        """Write what was taken.

        Raises:
            OSError: the connection is broken, or the other side takes nothing for some seconds.
        """
        while self._unsent:
            try:
                sent = self._socket.send(self._unsent)
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._wait(select.POLLOUT)
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN)
            else:
                del self._unsent[:sent]

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

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class WakeUp:
    """Both ends of the pipe by which kazoo's thread is told that a request is queued; writing never blocks."""

    __slots__ = ("_descriptor",)

    def __init__(self) -> None:
        self._descriptor: int | None = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_SEMAPHORE | os.EFD_CLOEXEC)

    def send(self, data: bytes) -> int:
        """Wake the reader once for each byte."""
        os.eventfd_write(self.fileno(), len(data))
        return len(data)

    def recv(self, size: int) -> bytes:
        """Take up to one wake-up back.

        Raises:
            BlockingIOError: there is none.
        """
        os.eventfd_read(self.fileno())
        return b"\0"[:size]

    def fileno(self) -> int:
        """Return the file descriptor.

        Raises:
            OSError: it is closed.
        """
        if self._descriptor is None:
            raise OSError("the connection to ZooKeeper is closed")
        return self._descriptor

    def close(self) -> None:
        """Close it; both ends are this one object, so the second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def connect(address: tuple[str, int], hostname: str, timeout_s: float, tls: ssl.SSLContext | None) -> BufferedSocket:
    """Connect to a server.

    Args:
        address: IP address and port.
        hostname: as the configuration names the server: what its certificate is checked against.
        timeout_s: for the connection and the TLS handshake, each.
        tls: None = plain.

    Raises:
        OSError: it does not work; TLS errors are OSErrors too.
    """
    sock = socket.create_connection(address, timeout_s)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return BufferedSocket(tls.wrap_socket(sock, server_hostname=hostname) if tls is not None else sock)
    except BaseException:
        sock.close()
        raise


def wait_ready(
    readers: Iterable[HasDescriptor], writers: Iterable[HasDescriptor], timeout_s: float | None
) -> tuple[list[HasDescriptor], list[HasDescriptor], list[HasDescriptor]]:
    """Wait like `select.select`, without its limit on descriptors, and aware of buffers.

    Args:
        readers: what may become readable; one with buffered bytes is readable already.
        writers: what may become writable.
        timeout_s: None = for ever.

    Returns:
        The readable, the writable, and an empty list in place of the exceptional ones.
    """
    sockets = [reader for reader in readers if isinstance(reader, BufferedSocket)]
    buffered: list[HasDescriptor] = [sock for sock in sockets if sock.pending()]
    others = [reader for reader in readers if reader not in buffered]
    ready = _poll(others, writers, 0)
    if not (buffered or any(ready)):  # nothing to do at once: now is the time to send, and then to wait
        for sock in sockets:
            sock.flush()
        ready = _poll(others, writers, timeout_s)
    return buffered + ready[0], ready[1], []


def _poll(
    readers: Iterable[HasDescriptor], writers: Iterable[HasDescriptor], timeout_s: float | None
) -> tuple[list[HasDescriptor], list[HasDescriptor]]:
    reading = {reader.fileno(): reader for reader in readers}
    writing = {writer.fileno(): writer for writer in writers}
    poll = select.poll()
    for descriptor in reading.keys() | writing.keys():
        mask = (select.POLLIN if descriptor in reading else 0) | (select.POLLOUT if descriptor in writing else 0)
        poll.register(descriptor, mask)
    wait_ms = None if timeout_s is None else max(0, round(timeout_s * 1000))
    events = poll.poll(wait_ms) if reading or writing else []
    broken = select.POLLERR | select.POLLHUP | select.POLLNVAL  # the next read or write tells what it is
    return (
        [reading[fd] for fd, mask in events if fd in reading and mask & (select.POLLIN | broken)],
        [writing[fd] for fd, mask in events if fd in writing and mask & (select.POLLOUT | broken)],
    )
