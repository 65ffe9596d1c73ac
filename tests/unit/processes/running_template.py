"""A template of workers without a supervisor: this process asks it for workers, and adopts them.

with running_template(command) as template:
    worker = template.fork()
    worker.write(b"...")
    worker.read()               # until it ends
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from kafka_dt.processes.forking import adopting_orphans

END_TIMEOUT_S = 30


@dataclass
class Forked:
    """A worker, or the reason why there is none."""

    first_line: str
    brief: BinaryIO
    said: BinaryIO

    @property
    def pid(self) -> int:
        return int(self.first_line)

    def answer(self, brief: bytes) -> list[str]:
        """Give it its brief and close its input; returns the lines that it writes until it ends."""
        with self.said:
            with self.brief:
                self.brief.write(brief)
            return self.said.read().decode().splitlines()

    def wait(self) -> int:
        """Close its pipes and wait for its end; returns its exit status."""
        self.brief.close()
        self.said.close()
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


@dataclass
class RunningTemplate:
    """The process, and the socket to it."""

    process: subprocess.Popen[bytes]
    requests: socket.socket

    def fork(self, shared: Sequence[int] = (), modules: str = "") -> Forked:
        (its_input, brief), (said, its_output) = os.pipe(), os.pipe()
        socket.send_fds(self.requests, [f"{modules}\n".encode()], [its_input, its_output, *shared])
        os.close(its_input)
        os.close(its_output)
        reader = os.fdopen(said, "rb")
        return Forked(reader.readline().decode().strip(), os.fdopen(brief, "wb"), reader)

    def descriptors(self) -> dict[int, str]:
        """What the template has open."""
        found = {}
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                found[int(link.name)] = link.readlink().name
        return found


@contextmanager
def running_template(command: Sequence[str], folder: Path | None = None) -> Iterator[RunningTemplate]:
    """Start a template; it ends with the block."""
    ours, theirs = socket.socketpair()
    with adopting_orphans(), ours:
        with theirs:
            process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd=folder,
            )
        try:
            yield RunningTemplate(process, ours)
        finally:
            ours.close()
            process.wait(END_TIMEOUT_S)
