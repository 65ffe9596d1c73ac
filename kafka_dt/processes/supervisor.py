"""One node is one supervisor and its workers: processes that share the ports.

The supervisor holds the ports from before the first worker until after the last, so that port 0 means one port for all
of them and no other program can take it in between. It replaces a worker that dies, after a pause that grows while
workers keep dying, and one that hangs (`heartbeats.py`). SIGTERM and SIGINT stop the workers, which drain the requests
under way.

A worker is a child process, forked from one that has imported the program (`forking.py`). It reads one line of JSON
from its standard input, its brief, writes READY to its standard output when it serves (or why it cannot), beats there,
and stops when its standard input closes: so no secret is on a command line, and no worker outlives its supervisor,
whatever ends it. A guard ends those that hang then (`guard.py`). A worker gets new settings by the same pipe
(`changing.py`).

Beside the workers there may be a companion, forked and watched like a worker: the process that serves metrics. It
serves no clients, so it starts with the workers, ends after them, and its end stops nothing.

Source: SO_REUSEPORT in socket(7).
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from kafka_dt.config import ConfigError, Endpoint
from kafka_dt.log import event
from kafka_dt.metrics import MetricsMemory, WorkerPhase
from kafka_dt.processes.changing import ANSWER, NotChanged, Orders
from kafka_dt.processes.forking import ForkedWorker, NotForked, Template, adopting_orphans
from kafka_dt.processes.guard import Guard, Pauses
from kafka_dt.processes.heartbeats import ALIVE, Watch, beat_seconds
from kafka_dt.processes.service_manager import ServiceManager
from kafka_dt.processes.template import ForkedTemplate
from kafka_dt.server.listeners.open_port import bind, hold_port

_LOG = logging.getLogger(__name__)

READY: Final = "ready"
"""What a worker says when it serves; any other line but a beat is the reason why it cannot."""


class WorkerFailed(Exception):
    """A worker could not start; the text is the worker's own line about why."""


@dataclass(frozen=True, slots=True)
class Companion:
    """A process beside the workers."""

    name: str
    """What the log calls it."""
    key: str
    """The setting that says where it listens, for errors."""
    endpoint: Endpoint
    """Where it listens."""
    brief: Mapping[str, Any] = field(repr=False)
    """What it is told; the ports and the time between its beats are added."""


@dataclass(slots=True)
class Supervisor:
    """Starts, watches, replaces and stops the workers of a node."""

    command: Sequence[str]
    """Program and arguments of the template of the workers (`template.py`); no secrets."""
    brief: Mapping[str, Any] = field(repr=False)
    """What every worker is told, secrets included; the ports, the worker's number and the time between its beats are
    added."""
    endpoints: Sequence[Endpoint]
    """What the listeners bind."""
    count: int
    """How many workers."""
    modules: Sequence[str]
    """What the template imports beside the program."""
    shared: Sequence[int]
    """File descriptors that every worker gets, in this order."""
    on_ready: Callable[[Mapping[str, int]], None]
    """Called once, with the port of each listener, when every worker serves."""
    timeout_s: float
    """How long a worker may be silent before it is taken to hang, in seconds."""
    grace_s: float
    """How long a worker may take to stop before it is killed, also when the supervisor has died, in seconds."""
    metrics: MetricsMemory
    """Where it says what the workers are doing."""
    forked: ForkedTemplate | None = None
    """The first template, if it is there already."""
    manager: ServiceManager = field(default_factory=ServiceManager)
    """Hears when the node is ready, that it lives, and when it stops."""
    companion: Companion | None = None
    """A process beside the workers."""
    drain_delay_s: float = 0.0
    """How long the workers go on serving after SIGTERM or SIGINT, in seconds."""
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _workers_ended: asyncio.Event = field(default_factory=asyncio.Event)
    _ready: set[str] = field(default_factory=set)
    _announced: bool = False
    _serving: dict[int, Orders] = field(default_factory=dict)
    """The workers that are ready, by number."""
    _ports: dict[str, int] = field(default_factory=dict)
    _guard: Guard | None = None
    _template: Template | None = None

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT, or until cancelled.

        Raises:
            ConfigError: a port is in use, or cannot be listened on.
            WorkerFailed: a worker could not start in the first place.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_at, number)
        with self._reserve(), adopting_orphans():
            async with self.manager.beating(), Guard(self.grace_s) as self._guard:
                template = Template(
                    self.command, self.modules, self.shared, self._guard.guarding, self.timeout_s, forked=self.forked
                )
                async with template as self._template:
                    await self._run_workers()
        _LOG.info("Stopped", extra=event("stopped"))

    async def change(self, properties: Mapping[str, str]) -> None:
        """Have all workers take over settings, also those that are to come.

        A worker that is starting meanwhile has been told the former settings: it is replaced when it is ready, or, if
        it was ready while others checked the settings, when these have. A worker that does not answer any more is
        replaced as well.

        Raises:
            NotChanged: the node is still starting, or a worker cannot use the settings; none has taken them over.
        """
        if not self._announced:
            raise NotChanged("the node is still starting")
        serving = dict(self._serving)
        try:
            for number, orders in serving.items():
                with _of_worker(number):
                    await orders.prepare(properties)
        except NotChanged:
            for orders in serving.values():
                orders.forget()
            raise
        self.brief = {**self.brief, "properties": dict(properties)}
        for number, orders in self._serving.items():
            if serving.get(number) is not orders:
                _LOG.info("Worker %d has begun with the former settings, and is replaced", number)
                orders.replace()
        for number, orders in serving.items():
            if self._serving.get(number) is not orders:
                continue  # it has ended, and the next one begins with the new settings
            try:
                await orders.apply()
            except NotChanged as error:
                _LOG.error("Worker %d has not taken over the new settings, and is replaced: %s", number, error)
                orders.replace()

    async def _run_workers(self) -> None:
        where = ", ".join(map(str, self.endpoints))
        _LOG.info("Starting: %d worker%s on %s", self.count, "s"[: self.count != 1], where, extra=event("start"))
        members = [self._worker(number) for number in range(self.count)]
        keepers = [asyncio.create_task(self._keep(each)) for each in members]
        beside = []
        if self.companion is not None:
            beside.append(asyncio.create_task(self._keep(self._beside(self.companion))))
        await self._settle(keepers, beside)

    def _stop_at(self, number: signal.Signals) -> None:
        if self._stopping.is_set():
            return
        about = event("stop", reason=number.name)
        delay_s, self.drain_delay_s = self.drain_delay_s, 0.0
        self.metrics.drain()
        if delay_s:
            text = "Stopping in %g s at %s: until then the node serves, and /readyz says that it is draining"
            _LOG.info(text, delay_s, number.name, extra=about)
            asyncio.get_running_loop().call_later(delay_s, self._stop)
        else:
            _LOG.info("Stopping at %s: requests that are under way are answered first", number.name, extra=about)
            self._stop()

    def _stop(self) -> None:
        if not self._stopping.is_set():
            self.manager.tell("STOPPING=1")
        self._stopping.set()
        if self._template is not None:
            self._template.end()

    async def _settle(self, keepers: Sequence[asyncio.Task[None]], beside: Sequence[asyncio.Task[None]]) -> None:
        """Wait for the keepers; when one fails or we are cancelled, the others stop before that goes on.

        Those of processes beside the workers stop after the workers.
        """
        every = [*keepers, *beside]
        settled = asyncio.create_task(asyncio.wait(keepers, return_when=asyncio.FIRST_EXCEPTION))
        try:
            await asyncio.wait([settled, *beside], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stop()
            await settled
            await asyncio.wait(keepers)
            self._workers_ended.set()
            await asyncio.wait(every)
        # All are looked at: asyncio would log a second failure with a traceback.
        failures = [error for error in (task.exception() for task in every) if error is not None]
        if failures:
            raise failures[0]

    async def _keep(self, member: _Member) -> None:
        """Run a process of the node, and another one whenever it dies."""
        loop = asyncio.get_running_loop()
        pauses = Pauses()
        while not member.stopping.is_set():
            started = loop.time()
            member.tell(WorkerPhase.STARTING)
            reason = await self._run(member)
            member.tell(WorkerPhase.NONE)
            if member.stopping.is_set():
                return
            if not self._announced:
                raise WorkerFailed(reason)
            member.replaced()
            pause = pauses.after(loop.time() - started)
            about = event("worker-end", failed=True, reason=reason)
            _LOG.error("%s: %s; it is replaced in %.1f s", member.name, reason, pause, extra=about)
            with suppress(TimeoutError):
                await asyncio.wait_for(member.stopping.wait(), pause)

    async def _run(self, member: _Member) -> str:
        """Run a process to its end; returns why it ended."""
        assert self._guard is not None  # noqa: S101 - workers run while both are there
        assert self._template is not None  # noqa: S101
        try:
            process = await self._template.fork()
        except NotForked as error:
            return str(error)
        watch = Watch(self.timeout_s)
        stop = asyncio.create_task(self._stop_with_node(process, member))
        kill = asyncio.create_task(self._kill_when_silent(process, watch, member))
        try:
            with self._guard.guarding(process.pid):
                said = await self._converse(process, watch, member)
                status = await process.wait()
        finally:
            stop.cancel()
            kill.cancel()
            process.send_signal(signal.SIGKILL)
            await process.wait()
        return said or f"it ended with status {status}"

    async def _converse(self, process: ForkedWorker, watch: Watch, member: _Member) -> str:
        """Give a process its brief and hear it until it closes its output; returns its reason for not serving."""
        added: dict[str, Any] = {"ports": self._ports, "beat_seconds": beat_seconds(self.timeout_s)}
        if member.number is not None:
            added["number"] = member.number
        told = member.brief()
        process.write(json.dumps({**told, **added}).encode() + b"\n")
        orders = Orders(process.write, lambda: process.send_signal(signal.SIGKILL))
        said = ""
        try:
            while line := (await process.readline()).decode("utf-8", "replace").strip():
                watch.heard()
                if line == READY and told is not member.brief():
                    said = "it began with settings that have changed since"
                    process.send_signal(signal.SIGKILL)
                elif line == READY:
                    member.tell(WorkerPhase.READY)
                    member.obeys(orders)
                    self._announce(member)
                elif line.startswith(ANSWER):
                    orders.answered(line.removeprefix(ANSWER))
                elif line != ALIVE:
                    said = line
        finally:
            member.obeys(None)
            orders.gone()
        return said

    async def _stop_with_node(self, process: ForkedWorker, member: _Member) -> None:
        await member.stopping.wait()
        process.send_signal(signal.SIGTERM)
        await asyncio.sleep(self.grace_s)
        process.send_signal(signal.SIGKILL)

    async def _kill_when_silent(self, process: ForkedWorker, watch: Watch, member: _Member) -> None:
        await watch.silence()
        _LOG.error("%s hangs: no sign of life for %g s; it is killed", member.name, self.timeout_s)
        process.send_signal(signal.SIGKILL)

    def _announce(self, member: _Member) -> None:
        self._ready.add(member.name)
        if len(self._ready) == self._members and not self._announced:
            self._announced = True
            self.on_ready(self._ports)
            self.manager.tell("READY=1")

    def _note_orders(self, number: int, orders: Orders | None) -> None:
        if orders is None:
            self._serving.pop(number, None)
        else:
            self._serving[number] = orders

    @property
    def _members(self) -> int:
        """How many processes have to be ready before the node is."""
        return self.count + (self.companion is not None)

    def _worker(self, number: int) -> _Member:
        return _Member(
            name=f"Worker {number}",
            number=number,
            brief=lambda: self.brief,
            stopping=self._stopping,
            tell=partial(self.metrics.enter, number),
            obeys=partial(self._note_orders, number),
            replaced=self.metrics.counts(self.count).worker_restarts.add,
        )

    def _beside(self, companion: Companion) -> _Member:
        return _Member(
            name=companion.name,
            number=None,
            brief=lambda: companion.brief,
            stopping=self._workers_ended,
            tell=lambda _: None,
            obeys=lambda _: None,
            replaced=lambda: None,
        )

    def _reserve(self) -> ExitStack:
        with ExitStack() as reserved:
            for key, endpoint in self._claims():
                try:
                    # Without sharing first: another server on the port must be an error, not half of the connections.
                    with bind(endpoint, shared=False) as probe:
                        port: int = probe.getsockname()[1]
                    sock = reserved.enter_context(bind(Endpoint(endpoint.name, endpoint.host, port)))
                    # That does not see another node whose workers do not listen yet.
                    reserved.enter_context(hold_port(sock) or nullcontext())
                except OSError as error:
                    problem = "is in use" if error.errno == errno.EADDRINUSE else "cannot be listened on"
                    raise ConfigError(key, f"{endpoint} {problem}: {error.strerror}") from None
                self._ports[endpoint.name] = port
            return reserved.pop_all()

    def _claims(self) -> Iterator[tuple[str, Endpoint]]:
        """Give the addresses that the node needs, each with the setting that names it."""
        for endpoint in self.endpoints:
            yield "listeners", endpoint
        if self.companion is not None:
            yield self.companion.key, self.companion.endpoint


@dataclass(frozen=True, slots=True)
class _Member:
    """One process of the node, and those that replace it."""

    name: str
    """What the log calls it."""
    number: int | None
    """Which worker it is; None for another process."""
    brief: Callable[[], Mapping[str, Any]]
    """What it is told; the ports, its number and the time between its beats are added."""
    stopping: asyncio.Event
    """Set when it is to stop."""
    tell: Callable[[WorkerPhase], None]
    """Hears what it is doing."""
    obeys: Callable[[Orders | None], None]
    """Hears how it takes orders once it is ready, and None when it has ended."""
    replaced: Callable[[], None]
    """Hears that it has ended and is about to be replaced."""


@contextmanager
def _of_worker(number: int) -> Iterator[None]:
    """Name the worker whose answer is bad."""
    try:
        yield
    except NotChanged as error:
        raise NotChanged(f"worker {number}: {error}") from error
