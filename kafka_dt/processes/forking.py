"""The template of the workers and its workers, as the supervisor sees them.

    with adopting_orphans():
        async with Template(command, modules, shared, guard.guarding, timeout_s) as template:
            worker = await template.fork()
            worker.write(brief)
            line = await worker.readline()
            status = await worker.wait()

A template that has ended is replaced when the next worker is needed. The workers that it has forked go on, because
they are children of the supervisor (`template.py` says how).

Limit: the supervisor adopts every orphan among its descendants and waits for its workers only. If the template or the
new worker is killed within the milliseconds of a fork, one zombie stays until the supervisor ends.

Source: prctl(2), PR_SET_CHILD_SUBREAPER; pidfd_open(2); unix(7), SCM_RIGHTS.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from typing import Final, Self, TypeAlias

from kafka_dt.processes.heartbeats import Watch
from kafka_dt.processes.template import ForkedTemplate

_LOG = logging.getLogger(__name__)

_PR_SET_CHILD_SUBREAPER: Final = 36
END_S: Final = 5.0
"""How long a template that ends may take from closing its end of a pipe to its exit status, in seconds."""


class NotForked(Exception):
    """There is no new worker; the text says why."""


@contextmanager
def adopting_orphans() -> Iterator[None]:
    """Have this process be the parent of every orphan among its descendants during a block.

    Raises:
        OSError: Linux refuses.
    """
    _adopt_orphans(wanted=True)
    try:
        yield
    finally:
        _adopt_orphans(wanted=False)


class Template:
    """The process that workers are forked from. No worker may be left at the end of the block.

    Args:
        command: starts a template: program and arguments, without the last one, the descriptor of the socket; no
            secrets.
        modules: what the template imports beside the program.
        shared: file descriptors that every worker gets, in this order.
        guarding: has a process guarded during a block.
        timeout_s: how long the template may take for a worker, in seconds; longer for the first one.
        forked: a template that is there already; None where the first one is started as its successors are.
    """

    def __init__(
        self,
        command: Sequence[str],
        modules: Sequence[str],
        shared: Sequence[int],
        guarding: Callable[[int], AbstractContextManager[None]],
        timeout_s: float,
        *,
        forked: ForkedTemplate | None = None,
    ) -> None:
        self._command = command
        self._message = " ".join(modules).encode() + b"\n"
        self._shared = shared
        self._guarding = guarding
        self._timeout_s = timeout_s
        self._forked = forked
        self._starting = asyncio.Lock()
        self._process: _TemplateProcess | None = None
        self._requests: socket.socket
        self._has_forked = False
        self._guarded: asyncio.Task[None]
        self._is_needed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.end()
        if self._process is not None:
            await self._guarded

    def end(self) -> None:
        """End the template; a call that waits for a worker gets an error."""
        self._is_needed = False
        if self._process is not None:
            _kill(self._process)

    async def fork(self) -> ForkedWorker:
        """Fork a worker, of a new template if there is none.

        Raises:
            NotForked: there is no new worker.
        """
        try:
            return await self._fork()
        except OSError as error:
            raise NotForked(f"no worker can be forked: {error.strerror}") from error

    async def _fork(self) -> ForkedWorker:
        process = await self._running()
        pipes = await self._ask()
        watching = asyncio.create_task(self._kill_when_silent(process, pipes))
        try:
            first = (await pipes.said.readline()).decode("utf-8", "replace").strip()
        finally:
            watching.cancel()
        if not first.isdecimal():
            pipes.close()
            raise NotForked(first or await _why_silent(process))
        self._has_forked = True
        pid = int(first)
        try:
            return ForkedWorker(pid, pipes.brief, pipes.said)
        except OSError:
            pipes.close()
            _end(pid)
            raise

    async def _running(self) -> _TemplateProcess:
        async with self._starting:
            if not self._is_needed:
                raise NotForked("the node stops")
            if self._process is not None and self._process.returncode is not None:
                _LOG.error("The template of the workers ended with status %d; it is replaced", self._process.returncode)
                await self._guarded
                self._process = None
            if self._process is None:
                self._process, self._requests = await self._first_or_next()
                self._has_forked = False
                self._guarded = asyncio.create_task(self._guard(self._process, self._requests))
                if not self._is_needed:
                    _kill(self._process)
            return self._process

    async def _first_or_next(self) -> tuple[_TemplateProcess, socket.socket]:
        if self._forked is None:
            return await self._start()
        forked, self._forked = self._forked, None
        return ChildProcess(forked.pid), forked.requests

    async def _start(self) -> tuple[_TemplateProcess, socket.socket]:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    str(theirs.fileno()),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    # Not as standard input: uvloop would leave a copy open, also in workers, and the socket of a dead
                    # template would take requests.
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # Ctrl-C in a terminal reaches the supervisor alone
                )
            except OSError:
                ours.close()
                raise
        return process, ours

    async def _guard(self, process: _TemplateProcess, requests: socket.socket) -> None:
        with requests, self._guarding(process.pid):
            await process.wait()

    async def _ask(self) -> _Pipes:
        """Ask for a worker; returns the pipes to it, which are closed if the template ends before it forks."""
        with ExitStack() as opened:
            its_input, brief = _pipe(opened)
            said, its_output = _pipe(opened)
            with its_input, its_output, suppress(ConnectionError):  # the template has just ended
                its_own = [its_input.fileno(), its_output.fileno()]
                socket.send_fds(self._requests, [self._message], [*its_own, *self._shared])
            opened.pop_all()  # the transports close ours
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
        writing, _ = await loop.connect_write_pipe(asyncio.Protocol, brief)
        reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), said)
        return _Pipes(writing, reader, reading)

    async def _kill_when_silent(self, process: _TemplateProcess, pipes: _Pipes) -> None:
        watch = Watch(self._timeout_s)
        if self._has_forked:
            watch.heard()
        await watch.silence()
        _LOG.error("The template of the workers hangs: no worker for %g s; it is killed", self._timeout_s)
        _kill(process)
        pipes.close()  # a worker that hangs before its first line holds the other ends


@dataclass(frozen=True, slots=True)
class _Pipes:
    """The supervisor's ends of the pipes to a worker."""

    brief: asyncio.WriteTransport
    said: asyncio.StreamReader
    reading: asyncio.ReadTransport
    """What `said` reads from."""

    def close(self) -> None:
        self.brief.close()
        self.reading.close()


def _pipe(opened: ExitStack) -> tuple[FileIO, FileIO]:
    """Make a pipe; returns the end to read from and the end to write to, which the stack closes."""
    reading, writing = os.pipe()
    return opened.enter_context(os.fdopen(reading, "rb", 0)), opened.enter_context(os.fdopen(writing, "wb", 0))


async def _why_silent(process: _TemplateProcess) -> str:
    """Say which process has ended, now that nothing can come from a new worker."""
    try:
        async with asyncio.timeout(END_S):
            return f"the template of the workers ended with status {await process.wait()}"
    except TimeoutError:
        return "the worker ended before it said its process id"


class ChildProcess:
    """A child of this process that was forked, not started as a program.

    Args:
        pid: of the child.
    """

    def __init__(self, pid: int) -> None:
        self.pid: Final = pid
        self._status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._pidfd = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._end)

    @property
    def returncode(self) -> int | None:
        """The exit status, or the negative number of the signal; None while the process lives."""
        return self._status.result() if self._status.done() else None

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if not self._status.done():
            signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        """End the process."""
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Wait until the process has ended; returns its `returncode`."""
        return await asyncio.shield(self._status)

    def _end(self) -> None:
        _, status = os.waitpid(self.pid, 0)
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._status.set_result(os.waitstatus_to_exitcode(status))


class ForkedWorker(ChildProcess):
    """A worker: its process, and the pipes to its standard input and output.

    Args:
        pid: of a child of this process.
        brief: where the worker reads.
        said: what the worker writes.
    """

    def __init__(self, pid: int, brief: asyncio.WriteTransport, said: asyncio.StreamReader) -> None:
        super().__init__(pid)
        self.write: Final = brief.write
        self.readline: Final = said.readline
        self._status.add_done_callback(lambda _: brief.close())


_TemplateProcess: TypeAlias = "ChildProcess | asyncio.subprocess.Process"


def _end(pid: int) -> None:
    """End a child that has just begun."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _kill(process: _TemplateProcess) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()


def _adopt_orphans(*, wanted: bool) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, wanted, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "a supervisor cannot adopt its workers")
