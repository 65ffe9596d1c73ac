"""`kafka-dt` forked from a process that has imported it, where the tests allow that.

    with forking():                                       # around all tests of a process
        if (forks := fork_server()) is not None:
            with forks.start(["serve", ...], output=log, errors=log) as process:
                status = process.wait()

To import kafka-dt takes more processor time than the rest of a node's start, or of a short command, and the tests start
some hundred of them. So one process imports (`fork_server.py`), and each program begins as a copy of that process.

Limits: a program that is forked has the command line of the server, its address layout and its seed of hashes, and has
not read what it would read of its environment before it runs, such as LD_PRELOAD. Tests about those start the program.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Final, Self

ROOT: Final = Path(__file__).parents[3]
NO_STATUS: Final = -signal.SIGKILL
"""As subprocess has it: the leash was killed before it could tell a status."""


class Forked:
    """A program; its methods are those that `subprocess.Popen` has for its leash.

    Args:
        told: what the leash says.
    """

    def __init__(self, told: IO[bytes]) -> None:
        self.stdout = told
        self.pid = int(told.readline())
        """Of the leash."""
        self.program = int(told.readline())
        """Process id of the program."""
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Give the exit status if it has ended."""
        with self._lock:
            if self.returncode is None and self._has_told(0):
                self.returncode = int(self.stdout.readline() or NO_STATUS)
            return self.returncode

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for its end and give the exit status; raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            self._has_told(timeout_s)
        if (status := self.poll()) is None:
            raise subprocess.TimeoutExpired("kafka-dt", timeout_s or 0)
        return status

    def terminate(self) -> None:
        """Send SIGTERM to the leash."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()
        self.wait()
        self.stdout.close()

    def _has_told(self, timeout_s: float | None) -> bool:
        poll = select.poll()
        poll.register(self.stdout, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))


class ForkServer:
    """The server; it starts when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        arguments: Sequence[str],
        *,
        output: IO[bytes],
        errors: IO[bytes],
        environment: Mapping[str, str] = os.environ,
        folder: Path | None = None,
    ) -> Forked:
        """Fork a `kafka-dt`; returns as soon as the process exists.

        Args:
            arguments: behind `kafka-dt`.
            output: becomes its standard output.
            errors: becomes its standard error.
            environment: its whole environment.
            folder: where it runs; as this process without it.
        """
        request = {"arguments": [*arguments], "environment": dict(environment), "folder": str(folder or Path.cwd())}
        told, telling = os.pipe()
        try:
            descriptors = [telling, output.fileno(), errors.fileno()]
            socket.send_fds(self._started(), [json.dumps(request).encode()], descriptors)
        finally:
            os.close(telling)
        return Forked(os.fdopen(told, "rb", buffering=0))

    def stop(self) -> None:
        """End it, and what it has forked."""
        if self._requests is not None and self._process is not None:
            self._requests.close()
            self._process.wait()

    def _started(self) -> socket.socket:
        with self._lock:
            if self._requests is None:
                self._requests, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
                with theirs:
                    self._process = subprocess.Popen(
                        [sys.executable, "-m", "tests.support.processes.fork_server", str(theirs.fileno())],
                        stdin=subprocess.DEVNULL,
                        pass_fds=[theirs.fileno()],
                        cwd=ROOT,
                        env={**os.environ, "PYTHONUNBUFFERED": "1"},
                        start_new_session=True,
                    )
            return self._requests


_SERVER: ContextVar[ForkServer | None] = ContextVar("fork server", default=None)


def fork_server() -> ForkServer | None:
    """Give the server of these tests; None where programs are to be started."""
    return _SERVER.get()


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Have programs forked during a block."""
    server = ForkServer()
    token = _SERVER.set(server)
    try:
        yield
    finally:
        _SERVER.reset(token)
        server.stop()
