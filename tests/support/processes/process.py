"""A server as a child process: its output kept in a file, its end tied to ours.

    with ChildProcess("broker", command, log=folder / "broker.log") as broker:
        broker.wait_for(r"started", timeout_s=60)

What a process has written is read back from its log file, so a failure can show it. The child never outlives this
process, SIGKILL included (`kafka_dt/zookeeper/embedded/leash.py` holds it).

Limits: the methods block; asyncio code calls them in a thread.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Self

from kafka_dt.zookeeper.embedded import leash
from tests.support.processes.forked import Forked, ForkServer
from tests.support.processes.waiting import eventually

POLL_S = 0.02
STOP_TIMEOUT_S = 20.0
TAIL_LINES = 40
FREEZE_TIMEOUT_S = 10.0


class ProcessFailed(Exception):
    """A child process ended or stayed silent; the message ends with the last lines it wrote."""


def freeze(pid: int) -> None:
    """Stop a process with SIGSTOP and return when all its threads stand still; until then some still answer."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: _states(pid) == {"T"}, FREEZE_TIMEOUT_S)


@contextlib.contextmanager
def hanging(pid: int | None) -> Iterator[None]:
    """Let a process hang for a block: its connections stay open and nothing is answered."""
    assert pid is not None
    try:
        freeze(pid)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _states(pid: int) -> set[str]:
    """The states of all threads of a process, as `/proc/PID/task/TID/stat` has them."""
    found = set()
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread may end meanwhile
            found.add(stat.read_text().rpartition(") ")[2][0])
    return found


class ChildProcess:
    """One child process.

    Args:
        name: for messages.
        command: program and arguments; the program is looked up in PATH.
        log: the file that receives standard output and standard error, appended to.
        environment: variables to set over those of this process.
        folder: where it runs; as this process without it.
        forks: forks the program, a `kafka-dt`, instead of starting it.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        *,
        forks: ForkServer | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._environment = dict(environment or {})
        self._folder = folder
        self._forks = forks
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self._log_offset = 0
        self.pid: int | None = None
        """Process id of the program itself, from the start on."""

    @property
    def running(self) -> bool:
        """True from the start until the process ends."""
        return self._process is not None and self._process.poll() is None

    @property
    def returncode(self) -> int | None:
        """The exit status once it has ended."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start it; returns as soon as the process exists."""
        program = shutil.which(self._command[0])
        if program is None:
            raise ProcessFailed(f"{self.name}: {self._command[0]} is not a program")
        self._close()
        self._log_offset = self.log.stat().st_size if self.log.exists() else 0
        environment = {**os.environ, **self._environment}
        with self.log.open("ab") as output:
            if self._forks is None:
                self._process, self.pid = self._leashed(program, output, environment)
            else:
                self._process = self._forks.start(
                    self._command[1:], output=output, errors=output, environment=environment, folder=self._folder
                )
                self.pid = self._process.program

    def _leashed(
        self, program: str, output: IO[bytes], environment: Mapping[str, str]
    ) -> tuple[subprocess.Popen[bytes], int | None]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), program, *self._command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            env=environment,
            cwd=self._folder,
            start_new_session=True,
        )
        assert process.stdout is not None
        return process, int(process.stdout.readline() or 0) or None

    def _close(self) -> None:
        """Close what the leash of a program that has ended told."""
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()

    def output(self) -> str:
        """What it has written since the last start."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._log_offset)
            return log.read().decode(errors="replace")

    def wait_for(self, pattern: str, timeout_s: float) -> re.Match[str]:
        """Wait until the output matches `pattern`; raises ProcessFailed when it ends or time runs out."""
        deadline = time.monotonic() + timeout_s
        while True:
            # Asked first: what a process wrote before it ended is complete in the file afterwards.
            running = self.running
            if match := re.search(pattern, self.output()):
                return match
            if not running:
                raise self.failure(f"ended with status {self.returncode}")
            if time.monotonic() > deadline:
                raise self.failure(f"did not write {pattern!r} within {timeout_s:g} s")
            time.sleep(POLL_S)

    def wait(self, timeout_s: float) -> int:
        """Wait until it ends by itself and give its exit status; raises subprocess.TimeoutExpired."""
        assert self._process is not None
        status = self._process.wait(timeout_s)
        self._close()
        return status

    def failure(self, reason: str) -> ProcessFailed:
        """An error that shows the last lines of the output."""
        tail = "\n".join(self.output().splitlines()[-TAIL_LINES:])
        return ProcessFailed(f"{self.name} {reason}; {self.log} ends with:\n{tail}")

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int | None:
        """Send SIGTERM and wait for the end; the leash follows with SIGKILL after a grace of its own."""
        if self._process is None:
            return None
        if self.running:
            self._process.terminate()
        return self.wait(timeout_s)

    def end(self, timeout_s: float) -> None:
        """Send SIGTERM to the program itself and wait; unlike `stop`, nothing kills it when it takes long."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGTERM)
        self.wait(timeout_s)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        if self.pid is not None and self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self.stop()

    @contextlib.contextmanager
    def starting(self) -> Iterator[Self]:
        """Start it for a block that waits until it serves; stop it when the block raises."""
        self.start()
        try:
            yield self
        except BaseException:
            self.kill()
            raise

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
