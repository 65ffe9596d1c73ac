"""The guard of a node's workers, as the process that it is."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_dt.processes.guard import GUARD
from tests.support.processes.waiting import eventually

DESCRIPTORS = 24
GRACE_S = 0.2
STANDARD = 3
"""Standard input, output and error."""


@contextmanager
def guard() -> Iterator[subprocess.Popen[str]]:
    """A guard whose supervisor is this process, and that may open few files."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(GUARD), str(GRACE_S)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def worker() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]) as process:
        try:
            yield process
        finally:
            process.kill()


def announce(process: subprocess.Popen[str], pid: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{pid}\n")
    process.stdin.flush()


def opened(process: subprocess.Popen[str]) -> int:
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


@pytest.mark.parametrize("already_ended", [False, True])
def test_many_workers_that_ended_leave_nothing_open_in_the_guard(already_ended: bool) -> None:
    with guard() as process:
        for _ in range(DESCRIPTORS * 2):
            with worker() as ended:
                if already_ended:
                    ended.kill()
                announce(process, ended.pid)
                if not already_ended:
                    eventually(lambda: opened(process) > STANDARD, within_s=30)
        with worker() as hanging:
            announce(process, hanging.pid)
            eventually(lambda: opened(process) == STANDARD + 1, within_s=30)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(30) == 0
            assert hanging.wait(30) < 0, "the guard has not killed the worker that hangs"
