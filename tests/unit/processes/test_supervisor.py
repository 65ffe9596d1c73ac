"""The supervisor of a node, with real processes that do nothing but live and die."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_dt.config import ConfigError, Endpoint
from kafka_dt.metrics import MetricsMemory, WorkerPhase
from kafka_dt.processes import guard
from kafka_dt.processes.heartbeats import Watch
from kafka_dt.processes.service_manager import ServiceManager
from kafka_dt.processes.supervisor import Companion, Supervisor, WorkerFailed
from kafka_dt.processes.template import TEMPLATE_NAME
from tests.support.nodes.node import children, command_lines, process_name
from tests.support.processes.limits import files_to_spare
from tests.support.processes.process import freeze
from tests.support.processes.waiting import eventually
from tests.unit.processes import worker_script

TIMEOUT_S = 30
ENDPOINTS = (Endpoint("PLAINTEXT", "127.0.0.1", 0), Endpoint("SASL", "127.0.0.1", 0))


class Node:
    """A supervisor and what its workers left behind."""

    def __init__(self, folder: Path, count: int = 2, timeout_s: float = 2 * TIMEOUT_S, **brief: Any) -> None:
        self.folder = folder
        self.ports: dict[str, int] = {}
        self.ready = asyncio.Event()
        self.supervisor = Supervisor(
            command=[sys.executable, worker_script.__file__],
            brief={"folder": str(folder), "secret": "the secret", **brief},
            endpoints=ENDPOINTS,
            count=count,
            modules=[],
            shared=[],
            on_ready=self._on_ready,
            timeout_s=timeout_s,
            grace_s=TIMEOUT_S,
            metrics=MetricsMemory.alone(count),
        )

    def pids(self, number: int | None = None) -> list[int]:
        """Give the processes that were started, for one worker or for all."""
        started = self.folder.glob("[0-9]*.*" if number is None else f"{number}.*")
        return [int(path.suffix[1:]) for path in started]

    def briefs(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in self.folder.glob("[0-9]*.*")]

    def drained(self) -> set[int]:
        return {int(path.suffix[1:]) for path in self.folder.glob("drained.*")}

    def _on_ready(self, ports: Any) -> None:
        assert not self.ready.is_set(), "announced twice"
        self.ports = dict(ports)
        self.ready.set()


@asynccontextmanager
async def running(node: Node) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(node.supervisor.run())
    readiness = asyncio.create_task(node.ready.wait())
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.wait([task, readiness], return_when=asyncio.FIRST_COMPLETED)
            yield task
    finally:
        readiness.cancel()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - files and processes send no events
            await asyncio.sleep(0.01)


def seen_by_others(pid: int) -> bytes:
    return b"".join(Path(f"/proc/{pid}/{what}").read_bytes() for what in ("cmdline", "environ"))


def alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


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
    node = Node(tmp_path, count=1)
    async with running(node):
        for deaths in range(1, 5):
            await until(lambda: len(node.pids()) == deaths)  # noqa: B023 - awaited at once
            (last,) = (pid for pid in node.pids() if alive(pid))
            os.kill(last, signal.SIGKILL)
            await until(lambda: len(caplog.records) == deaths)  # noqa: B023
    paused = [float(record.getMessage().split()[-2]) for record in caplog.records]
    assert paused == sorted(paused)


async def test_a_node_whose_workers_cannot_start_says_why(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    node = Node(tmp_path, refuse="there is no ZooKeeper")
    with pytest.raises(WorkerFailed, match=r"^there is no ZooKeeper$"):
        await node.supervisor.run()
    assert not node.ready.is_set()
    assert not any(alive(pid) for pid in node.pids())
    assert caplog.records == []


async def test_a_worker_program_that_does_not_run_is_an_error(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.supervisor.command = [sys.executable, "-c", "raise SystemExit(7)"]
    with pytest.raises(WorkerFailed, match=r"^the template of the workers ended with status 7$"):
        await node.supervisor.run()


async def test_a_port_that_somebody_listens_on_is_an_error_that_names_it(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        node = Node(tmp_path)
        node.supervisor.endpoints = [Endpoint("PLAINTEXT", "127.0.0.1", taken.getsockname()[1])]
        with pytest.raises(ConfigError, match=r"listeners.*PLAINTEXT://127\.0\.0\.1.*in use"):
            await node.supervisor.run()
    assert node.pids() == []


async def test_a_port_of_another_node_is_not_shared_with_it(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        node = Node(tmp_path)
        node.supervisor.endpoints = [Endpoint("PLAINTEXT", "127.0.0.1", other.getsockname()[1])]
        with pytest.raises(ConfigError, match="in use"):
            await node.supervisor.run()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a port on which no process listens yet")
@pytest.mark.parametrize(
    ("first", "second"),
    [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("", "127.0.0.1"), ("127.0.0.1", "")],
)
async def test_a_node_does_not_share_a_port_with_one_whose_workers_do_not_listen_yet(
    tmp_path: Path, first: str, second: str
) -> None:
    node, other = Node(tmp_path), Node(tmp_path / "other")
    node.supervisor.endpoints = [Endpoint("PLAINTEXT", first, 0)]
    async with running(node):
        free = Endpoint("FREE", "127.0.0.1", 0)
        other.supervisor.endpoints = [free, Endpoint("PLAINTEXT", second, node.ports["PLAINTEXT"])]
        with pytest.raises(ConfigError, match=r"listeners: PLAINTEXT://.* is in use: (another node|Address already)"):
            await other.supervisor.run()
    assert not (tmp_path / "other").exists()


async def test_nodes_may_have_the_same_port_on_different_addresses_and_one_after_the_other(tmp_path: Path) -> None:
    nodes = [Node(tmp_path, count=1) for _ in range(3)]
    nodes[0].supervisor.endpoints = [Endpoint("PLAINTEXT", "127.0.0.1", 0)]
    async with running(nodes[0]):
        port = nodes[0].ports["PLAINTEXT"]
        nodes[1].supervisor.endpoints = [Endpoint("PLAINTEXT", "127.0.0.2", port)]
        async with running(nodes[1]):
            assert nodes[1].ready.is_set()
    nodes[2].supervisor.endpoints = [Endpoint("PLAINTEXT", "", port)]
    async with running(nodes[2]):
        assert nodes[2].ready.is_set()


async def test_the_ports_stay_taken_while_no_worker_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 60)
    node = Node(tmp_path, count=1)
    async with running(node):
        os.kill(node.pids()[0], signal.SIGKILL)
        await until(lambda: not alive(node.pids()[0]))
        with socket.socket() as thief, pytest.raises(OSError, match="in use"):
            thief.bind(("127.0.0.1", node.ports["PLAINTEXT"]))


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


def template_of(supervisor: int) -> int:
    (template,) = (pid for pid in children(supervisor) if process_name(pid) == TEMPLATE_NAME)
    return template


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


COMPANION = 9
"""The number of the companion in the names of its files."""


def with_companion(node: Node, endpoint: Endpoint = Endpoint("http", "127.0.0.1", 0)) -> Node:  # noqa: B008 - immutable
    brief = {"folder": str(node.folder), "number": COMPANION}
    node.supervisor.companion = Companion("The companion", "its.setting", endpoint, brief)
    return node


async def test_a_companion_is_told_its_port_and_nothing_of_the_workers_brief(tmp_path: Path) -> None:
    node = with_companion(Node(tmp_path))
    async with running(node):
        (companion,) = (brief for brief in node.briefs() if brief["number"] == COMPANION)
        assert companion["ports"] == node.ports
        assert set(node.ports) == {"PLAINTEXT", "SASL", "http"}
        assert "secret" not in companion


async def test_a_companion_that_dies_is_replaced_and_the_workers_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "FIRST_PAUSE_SECONDS", 0.01)
    node = with_companion(Node(tmp_path))
    async with running(node) as task:
        (companion,), others = node.pids(COMPANION), (node.pids(0), node.pids(1))
        os.kill(companion, signal.SIGKILL)
        await until(lambda: len(node.pids(COMPANION)) == 2)
        assert (node.pids(0), node.pids(1)) == others
        assert not task.done()
        assert "The companion: it ended with status -9; it is replaced" in caplog.text
        assert not any(node.supervisor.metrics.totals()), "it is no worker"


async def test_a_companion_ends_after_the_workers(tmp_path: Path) -> None:
    node = with_companion(Node(tmp_path, stubborn=True))
    node.supervisor.grace_s = 0.5
    async with running(node) as task:
        (companion,) = node.pids(COMPANION)
        serving = [*node.pids(0), *node.pids(1)]
        node.supervisor._stop_at(signal.SIGTERM)
        while any(alive(pid) for pid in serving):
            assert alive(companion)
            await asyncio.sleep(0.01)
        await task
    assert node.drained() == {companion}


async def test_a_companion_that_cannot_start_is_an_error_like_a_worker(tmp_path: Path) -> None:
    node = with_companion(Node(tmp_path))
    assert node.supervisor.companion is not None
    brief = {**node.supervisor.companion.brief, "refuse": "there is no key store"}
    node.supervisor.companion = replace(node.supervisor.companion, brief=brief)
    with pytest.raises(WorkerFailed, match=r"^there is no key store$"):
        await node.supervisor.run()


async def test_the_port_of_a_companion_is_claimed_by_the_name_of_its_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        node = with_companion(Node(tmp_path), Endpoint("http", "127.0.0.1", taken.getsockname()[1]))
        with pytest.raises(ConfigError, match=r"^its\.setting: http://127\.0\.0\.1:\d+ is in use"):
            await node.supervisor.run()
    assert node.pids() == []


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


async def test_the_log_says_that_the_guard_has_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    node = Node(tmp_path)
    async with running(node):
        (guard,) = (pid for pid in children(os.getpid()) if b"guard_process.py" in command_lines([pid]))
        os.kill(guard, signal.SIGKILL)
        await until(lambda: "The guard of the workers ended with status -9" in caplog.text)
