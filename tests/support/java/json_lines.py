"""A Java program that stays: it answers each line of JSON on its standard input with one on its standard output."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Sequence
from typing import IO, Any


class NoAnswer(Exception):
    """The program has ended, or did not answer in time."""


class JavaProgram:
    """The process.

    Args:
        command: program and arguments.
        log: receives what it writes to its standard error, that of this process if None.
    """

    def __init__(self, command: Sequence[str], log: IO[bytes] | None = None) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0)

    def ask(self, request: object, *, timeout_s: float) -> Any:
        """Send one request and return the answer; raises NoAnswer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        descriptor = self._process.stdout.fileno()
        line = b""
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([descriptor], [], [], timeout_s)
            part = os.read(descriptor, 65_536) if readable else b""
            if not part:
                raise NoAnswer("the program has ended" if readable else f"no answer in {timeout_s:g} s")
            line += part
        return json.loads(line)

    def end(self, timeout_s: float) -> None:
        """Close its standard input, and wait until it has ended."""
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout_s)

    def kill(self) -> None:
        """End it at once."""
        with self._process as process:
            process.kill()
