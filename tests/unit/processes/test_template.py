"""The template of the workers, as the process that it is."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_dt.processes.template import TEMPLATE_NAME, WORKER_NAME
from tests.support.nodes.node import process_name
from tests.support.processes.waiting import eventually
from tests.unit.processes.running_template import Forked, running_template

PROGRAM = """
import gc, json, os, random, secrets, signal, ssl, sys, threading, uuid
from kafka_dt.processes.template import become_worker
ssl.RAND_bytes(8)       # so that OpenSSL's generator has a state that a fork copies
random.random()
{prepare}
shared = become_worker(int(sys.argv[-1]))
brief = sys.stdin.readline().strip()
print(json.dumps({{
    "brief": brief,
    "drawn": [random.random(), ssl.RAND_bytes(16).hex(), secrets.token_hex(16), uuid.uuid4().hex],
    "leads_a_session": os.getsid(0) == os.getpid(),
    "parent": os.getppid(),
    "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd")),
    "signals": [signal.getsignal(each).__repr__() for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)],
    "frozen": gc.get_freeze_count(),
    "shared": [os.fstat(descriptor).st_ino for descriptor in shared],
    "imported": "colorsys" in sys.modules,
}}))
sys.exit(int(brief))
"""
TIMEOUT_S = 30


def command(prepare: str = "") -> list[str]:
    return [sys.executable, "-c", PROGRAM.format(prepare=prepare)]


def asked(worker: Forked, brief: bytes = b"0\n") -> dict[str, Any]:
    (line,) = worker.answer(brief)
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_worker_has_its_own_pipes_and_ends_with_its_own_status() -> None:
    with running_template(command()) as template:
        first, second = template.fork(), template.fork()
        assert asked(second, b"2\n")["brief"] == "2"
        assert asked(first, b"1\n")["brief"] == "1"
        assert (first.wait(), second.wait()) == (1, 2)


def test_a_worker_is_a_child_of_the_supervisor_in_a_session_of_its_own() -> None:
    with running_template(command()) as template:
        worker = template.fork()
        assert process_name(worker.pid) == WORKER_NAME
        found = asked(worker)
        assert found["parent"] == os.getpid()
        assert found["leads_a_session"]
        assert worker.wait() == 0


def test_workers_draw_different_random_numbers() -> None:
    with running_template(command()) as template:
        workers = [template.fork() for _ in range(3)]
        drawn = [asked(worker)["drawn"] for worker in workers]
        assert all(len(set(column)) == len(workers) for column in zip(*drawn, strict=True))
        for worker in workers:
            worker.wait()


def test_a_worker_hears_the_signals_that_the_template_ignores() -> None:
    with running_template(command()) as template:
        worker = template.fork()
        os.kill(template.process.pid, signal.SIGTERM)
        os.kill(template.process.pid, signal.SIGINT)
        assert "SIG_DFL" in asked(worker)["signals"][0]
        stopped = template.fork()
        os.kill(stopped.pid, signal.SIGTERM)
        assert stopped.wait() == -signal.SIGTERM
        assert worker.wait() == 0
        assert template.process.poll() is None


def test_a_signal_that_was_ignored_before_stays_so_in_a_worker() -> None:
    with running_template(command("signal.signal(signal.SIGHUP, signal.SIG_IGN)")) as template:
        worker = template.fork()
        assert "SIG_IGN" in asked(worker)["signals"][2]
        worker.wait()


def test_template_and_workers_have_open_only_what_they_need(tmp_path: Path) -> None:
    with (
        (tmp_path / "one").open("w") as one,
        (tmp_path / "two").open("w") as two,
        running_template(command()) as template,
    ):
        shared = [two.fileno(), one.fileno()]
        workers = [template.fork(shared) for _ in range(3)]
        for worker in workers:
            found = asked(worker)
            assert found["shared"] == [os.fstat(descriptor).st_ino for descriptor in shared]
            # One more is the folder that the worker lists.
            assert len(set(found["descriptors"]) - {0, 1, 2}) == len(shared) + 1
            worker.wait()
        eventually(lambda: len(set(template.descriptors()) - {0, 1, 2}) == 1, TIMEOUT_S)
        assert len([name for name in template.descriptors().values() if name.startswith("socket:")]) == 1


def test_the_template_imports_for_its_workers_what_a_request_names() -> None:
    with running_template(command()) as template:
        without, having = template.fork(), template.fork(modules="colorsys")
        assert (asked(without)["imported"], asked(having)["imported"]) == (False, True)
        without.wait()
        having.wait()


def test_the_collector_leaves_the_memory_alone_that_workers_share() -> None:
    with running_template(command("loaded = [[] for _ in range(10_000)]")) as template:
        worker = template.fork()
        assert asked(worker)["frozen"] > 10_000
        worker.wait()


ARENAS = """
import atexit, ctypes, tempfile
def arenas():
    threads = [threading.Thread(target=bytes, args=(100_000,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    with tempfile.NamedTemporaryFile() as file:
        stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
        libc.malloc_info(0, stream)
        libc.fclose(stream)
        return file.read().count(b"<heap nr=")
atexit.register(lambda: print(arenas()))
"""


def test_the_threads_of_a_worker_have_one_arena_of_malloc() -> None:
    with running_template(command(ARENAS)) as template:
        worker = template.fork()
        assert worker.answer(b"0\n")[-1] == "1"
        worker.wait()


def test_the_template_has_one_thread_and_the_name_of_one() -> None:
    with running_template(command()) as template:
        worker = template.fork()
        assert len(list(Path(f"/proc/{template.process.pid}/task").iterdir())) == 1
        assert process_name(template.process.pid) == TEMPLATE_NAME
        asked(worker)
        worker.wait()


def test_a_template_that_is_killed_leaves_its_workers_alone() -> None:
    with running_template(command()) as template:
        worker = template.fork()
        template.process.kill()
        template.process.wait()
        assert asked(worker, b"3\n")["brief"] == "3"
        assert worker.wait() == 3


@pytest.mark.parametrize("by_template", [True, False])
def test_a_fork_that_fails_says_why(tmp_path: Path, by_template: bool) -> None:
    failing = f"""
template, fork, once = os.getpid(), os.fork, {str(tmp_path / "once")!r}
def limited():
    if (os.getpid() == template) is {by_template} and not os.path.exists(once):
        open(once, "w").close()
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()
os.fork = limited
"""
    with running_template(command(failing)) as template:
        refused = template.fork()
        assert refused.first_line == "no worker can be forked: Resource temporarily unavailable"
        assert refused.answer(b"") == []
        worker = template.fork()
        assert asked(worker)["brief"] == "0"
        assert worker.wait() == 0
