"""The two ends of a byte stream as a client uses them: whole frames in, bytes out, until somebody else takes over.

    link.write(frame(request))
    await link.drain()
    content = await link.next_frame()

`hand_over` gives the transport to another asyncio.Protocol, say one that passes bytes on without a look at them.

Source: asyncio.Protocol.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from kafka_dt_protocol.wire.frames import FrameSplitter

_UNASKED_BYTES: Final = 64 * 1024
"""So much may come that nobody waits for before reading stops."""


class Link(asyncio.Protocol):
    """A connection's bytes, for one task at a time.

    max_bytes: the longest frame that is taken
    """

    def __init__(self, max_bytes: int) -> None:
        self._splitter = FrameSplitter(max_bytes)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._paused = False
        self._full = False
        self._eof = False
        self._error: Exception | None = None
        self._lost = asyncio.Event()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        # uvloop's transports are asyncio's in all but their class.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Keep bytes for `next_frame`."""
        self._splitter.receive_data(data)
        if self._reader is None and self._splitter.buffered > _UNASKED_BYTES:
            self._paused = True
            self.transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> None:
        """Let the transport close: a server that has hung up answers no more."""
        self._eof = True
        _wake(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let nobody wait any longer."""
        self._eof = True
        self._error = exc
        self._lost.set()
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        """Let `drain` wait."""
        self._full = True

    def resume_writing(self) -> None:
        """Let `drain` go on."""
        self._full = False
        _wake(self._writer)

    # For the client

    @property
    def transport(self) -> asyncio.Transport:
        """What the bytes go through."""
        assert self._transport is not None  # noqa: S101 - a link is made by a connection
        return self._transport

    @property
    def usable(self) -> bool:
        """Whether the other side has not hung up, nor we."""
        return not (self._eof or self.transport.is_closing())

    def write(self, data: bytes) -> None:
        """Send bytes; `drain` next."""
        self.transport.write(data)

    async def drain(self) -> None:
        """Wait until little of what was written is still here.

        Raises OSError or EOFError when the connection breaks.
        """
        while self._full:
            self._raise_if_lost()
            self._writer = self._loop.create_future()
            try:
                await self._writer
            finally:
                self._writer = None

    async def next_frame(self) -> bytes:
        """Return the content of the next frame.

        Raises OSError or EOFError when the connection ends before, RemoteProtocolError for a length that cannot be.
        """
        while (content := self._splitter.next_frame()) is None:
            self._raise_if_lost()
            if self._paused:
                self._paused = False
                self.transport.resume_reading()
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return content

    async def close(self, timeout_s: float) -> None:
        """End the connection in good order, or when the time is up without."""
        self.transport.close()
        try:
            async with asyncio.timeout(timeout_s):
                await self._lost.wait()
        except TimeoutError:
            self.transport.abort()

    def abort(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    def hand_over(self, protocol: asyncio.Protocol) -> asyncio.Transport:
        """Give the transport to another protocol, which is called from now on.

        Its `connection_made` is not called. Raises EOFError when it is too late: the connection has ended, or bytes
        have come that nobody had asked for.
        """
        if not self.usable or self._splitter.buffered:
            self.abort()
            raise EOFError
        transport = self.transport
        transport.set_protocol(protocol)
        if self._paused:
            transport.resume_reading()
        return transport

    def _raise_if_lost(self) -> None:
        if self._error is not None:
            raise self._error
        if self._eof:
            raise EOFError


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
