"""The supervisor of a node, with real processes that do nothing but live and die."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from kafka_dt.metrics import WorkerPhase
from kafka_dt.processes import guard
from kafka_dt.processes.heartbeats import Watch
from kafka_dt.processes.service_manager import ServiceManager
from kafka_dt.processes.supervisor import WorkerFailed
from tests.support.nodes.node import children, command_lines
from tests.support.processes.limits import files_to_spare
from tests.support.processes.process import freeze
from tests.unit.processes.running_node import TIMEOUT_S, Node, alive, running, seen_by_others, template_of, until


async def test_all_workers_serve_the_same_ports_before_the_node_is_ready(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with running(node):
        assert node.ready.is_set()
        briefs = node.briefs()
        assert sorted(brief["number"] for brief in briefs) == [0, 1]
        assert all(brief["ports"] == node.ports for brief in briefs)
        assert set(node.ports) == {"PLAINTEXT", "SASL"}
        assert len(set(node.ports.values())) == 2
    assert node.drained() == set(node.pids())


async def test_no_secret_is_on_a_command_line(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with running(node):
        for pid in node.pids():
            assert b"the secret" not in seen_by_others(pid)


def test_no_secret_shows_in_a_repr(tmp_path: Path) -> None:
    assert "the secret" not in repr(Node(tmp_path).supervisor)


async def test_a_worker_that_dies_is_replaced_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    node = Node(tmp_path)
    async with running(node) as task:
        (first,), (other,) = node.pids(0), node.pids(1)
        os.kill(first, signal.SIGKILL)
        await until(lambda: len(node.pids(0)) == 2)
        assert node.pids(1) == [other]
        assert not task.done()
        assert "Worker 0: it ended with status -9" in caplog.text
        await until(lambda: all(brief["ports"] == node.ports for brief in node.briefs()))


async def test_a_worker_that_keeps_dying_is_replaced_ever_more_slowly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    caplog.set_level(logging.WARNING)

    def told() -> list[str]:
        # asyncio sometimes finds that a process was waited for already, and says so.
        return [each.getMessage() for each in caplog.records if each.name.startswith("kafka_dt")]

    node = Node(tmp_path, count=1)
    async with running(node):
        for deaths in range(1, 5):
            await until(lambda: len(node.pids()) == deaths)  # noqa: B023 - awaited at once
            (last,) = (pid for pid in node.pids() if alive(pid))
            os.kill(last, signal.SIGKILL)
            await until(lambda: len(told()) == deaths)  # noqa: B023
    paused = [float(message.split()[-2]) for message in told()]
    assert paused == sorted(paused)


async def test_a_node_whose_workers_cannot_start_says_why(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    node = Node(tmp_path, refuse="there is no ZooKeeper")
    with pytest.raises(WorkerFailed, match=r"^there is no ZooKeeper$"):
        await node.supervisor.run()
    assert not node.ready.is_set()
    assert not any(alive(pid) for pid in node.pids())
    # asyncio of Python 3.11 warns if a signal, and not its own thread, finds that a worker has ended.
    assert [each for each in caplog.records if each.name != "asyncio"] == []


async def test_a_worker_program_that_does_not_run_is_an_error(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.supervisor.command = [sys.executable, "-c", "raise SystemExit(7)"]
    with pytest.raises(WorkerFailed, match=r"^the template of the workers ended with status 7$"):
        await node.supervisor.run()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_the_workers(tmp_path: Path, number: signal.Signals) -> None:
    node = Node(tmp_path)
    async with running(node) as task:
        os.kill(os.getpid(), number)
        await task
    assert node.drained() == set(node.pids())


async def test_start_and_stop_are_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    node = Node(tmp_path)
    async with running(node) as task:
        os.kill(os.getpid(), signal.SIGTERM)
        await task
    assert caplog.messages == [
        "Starting: 2 workers on PLAINTEXT://127.0.0.1:0, SASL://127.0.0.1:0",
        "Stopping at SIGTERM: requests that are under way are answered first",
        "Stopped",
    ]


async def test_the_service_manager_hears_when_the_node_is_ready_and_when_it_stops(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.setblocking(False)
        node = Node(tmp_path)
        node.supervisor.manager = ServiceManager({"NOTIFY_SOCKET": address})
        async with running(node) as task:
            assert manager.recv(100) == b"READY=1"
            os.kill(os.getpid(), signal.SIGTERM)
            await task
        assert manager.recv(100) == b"STOPPING=1"
        with pytest.raises(BlockingIOError):
            manager.recv(100)


async def test_a_worker_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    node = Node(tmp_path, count=1, stubborn=True)
    node.supervisor.grace_s = 0.1
    async with running(node):
        assert alive(node.pids()[0])
    assert not alive(node.pids()[0])


async def test_workers_share_what_the_node_gives_them(tmp_path: Path) -> None:
    with (tmp_path / "shared").open("w+b") as shared:
        node = Node(tmp_path)
        node.supervisor.shared = [shared.fileno()]
        async with running(node):
            shared.seek(0)
            assert sorted(shared.read()) == [0, 1]


async def test_a_cancelled_supervisor_takes_its_workers_along(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with running(node) as task:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not any(alive(pid) for pid in node.pids())


async def test_a_worker_that_hangs_is_killed_and_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    node = Node(tmp_path, count=1, timeout_s=0.5, hangs=True)
    async with running(node):
        (first,) = node.pids()
        await until(lambda: len(node.pids()) > 1)
        assert not alive(first)
    assert "Worker 0 hangs: no sign of life for 0.5 s; it is killed" in caplog.text


async def test_a_worker_that_stands_still_is_replaced_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    node = Node(tmp_path, timeout_s=3)
    async with running(node):
        (first,), (other,) = node.pids(0), node.pids(1)
        freeze(first)
        await until(lambda: len(node.pids(0)) == 2)
        assert not alive(first)
        assert node.pids(1) == [other]


async def test_a_worker_that_beats_is_not_replaced(tmp_path: Path) -> None:
    node = Node(tmp_path, count=1, timeout_s=2)
    async with running(node):
        silent_worker = Watch(2)
        silent_worker.heard()
        await silent_worker.silence()
        assert len(node.pids()) == 1


async def test_workers_go_on_when_their_template_is_killed_and_a_new_one_forks_their_successors(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    node = Node(tmp_path)
    async with running(node) as task:
        (first,), (other,) = node.pids(0), node.pids(1)
        template = template_of(os.getpid())
        os.kill(template, signal.SIGKILL)
        await until(lambda: template not in children(os.getpid()))
        os.kill(first, signal.SIGKILL)
        await until(lambda: len(node.pids(0)) == 2)
        assert node.pids(1) == [other]
        assert alive(other)
        assert template_of(os.getpid()) != template
        assert not task.done()
    assert "The template of the workers ended with status -9; it is replaced" in caplog.text
    assert "Worker 0: it ended with status -9" in caplog.text
    assert node.drained() == {*node.pids(0), other} - {first}


async def test_a_template_that_hangs_is_killed_and_a_new_one_forks_the_worker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    node = Node(tmp_path, count=1, timeout_s=3)
    async with running(node):
        (first,) = node.pids()
        template = template_of(os.getpid())
        freeze(template)
        os.kill(first, signal.SIGKILL)
        await until(lambda: len(node.pids()) == 2)
        assert not alive(template)
    assert "The template of the workers hangs: no worker for 3 s; it is killed" in caplog.text
    assert "Worker 0: the template of the workers ended with status -9; it is replaced in" in caplog.text


async def test_a_node_goes_on_while_it_has_no_file_descriptors_for_a_new_worker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    node = Node(tmp_path)
    async with running(node):
        (first,), (other,) = node.pids(0), node.pids(1)
        with files_to_spare(0):
            os.kill(first, signal.SIGKILL)
            await until(lambda: "Worker 0: no worker can be forked: Too many open files" in caplog.text)
        await until(lambda: len(node.pids(0)) == 2)
        assert node.pids(1) == [other]


async def test_a_node_that_stops_does_not_wait_for_its_template(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.supervisor.command = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
    task = asyncio.create_task(node.supervisor.run())
    await until(lambda: len(children(os.getpid())) == 2)
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(TIMEOUT_S):
        await task
    assert children(os.getpid()) == []


async def test_no_process_is_left_when_the_supervisor_ends(tmp_path: Path) -> None:
    def of_this_process() -> set[str]:
        return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())  # also those that have ended

    of_other_tests = of_this_process()
    node = Node(tmp_path)
    async with running(node):
        assert len(of_this_process() - of_other_tests) == 4, "two workers, their template and the guard"
    assert of_this_process() <= of_other_tests


async def test_the_supervisor_writes_down_what_the_workers_are_doing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.5)
    node = Node(tmp_path)
    metrics = node.supervisor.metrics
    async with running(node):
        assert [metrics.phase(number) for number in range(2)] == [WorkerPhase.READY, WorkerPhase.READY]
        os.kill(node.pids(0)[0], signal.SIGKILL)
        await until(lambda: metrics.phase(0) is WorkerPhase.NONE)
        assert metrics.phase(1) is WorkerPhase.READY
        await until(lambda: metrics.phase(0) is WorkerPhase.READY)
        assert sum(metrics.totals()) == 1, "one was replaced"
    assert metrics.phase(1) is WorkerPhase.NONE


async def test_a_node_is_not_ready_for_a_while_before_its_workers_stop(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.supervisor.drain_delay_s = 0.5
    async with running(node) as task:
        assert not node.supervisor.metrics.draining
        begun_s = asyncio.get_running_loop().time()
        node.supervisor._stop_at(signal.SIGTERM)
        assert node.supervisor.metrics.draining
        await task
        assert asyncio.get_running_loop().time() - begun_s >= 0.5
    assert node.drained() == set(node.pids())


async def test_a_second_signal_stops_the_workers_at_once(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.supervisor.drain_delay_s = 10 * TIMEOUT_S
    async with running(node) as task:
        node.supervisor._stop_at(signal.SIGTERM)
        node.supervisor._stop_at(signal.SIGTERM)
        await task
    assert node.drained() == set(node.pids())


async def test_the_log_says_that_the_guard_has_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    node = Node(tmp_path)
    async with running(node):
        (guard,) = (pid for pid in children(os.getpid()) if b"guard_process.py" in command_lines([pid]))
        os.kill(guard, signal.SIGKILL)
        await until(lambda: "The guard of the workers ended with status -9" in caplog.text)
