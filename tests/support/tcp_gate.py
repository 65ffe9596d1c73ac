"""A TCP relay that a test can shut: what is behind it is cut off, or silent, and comes back.

async with TcpGate("127.0.0.1", port) as gate:
    connect(f"127.0.0.1:{gate.port}")
    gate.shut()         # connections break, new ones are refused
    gate.open()
    gate.mute()         # what the server answers does not arrive any more

It listens on a free port of 127.0.0.1, or where it is told to: a server that advertises 127.0.0.2 is reached through
gates there, on its own ports.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self


class TcpGate:
    def __init__(self, host: str, port: int, *, at: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self._target = (host, port)
        self._at = at
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_open = True
        self._heard = asyncio.Event()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._heard.set()
        self._server = await asyncio.start_server(self._connected, *self._at)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.shut()
        await self._server.wait_closed()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def in_use(self) -> bool:
        """Whether anybody is connected through it."""
        return bool(self._writers)

    def shut(self) -> None:
        self._is_open = False
        self._heard.set()
        for writer in self._writers:
            writer.transport.abort()

    def open(self) -> None:
        self._is_open = True

    def mute(self) -> None:
        self._heard.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self._is_open:
                await self._relay(reader, writer)
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._target)
        except OSError:
            return
        self._writers.add(server_writer)
        there = asyncio.ensure_future(_copy(reader, server_writer))
        back = asyncio.ensure_future(_copy(server_reader, writer, self._heard))
        self._tasks |= {there, back}
        await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        for task in (there, back):
            task.cancel()
        await asyncio.gather(there, back, return_exceptions=True)
        self._tasks -= {there, back}
        self._writers.discard(server_writer)
        server_writer.transport.abort()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may_pass: asyncio.Event | None = None
) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            if may_pass is not None:
                await may_pass.wait()
            writer.write(data)
            await writer.drain()
