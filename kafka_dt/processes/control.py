"""Have a running node read its settings again, from another process of the machine: `kafka-dt reload`.

    async with listening(config, reload): ...      # in the node
    answer = ask(config)                           # in the command; raises NotRunning

The node is found by the path of its configuration file: it listens on an abstract Unix socket, whose name is made of
that path. Such a name needs no folder, and is gone when the node is. The node answers root and its own user only.

Limits: of two nodes on one file the second one cannot be asked, and its log says so; SIGHUP reaches it. Abstract
sockets are those of Linux, in one network namespace: in a container, run the command there. Symbolic links are not
resolved, because that of a Kubernetes ConfigMap leads elsewhere after a change.

Source: unix(7), "Abstract sockets", SO_PEERCRED.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

_LOG = logging.getLogger(__name__)

PATIENCE_S: Final = 60.0
"""How long the command waits for the node's answer: its workers may take seconds each."""
_NAME_CHARACTERS: Final = 32
_CREDENTIALS: Final = struct.Struct("3i")
_ROOT: Final = 0


class NotRunning(Exception):
    """No node runs on a configuration file; the text says so."""


class NoAnswer(Exception):
    """A node runs on a file and has not answered; the text says so."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of the request."""

    done: bool
    """Whether the node has read its settings and can use them."""
    text: str
    """What has changed, or why nothing has: one line."""


@asynccontextmanager
async def listening(config: Path, reload: Callable[[], Awaitable[Answer]]) -> AsyncIterator[None]:
    """Answer requests during a block."""

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if _user_of(writer.get_extra_info("socket")) in (_ROOT, os.geteuid()):
            answer = await reload()
        else:
            answer = Answer(False, "only root and the user of the node may do that")
        writer.write(json.dumps(asdict(answer)).encode())
        writer.close()

    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(_name(config))
    except OSError as error:
        sock.close()
        text = "kafka-dt reload cannot reach this node (%s): another one runs on %s; send SIGHUP instead"
        _LOG.warning(text, error.strerror, config)
        yield
        return
    async with await asyncio.start_unix_server(serve, sock=sock):
        yield


def ask(config: Path) -> Answer:
    """Have the node that runs on a file read its settings again.

    Raises:
        NotRunning: there is no such node.
        NoAnswer: it has not answered in time, or has ended meanwhile.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(PATIENCE_S)
        try:
            sock.connect(_name(config))
        except ConnectionRefusedError:
            raise NotRunning(
                f"no node of this machine runs on {config}; give the path that kafka-dt serve was started with, as "
                "ps -ef shows it (kafka-dt run does not read its settings again)"
            ) from None
        said = b""
        try:
            while piece := sock.recv(4096):
                said += piece
        except TimeoutError:
            raise NoAnswer(f"the node has not answered for {PATIENCE_S:g} s; its log tells what it has done") from None
        except ConnectionError:
            said = b""
    try:
        return Answer(**json.loads(said))
    except ValueError:
        raise NoAnswer("the node has ended before it answered; its log tells why") from None


def _name(config: Path) -> str:
    path = os.path.abspath(config)  # noqa: PTH100 - `resolve` would follow links
    return f"\0kafka-dt/reload/{hashlib.sha256(path.encode()).hexdigest()[:_NAME_CHARACTERS]}"


def _user_of(sock: socket.socket) -> int:
    """Return the id of the user at the other end."""
    _, user, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(user)
