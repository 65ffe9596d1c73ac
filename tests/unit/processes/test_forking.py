"""The template and its workers as the supervisor sees them, when processes are killed and file descriptors run out."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path

import pytest

from kafka_dt.processes import forking
from kafka_dt.processes.forking import ForkedWorker, NotForked, Template, adopting_orphans
from tests.support.nodes.node import children
from tests.support.processes.limits import files_to_spare
from tests.support.processes.process import hanging

TIMEOUT_S = 30
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from kafka_dt.processes import template

home = os.getpid()

def once():
    try:
        Path({mark!r}).unlink()
    except FileNotFoundError:
        return False
    return True

{prepare}
template.become_worker(int(sys.argv[-1]))
sys.stdin.readline()
"""
KILLED_NEWBORN = """
wait = template._wait_for_adoption
template._wait_for_adoption = lambda parent: os.kill(os.getpid(), signal.SIGKILL) if once() else wait(parent)
"""
KILLED_BETWEEN = """
fork = os.fork
os.fork = lambda: os.kill(os.getpid(), signal.SIGKILL) if os.getpid() != home and once() else fork()
"""
HANGING_NEWBORN = """
wait = template._wait_for_adoption
template._wait_for_adoption = lambda parent: time.sleep(600) if once() else wait(parent)
"""


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file that makes the next worker of a template one that fails."""
    return tmp_path / "mark"


@asynccontextmanager
async def running(mark: Path, prepare: str = "", timeout_s: float = TIMEOUT_S) -> AsyncIterator[Template]:
    command = [sys.executable, "-c", PROGRAM.format(mark=str(mark), prepare=prepare)]
    with adopting_orphans():
        async with (
            asyncio.timeout(TIMEOUT_S),
            Template(command, [], [], lambda _: nullcontext(), timeout_s) as template,
        ):
            yield template


async def end(worker: ForkedWorker) -> int:
    worker.write(b"\n")
    return await worker.wait()


@contextmanager
def the_next_one_failing(mark: Path) -> Iterator[None]:
    """Have the next worker fail, in a block that ends what this process then adopts."""
    before = orphans()
    mark.touch()
    yield
    for pid in orphans() - before:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def orphans() -> set[int]:
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


@pytest.mark.parametrize("prepare", [KILLED_NEWBORN, KILLED_BETWEEN])
async def test_a_worker_that_is_killed_before_its_first_line_is_an_error_and_the_template_forks_the_next_one(
    mark: Path, prepare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "END_S", 0.2)
    async with running(mark, prepare) as template:
        first = await template.fork()
        before = children(os.getpid())
        with (
            the_next_one_failing(mark),
            pytest.raises(NotForked, match=r"^the worker ended before it said its process id$"),
        ):
            await template.fork()
        second = await template.fork()
        assert set(children(os.getpid())) == {*before, second.pid}, "one template forks all of them"
        assert (await end(first), await end(second)) == (0, 0)


async def test_a_worker_that_hangs_before_its_first_line_is_an_error(mark: Path) -> None:
    async with running(mark, HANGING_NEWBORN, timeout_s=1) as template:
        first = await template.fork()
        with (
            the_next_one_failing(mark),
            pytest.raises(NotForked, match=r"^the template of the workers ended with status -9$"),
        ):
            await template.fork()
        assert await end(first) == 0
        second = await template.fork()
        assert await end(second) == 0


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - descriptors send no events
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("count", range(4))
async def test_without_file_descriptors_for_pipes_there_is_an_error_and_none_is_left_open(
    mark: Path, count: int
) -> None:
    async with running(mark) as template:
        first = await template.fork()
        before = open_files()
        with files_to_spare(count), pytest.raises(NotForked, match=r"^no worker can be forked: Too many open files$"):
            await template.fork()
        assert open_files() == before
        second = await template.fork()
        assert (await end(first), await end(second)) == (0, 0)


async def test_without_a_file_descriptor_for_the_worker_it_is_ended(mark: Path) -> None:
    async with running(mark) as template:
        first = await template.fork()
        before, family = open_files(), orphans()
        assert template._process is not None
        with ExitStack() as limited:
            with hanging(template._process.pid):
                forking_another = asyncio.create_task(template.fork())
                await until(lambda: open_files() == before + 2)
                limited.enter_context(files_to_spare(0))
            with pytest.raises(NotForked, match=r"^no worker can be forked: Too many open files$"):
                await forking_another
        assert orphans() == family
        await until(lambda: open_files() == before)
        second = await template.fork()
        assert (await end(first), await end(second)) == (0, 0)


async def test_a_template_that_cannot_be_started_is_an_error(mark: Path) -> None:
    async with running(mark) as template:
        template._command = [str(mark)]
        with pytest.raises(NotForked, match=r"^no worker can be forked: No such file or directory$"):
            await template.fork()
