"""Whether the socket of a connection is read, and how many bytes the connection holds of what was read.

A socket is read while neither the connection has to wait (`pause`, `resume`) nor the memory of the worker is used up
(`request_memory.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kafka_dt.server.connections.request_memory import PIECE_BYTES, RequestMemory

LONG_ANSWER_BYTES: Final = 64 * 1024 + PIECE_BYTES
"""No more than this that waits for a client is not counted: what a socket takes before it says that it is full, and one
piece. That much waits at a gateway for each client that thinks before it reads on, such as a consumer."""


class Reading:
    """The reading of one connection."""

    wanted: bool = True
    """Whether the connection wants to read, as far as it is concerned."""
    holds: bool = False
    """Whether anything was held when `account` was called last."""

    def __init__(self, memory: RequestMemory, give_up: Callable[[str], None]) -> None:
        self._memory = memory
        self.give_up = give_up
        self._transport: asyncio.Transport | None = None
        self._starved = False
        self._unread = 0
        self._collected = 0

    def begin(self, transport: asyncio.Transport) -> None:
        """Take the socket, which is read already."""
        self._transport = transport

    def pause(self) -> None:
        """Read no more: the connection has enough to do."""
        if self.wanted and self._transport is not None:
            self.wanted = False
            if not self._starved:
                self._transport.pause_reading()

    def resume(self) -> None:
        """Read again, if there is memory."""
        if not self.wanted and self._transport is not None and not self._transport.is_closing():
            self.wanted = True
            if not self._starved:
                self._transport.resume_reading()

    def pause_for_memory(self) -> None:
        """Read nothing, whatever the connection wants, until `resume_for_memory`."""
        self._starved = True
        if self.wanted and self._transport is not None:
            self._transport.pause_reading()

    def resume_for_memory(self) -> None:
        """Read again, if the connection wants it."""
        self._starved = False
        if self.wanted and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def account(self, size: int, *, frames: int, unfinished: bool, logged_in: bool) -> None:
        """Say what the connection holds now, in bytes; the rest is as `RequestMemory.hold` has it."""
        if size:
            self.holds = True
            self._memory.hold(self, size, frames=frames, unfinished=unfinished, logged_in=logged_in)
        elif self.holds:
            self.holds = False
            self._memory.release(self)

    def client_reads_not(self, unsent: int) -> None:
        """Count the bytes that wait for the client, `unsent` of them in the protocol's machine, if they are many."""
        if self._transport is not None:
            self._unread = self._transport.get_write_buffer_size() + unsent
            self._count_answers()

    def client_reads(self) -> None:
        """Count them no more: the client has read them."""
        self._unread = 0
        self._count_answers()

    def collected(self, size: int) -> None:
        """Count the bytes of an answer that the client gets as soon as all of it is there, if they are many."""
        if size != self._collected and self._transport is not None:
            self._collected = size
            self._count_answers()

    def _count_answers(self) -> None:
        size = self._unread + self._collected
        if size > LONG_ANSWER_BYTES:
            self._memory.unread(self, size)
        else:
            self._memory.read(self)

    def end(self) -> None:
        """Forget all that was held; nothing is counted any more."""
        self._transport = None
        self.holds = False
        self._memory.release(self)
        self._memory.read(self)
