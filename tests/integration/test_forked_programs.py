"""A `kafka-dt` that tests fork behaves as one that is started, and nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes.commands import called
from tests.support.nodes.node import process_name
from tests.support.nodes.server import PROGRAM
from tests.support.processes.forked import Forked, ForkServer, fork_server, forking
from tests.support.processes.process import ChildProcess
from tests.support.processes.waiting import eventually

WITHIN_S = 30.0
WAITING = (
    "serve",
    "--override=zookeeper.connect=127.0.0.1:1",
    "--override=listeners=PLAINTEXT://127.0.0.1:0",
    "--override=kafka.dt.workers=1",
)
"""A node that waits for its ZooKeeper."""


@contextmanager
def forked(server: ForkServer, log: Path, *arguments: str, **options: Any) -> Iterator[Forked]:
    with log.open("ab") as output, server.start(arguments, output=output, errors=output, **options) as process:
        yield process


@pytest.fixture
def server() -> ForkServer:
    """The one of all tests."""
    found = fork_server()
    assert found is not None
    return found


@pytest.mark.parametrize("arguments", [("--version",), ("nonsense",), ("serve", "--override", "nonsense")])
def test_a_forked_command_says_what_a_started_one_says_and_has_its_status(arguments: tuple[str, ...]) -> None:
    started = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    forked = called(*arguments)
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)


def test_it_has_the_environment_and_the_folder_that_it_is_given(server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "here.properties").write_text("listeners=nonsense\n")
    with forked(server, tmp_path / "log", "serve", "--config", "here.properties", folder=tmp_path) as process:
        assert process.wait(WITHIN_S) == 1
    assert "listeners: 'nonsense'" in (tmp_path / "log").read_text()
    environment = {**os.environ, "KAFKA_DT_CONTEXT": "unheard-of"}
    with forked(server, tmp_path / "log", "token", "describe", environment=environment) as process:
        assert process.wait(WITHIN_S) == 2
    assert "unheard-of" in (tmp_path / "log").read_text()


def test_it_is_killed_and_told_to_stop_as_a_program(server: ForkServer, tmp_path: Path) -> None:
    with forked(server, tmp_path / "log", *WAITING) as process:
        eventually(lambda: process_name(process.program) == PROGRAM.name, WITHIN_S)
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        os.kill(process.program, signal.SIGKILL)
        assert process.wait(WITHIN_S) == 128 + signal.SIGKILL
    with forked(server, tmp_path / "log", *WAITING) as process:
        process.terminate()
        assert process.wait(WITHIN_S) in (0, 128 + signal.SIGTERM)  # before and after it has handlers of its own
        assert not Path(f"/proc/{process.program}").exists()


def test_a_program_that_ends_by_itself_leaves_no_open_file(server: ForkServer, tmp_path: Path) -> None:
    """A file that Python closes later is a ResourceWarning, which fails whichever test runs then."""
    assert called("--version").returncode == 0  # the server runs
    before = len(list(Path("/proc/self/fd").iterdir()))
    for forks in (server, None):
        program = ChildProcess("kafka-dt", [str(PROGRAM), "--version"], tmp_path / "log", forks=forks)
        program.start()
        eventually(lambda: not program.running, WITHIN_S)  # noqa: B023
        program.start()
        assert program.wait(WITHIN_S) == 0
        assert program.returncode == program.stop() == 0
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_what_was_forked_ends_with_the_server_and_when_its_leash_is_killed(tmp_path: Path) -> None:
    with forking():
        server = fork_server()
        assert server is not None
        with forked(server, tmp_path / "log", *WAITING) as process:
            os.kill(process.pid, signal.SIGKILL)
            assert process.wait(WITHIN_S) == -signal.SIGKILL
            eventually(lambda: not Path(f"/proc/{process.program}").exists(), WITHIN_S)
        other = server.start(WAITING, output=(log := (tmp_path / "log").open("ab")), errors=log)
        log.close()
    with other:
        eventually(lambda: not Path(f"/proc/{other.program}").exists(), WITHIN_S)
