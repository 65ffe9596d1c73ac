"""One node is one supervisor and its workers: processes that share the ports.

The supervisor holds the ports from before the first worker until after the last, so that port 0 means one port for all
of them and no other program can take it in between. The supervisor replaces a worker that dies, after a pause that
grows while workers keep dying. It kills a worker that hangs (`heartbeats.py`), and replaces it as well. SIGTERM and
SIGINT stop the workers, which drain the requests under way.

A worker is a child process that reads one line of JSON from its standard input, its brief, writes READY to its standard
output when it serves (or why it cannot), beats there, and stops when its standard input closes: so no secret is on a
command line, and no worker outlives its supervisor, whatever ends it. `guard.py` ends those that hang then;
`guarding.py` keeps it alive.

Source: SO_REUSEPORT in socket(7).
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from kafka_dt.config import ConfigError, Endpoint
from kafka_dt.processes.guarding import Guard, guarded
from kafka_dt.processes.heartbeats import ALIVE, Watch, beat_seconds
from kafka_dt.processes.pauses import Pauses
from kafka_dt.server.listeners.open_port import bind
from kafka_dt.server.listeners.port_lock import hold_port

_LOG = logging.getLogger(__name__)

READY: Final = "ready"
"""What a worker says when it serves; any other line but a beat is the reason why it cannot."""
GRACE_SECONDS: Final = 20.0
"""How long a worker may take to stop before it is killed."""


class WorkerFailed(Exception):
    """A worker could not start; the text is the worker's own line about why."""


@dataclass(slots=True)
class Supervisor:
    """Starts, watches, replaces and stops the workers of a node."""

    command: Sequence[str]
    """Program and arguments of a worker; no secrets."""
    brief: Mapping[str, Any] = field(repr=False)
    """What every worker is told, secrets included; the ports, the worker's number and the time between its beats are
    added."""
    endpoints: Sequence[Endpoint]
    """What the listeners bind."""
    count: int
    """How many workers."""
    inherited: Sequence[int]
    """File descriptors that every worker shares, under the same numbers."""
    on_ready: Callable[[Mapping[str, int]], None]
    """Called once, with the port of each listener, when every worker serves."""
    timeout_s: float
    """How long a worker may be silent before it is taken to hang, in seconds."""
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _ready: set[int] = field(default_factory=set)
    _announced: bool = False
    _ports: dict[str, int] = field(default_factory=dict)
    _guard: Guard | None = None

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT, or until cancelled.

        Raises:
            ConfigError: a port is in use, or cannot be listened on.
            WorkerFailed: a worker could not start in the first place.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_at, number)
        with self._reserve():
            async with guarded(GRACE_SECONDS) as self._guard:
                await self._run_workers()
        _LOG.info("Stopped")

    async def _run_workers(self) -> None:
        _LOG.info("Starting: %d worker%s on %s", self.count, "s"[: self.count != 1], _texts(self.endpoints))
        keepers = [asyncio.create_task(self._keep(number)) for number in range(self.count)]
        await self._settle(keepers)

    def _stop_at(self, number: signal.Signals) -> None:
        if not self._stopping.is_set():
            _LOG.info("Stopping at %s: requests that are under way are answered first", number.name)
        self._stopping.set()

    async def _settle(self, keepers: Sequence[asyncio.Task[None]]) -> None:
        """Wait for the keepers; when one fails or we are cancelled, the others stop before that goes on."""
        try:
            await asyncio.wait(keepers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._stopping.set()
            await asyncio.wait(keepers)
        # All are looked at: asyncio would log a second failure with a traceback.
        failures = [error for error in (task.exception() for task in keepers) if error is not None]
        if failures:
            raise failures[0]

    async def _keep(self, number: int) -> None:
        """Run a worker, and another one whenever it dies."""
        loop = asyncio.get_running_loop()
        pauses = Pauses()
        while not self._stopping.is_set():
            started = loop.time()
            reason = await self._run_worker(number)
            if self._stopping.is_set():
                return
            if not self._announced:
                raise WorkerFailed(reason)
            pause = pauses.after(loop.time() - started)
            _LOG.error("Worker %d: %s; it is replaced in %.1f s", number, reason, pause)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def _run_worker(self, number: int) -> str:
        """Run one worker to its end; returns why it ended."""
        process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=self.inherited,
            # Ctrl-C in a terminal reaches the supervisor alone, which then tells the workers.
            start_new_session=True,
        )
        assert self._guard is not None  # noqa: S101 - workers run while it is there
        watch = Watch(self.timeout_s)
        stop = asyncio.create_task(self._stop_with_node(process))
        kill = asyncio.create_task(self._kill_when_silent(process, watch, number))
        try:
            with self._guard.guarding(process.pid):
                said = await self._converse(process, watch, number)
                status = await process.wait()
        finally:
            stop.cancel()
            kill.cancel()
            if process.returncode is None:
                process.kill()
                await process.wait()
        return said or f"it ended with status {status}"

    async def _converse(self, process: asyncio.subprocess.Process, watch: Watch, number: int) -> str:
        """Give a worker its brief and hear it until it closes its output; returns its reason for not serving."""
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        added = {"ports": self._ports, "number": number, "beat_seconds": beat_seconds(self.timeout_s)}
        brief = {**self.brief, **added}
        process.stdin.write(json.dumps(brief).encode() + b"\n")
        with suppress(ConnectionError):
            await process.stdin.drain()
        said = ""
        while line := (await process.stdout.readline()).decode("utf-8", "replace").strip():
            watch.heard()
            if line == READY:
                self._announce(number)
            elif line != ALIVE:
                said = line
        return said

    async def _stop_with_node(self, process: asyncio.subprocess.Process) -> None:
        await self._stopping.wait()
        with suppress(ProcessLookupError):
            process.terminate()
            await asyncio.sleep(GRACE_SECONDS)
            process.kill()

    async def _kill_when_silent(self, process: asyncio.subprocess.Process, watch: Watch, number: int) -> None:
        await watch.silence()
        _LOG.error("Worker %d hangs: no sign of life for %g s; it is killed", number, self.timeout_s)
        with suppress(ProcessLookupError):
            process.kill()

    def _announce(self, number: int) -> None:
        self._ready.add(number)
        if len(self._ready) == self.count and not self._announced:
            self._announced = True
            self.on_ready(self._ports)

    def _reserve(self) -> ExitStack:
        with ExitStack() as reserved:
            for endpoint in self.endpoints:
                try:
                    # Without sharing first: another server on the port must be an error, not half of the connections.
                    with bind(endpoint, shared=False) as probe:
                        port: int = probe.getsockname()[1]
                    sock = reserved.enter_context(bind(Endpoint(endpoint.name, endpoint.host, port)))
                    # That does not see another node whose workers do not listen yet.
                    reserved.enter_context(hold_port(sock) or nullcontext())
                except OSError as error:
                    problem = "is in use" if error.errno == errno.EADDRINUSE else "cannot be listened on"
                    raise ConfigError("listeners", f"{endpoint} {problem}: {error.strerror}") from None
                self._ports[endpoint.name] = port
            return reserved.pop_all()


def _texts(endpoints: Sequence[Endpoint]) -> str:
    return ", ".join(map(str, endpoints))
