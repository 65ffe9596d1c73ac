"""Processes that hold keys leave no core dump; real ones are killed as a crash would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CRASH = """
import os, resource, sys
_, hard = resource.getrlimit(resource.RLIMIT_CORE)  # what a test of this process has called may have set it
resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
os.chdir(sys.argv[2])
{forbid}
os.kill(os.getpid(), int(sys.argv[1]))
"""
FORBID = "from kafka_dt.processes.core_dumps import forbid_core_dumps; forbid_core_dumps()"
BY_ATTRIBUTE = "from kafka_dt.processes.core_dumps import _forbid_by_attribute; _forbid_by_attribute()"
WORKER = """
import io, sys, kafka_dt.worker
sys.stdin = io.StringIO()
try:
    kafka_dt.worker.main([], [])
except ValueError:
    pass
"""
COMMAND = "from kafka_dt.cli import main; main(['token', '--help'], standalone_mode=False)"


def crashed(folder: Path, forbid: str, number: signal.Signals) -> bool:
    """Say whether a process that crashes dumps its memory, to a file or to a program."""
    arguments = [sys.executable, "-c", CRASH.format(forbid=forbid), str(int(number)), str(folder)]
    child = os.posix_spawn(sys.executable, arguments, {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == number
    return os.WCOREDUMP(status) or any(folder.iterdir())


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV])
def test_a_process_that_crashes_leaves_no_core_dump(tmp_path: Path, number: signal.Signals) -> None:
    assert not crashed(tmp_path, FORBID, number)


def test_where_the_limit_cannot_be_set_the_attribute_of_the_process_forbids_it(tmp_path: Path) -> None:
    assert not crashed(tmp_path, BY_ATTRIBUTE, signal.SIGABRT)


@pytest.mark.parametrize("start", [WORKER, COMMAND])
def test_workers_and_commands_forbid_core_dumps_first_of_all(start: str) -> None:
    code = f"{start}\nprint(next(line for line in open('/proc/self/limits') if 'core file' in line))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    soft, hard = done.stdout.split()[-3:-1]
    assert {soft, hard} <= {"0", "1"}
