"""A TCP relay that a test can shut or hold: what is behind it is cut off, or silent, and comes back.

async with TcpGate("127.0.0.1", port) as gate:
    connect(f"127.0.0.1:{gate.port}")
    gate.shut()         # connections break, new ones are refused
    gate.mute()         # what the server answers does not arrive
    gate.hold()         # a partition: connections stay open, nothing arrives on either side, not even an end
    gate.drop()     # ... and those who came through it lose their connections; the server does not see that
gate.refuse_new()   # connections stay, new ones are closed
    gate.open()         # everything passes, also what was held back

It listens on a free port of 127.0.0.1, or where it is told to: a server that advertises 127.0.0.2 is reached through
gates there, on its own ports. Its methods belong to the thread of its event loop.

Limit: it cannot refuse a connection, only close it. A client that tries again soon after a refusal, and not after that,
wants a gate with patience: it waits so many seconds for a server that does not listen yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Self

POLL_S = 0.02


class TcpGate:
    def __init__(self, host: str, port: int, *, at: tuple[str, int] = ("127.0.0.1", 0), patience_s: float = 0) -> None:
        self._target = (host, port)
        self._at = at
        self._patience_s = patience_s
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._clients: set[asyncio.StreamWriter] = set()
        self._is_open = True
        self._asked = asyncio.Event()
        self._heard = asyncio.Event()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._let_pass()
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
        """Whether any client is connected through it."""
        return bool(self._writers)

    def shut(self) -> None:
        self._is_open = False
        self._let_pass()
        for writer in self._writers:
            writer.transport.abort()

    def open(self) -> None:
        self._is_open = True
        self._let_pass()

    def mute(self) -> None:
        self._heard.clear()

    def hold(self) -> None:
        self._is_open = True
        self._asked.clear()
        self._heard.clear()

    def drop(self) -> None:
        for writer in self._clients:
            writer.transport.abort()

    def refuse_new(self) -> None:
        self._is_open = False

    def _let_pass(self) -> None:
        self._asked.set()
        self._heard.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self._clients.add(writer)
        try:
            await self._asked.wait()
            if self._is_open:
                await self._relay(reader, writer)
        finally:
            self._writers.discard(writer)
            self._clients.discard(writer)
            writer.transport.abort()
            self._tasks.discard(task)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await self._connect()
        except OSError:
            return
        self._writers.add(server_writer)
        there = asyncio.ensure_future(_copy(reader, server_writer, self._asked))
        back = asyncio.ensure_future(_copy(server_reader, writer, self._heard))
        await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        await self._asked.wait()  # the end of one side is news for the other, too
        for task in (there, back):
            task.cancel()
        await asyncio.gather(there, back, return_exceptions=True)
        self._writers.discard(server_writer)
        server_writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return await asyncio.open_connection(*self._target)
            except OSError:
                if time.monotonic() >= deadline or not self._is_open:
                    raise
                await asyncio.sleep(POLL_S)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may_pass: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            await may_pass.wait()
            writer.write(data)
            await writer.drain()
