"""What becomes of workers, template and guard when their supervisor is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.nodes.node import children
from tests.support.processes.process import freeze
from tests.support.processes.waiting import eventually
from tests.unit.processes import worker_script
from tests.unit.processes.running_node import TIMEOUT_S, alive, template_of

_SUPERVISOR = """
import asyncio, sys
from kafka_dt.config import Endpoint
from kafka_dt.metrics import MetricsMemory
from kafka_dt.processes.heartbeats import Watch
from kafka_dt.processes.supervisor import Supervisor
grace_s = float(sys.argv[3])
brief = {"folder": sys.argv[2]}
ready = lambda ports: print("up", flush=True)
command, memory = [sys.executable, sys.argv[1]], MetricsMemory.alone(2)
node = Supervisor(command, brief, [Endpoint("A", "127.0.0.1", 0)], 2, [], [], ready, 60, grace_s, memory)
asyncio.run(node.run())
"""


@contextmanager
def supervisor_process(folder: Path, grace_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """A supervisor in a process of its own, whose two workers serve."""
    command = [sys.executable, "-c", _SUPERVISOR, worker_script.__file__, str(folder), str(grace_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == b"up\n"
        yield supervisor
        supervisor.kill()


def pids_in(folder: Path, number: str = "[01]") -> list[int]:
    return [int(path.suffix[1:]) for path in folder.glob(f"{number}.*")]


def test_workers_drain_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    with supervisor_process(tmp_path, TIMEOUT_S) as supervisor:
        pids = pids_in(tmp_path)
        assert len(pids) == 2
        supervisor.kill()
    eventually(lambda: not any(alive(pid) for pid in pids), TIMEOUT_S)
    assert {int(path.suffix[1:]) for path in tmp_path.glob("drained.*")} == set(pids)


def test_a_worker_that_stands_still_ends_as_well_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    with supervisor_process(tmp_path, 0.5) as supervisor:
        (still,) = pids_in(tmp_path, "0")
        freeze(still)
        supervisor.kill()
        eventually(lambda: not alive(still), TIMEOUT_S)


@pytest.mark.parametrize("stands_still", [False, True])
def test_the_template_ends_when_the_supervisor_is_killed(tmp_path: Path, stands_still: bool) -> None:
    with supervisor_process(tmp_path, 0.5) as supervisor:
        template = template_of(supervisor.pid)
        if stands_still:
            freeze(template)
        supervisor.kill()
        eventually(lambda: not alive(template), TIMEOUT_S)


def guard_of(supervisor: int, folder: Path) -> int | None:
    """The guard of a supervisor, once it guards both workers and their template; None until then."""
    for pid in set(children(supervisor)) - set(pids_in(folder)):
        with suppress(OSError):
            links = [link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir()]
            if len([link for link in links if link.name == "anon_inode:[pidfd]"]) == 3:
                return pid
    return None


def test_a_guard_that_is_killed_is_replaced_by_one_that_guards_the_same_workers(tmp_path: Path) -> None:
    with supervisor_process(tmp_path, 0.5) as supervisor:
        (still,) = pids_in(tmp_path, "0")
        for _ in range(2):
            eventually(lambda: guard_of(supervisor.pid, tmp_path) is not None, TIMEOUT_S)
            guard = guard_of(supervisor.pid, tmp_path)
            assert guard is not None
            os.kill(guard, signal.SIGKILL)
            eventually(lambda: guard_of(supervisor.pid, tmp_path) not in (None, guard), TIMEOUT_S)  # noqa: B023
        freeze(still)
        supervisor.kill()
        eventually(lambda: not alive(still), TIMEOUT_S)
