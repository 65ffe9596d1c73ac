"""A template that the supervisor's own process forks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.unit.processes import worker_script

ALONE_KIB = 4_000
"""More than a Python that has just forked writes to, less than the ballast that the processes share."""
PROGRAM = """
import asyncio, json, os, resource, sys, time
from pathlib import Path
from kafka_dt.config import Endpoint
from kafka_dt.metrics import MetricsMemory
from kafka_dt.processes.supervisor import Supervisor
from kafka_dt.processes.template import forked_template
sys.path.insert(0, os.path.dirname(sys.argv[1]))
from worker_script import main

os.dup2(0, 900)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))  # which closes none
ballast = [bytes(1000) for _ in range(20_000)]
print("written before the fork", end="")

async def serve(folder, template):
    ready = asyncio.Event()
    supervisor = Supervisor(
        command=[sys.executable, sys.argv[1]], brief={"folder": folder}, modules=[], shared=[], timeout_s=60,
        grace_s=20, count=2,
        endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 0)], on_ready=lambda _: ready.set(), forked=template,
        metrics=MetricsMemory.alone(2),
    )
    serving = asyncio.create_task(supervisor.run())
    await ready.wait()
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    private = {pid: (Path("/proc") / pid / "smaps_rollup").read_text() for pid in children}
    names = {pid: (Path("/proc") / pid / "comm").read_text().strip() for pid in children}
    # A worker can be ready before the template has closed what it gave to it.
    until = time.monotonic() + 10
    while len(descriptors := sorted(map(int, os.listdir(f"/proc/{template.pid}/fd")))) > 4 and time.monotonic() < until:
        await asyncio.sleep(0.01)
    if sys.argv[3:]:
        os.kill(template.pid, 9)
        os.kill(next(int(pid) for pid, name in names.items() if name == "kafka-dt-worker"), 9)
        while len(list(Path(folder).glob("[01].*"))) < 3:
            await asyncio.sleep(0.01)
    serving.cancel()
    await asyncio.wait([serving])
    print(json.dumps({"names": names, "private": private, "descriptors": descriptors, "template": template.pid}))

with forked_template(main) as template:
    asyncio.run(serve(sys.argv[2], template))
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, worker_script.__file__, str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("written before the fork{")
    return done


def found(folder: Path, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run(folder, *arguments).stdout.removeprefix("written before the fork"))
    return answer


def test_supervisor_template_and_workers_share_what_one_process_has_imported(tmp_path: Path) -> None:
    answer = found(tmp_path)
    private = {answer["names"][pid]: private_kib(text) for pid, text in answer["private"].items()}
    assert private["worker-template"] < ALONE_KIB
    assert private["kafka-dt-worker"] < ALONE_KIB


def test_a_forked_template_has_open_only_its_socket_and_standard_error(tmp_path: Path) -> None:
    descriptors = found(tmp_path)["descriptors"]
    assert len(descriptors) == 4
    assert descriptors[:3] == [0, 1, 2]


def test_a_template_that_is_killed_is_replaced_by_one_that_imports_the_program(tmp_path: Path) -> None:
    assert "The template of the workers ended with status -9; it is replaced" in run(tmp_path, "kill").stderr


def test_a_forked_template_ends_with_a_command_that_starts_no_node() -> None:
    program = """
import os
from kafka_dt.processes.template import forked_template
with forked_template(lambda shared: 0) as template:
    print(template.pid)
_, status = os.waitpid(template.pid, 0)
assert status == 0, status
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert not Path(f"/proc/{done.stdout.strip()}").exists()


BEHIND_THE_SUPERVISOR = """
import logging, os, socket, sys
from contextlib import suppress
from kafka_dt.processes.template import forked_template

class Closing(logging.NullHandler):
    def close(self):
        os.write(2, b"the log is closed; ")

def run_worker(shared):
    logging.getLogger().addHandler(Closing())
    sys.stdin.readline()  # the supervisor has closed its pipes
    with suppress(BrokenPipeError):
        print("a reason", flush=True)
    return 3

process = os.getpid()
try:
    with forked_template(run_worker) as template:
        (its_input, brief), (said, its_output) = os.pipe(), os.pipe()
        socket.send_fds(template.requests, [b"\\n"], [its_input, its_output])
        os.close(its_input)
        os.close(its_output)
        os.read(said, 100)
        os.close(said)
        os.close(brief)
finally:
    if os.getpid() != process:
        os.write(2, b"the caller goes on")
"""


def test_nothing_of_the_caller_goes_on_in_a_worker_that_writes_to_a_supervisor_that_has_ended() -> None:
    command = [sys.executable, "-c", BEHIND_THE_SUPERVISOR]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "the log is closed; "


def private_kib(smaps: str) -> int:
    return sum(int(size) for size in re.findall(r"Private_\w+: +(\d+) kB", smaps))
