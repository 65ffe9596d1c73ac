"""A server that gives every connection the same answers, whatever it asks: a ZooKeeper that refuses, or breaks off."""

from __future__ import annotations

import asyncio
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CONNECTED: Final = struct.pack(">iiqi16s?", 0, 10_000, 1, 16, bytes(16), False)
_AUTH: Final = -4
_SASL: Final = 1
"""The number of a client's first request by SASL."""
_AUTH_FAILED: Final = -115
_REQUIRES_SASL: Final = -124


def _reply(number: int, error: int) -> bytes:
    return struct.pack(">iqi", number, 0, error)


DIGEST_TAKEN: Final = _reply(_AUTH, 0)
DIGEST_REFUSED: Final = _reply(_AUTH, _AUTH_FAILED)
SASL_FAILED: Final = _reply(_SASL, _AUTH_FAILED)
"""What a ZooKeeper answers to a wrong password."""
SASL_REQUIRED: Final = _reply(_SASL, _REQUIRES_SASL)
"""The same of one with `sessionRequireClientSASLAuth` or `enforce.auth.enabled`; also to a request without a login."""
EXISTS: Final = _reply(1, 0) + bytes(68)
"""The answer to the question whether the chroot exists, a client's first request after its login."""
UNFORESEEN: Final = _reply(7, 0)
"""The answer to a later request than a client's first ones, as of a server without a leader: kazoo's thread ends."""
CLOSED: Final = b""
"""The end of the connection in place of an answer, as older versions of ZooKeeper refuse a login."""


class ScriptedServer:
    """Answers each connection with the same, and counts them."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = answers
        self.connections = 0
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Give its address while the block runs."""
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as listening:
            self.port = listening.sockets[0].getsockname()[1]
            yield f"127.0.0.1:{self.port}"

    def drop(self) -> None:
        """End the connections that there are."""
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            for answer in self.answers:
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                await reader.readexactly(length)
                if answer == CLOSED:
                    return
                writer.write(struct.pack(">i", len(answer)) + answer)
            await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass  # it has gone
        finally:
            self._writers.discard(writer)
            writer.close()
