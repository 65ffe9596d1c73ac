"""The composition root: it builds a node of its settings, and chooses the stores and the event loop.

`serve` runs a whole node: the supervisor and its workers. `worker` builds what one worker process runs.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import uvloop

from kafka_dt.clock import now_ms
from kafka_dt.config import (
    METRICS_LISTENER,
    ConfigError,
    Endpoint,
    Listener,
    Loaded,
    Settings,
    TokenStore,
    audit_settings,
    listeners,
    metrics_settings,
    names_clients,
    pinned,
    upstream_client_properties,
)
from kafka_dt.config.options.metrics import METRICS_PREFIX
from kafka_dt.config.options.resources import LOG_PREFIX
from kafka_dt.identity.acls.authorizer import Authorizer
from kafka_dt.identity.acls.cache import AclCache
from kafka_dt.identity.mechanisms import mechanisms_of
from kafka_dt.kraft import node as kraft
from kafka_dt.metrics import MetricsMemory
from kafka_dt.metrics.memory import METRICS_MEMORY
from kafka_dt.monitoring import process as monitoring
from kafka_dt.node import Shared, Worker
from kafka_dt.node.audit_trail import AuditTrail
from kafka_dt.node.listeners import encryption, gateway
from kafka_dt.node.mechanisms import OpenMechanisms
from kafka_dt.node.two_stores import joined
from kafka_dt.processes.control import listening
from kafka_dt.processes.node_memory import node_memory
from kafka_dt.processes.reloading import Reloader
from kafka_dt.processes.service_manager import ServiceManager
from kafka_dt.processes.supervisor import Companion, Supervisor
from kafka_dt.processes.template import ForkedTemplate
from kafka_dt.server.connections.request_memory import request_buffer_bytes
from kafka_dt.server.listeners.admission import ConnectionLimits
from kafka_dt.stores import MakeStores, NodeStores, StoreNeeds, WorkerPlace
from kafka_dt.tracing import Spans, spans_wanted
from kafka_dt.upstream import UpstreamClient
from kafka_dt.zookeeper import node as zookeeper
from kafka_dt.zookeeper.sealing.derivations import MEMORY_BYTES, Derivations

WORKER_COMMAND: Final = (sys.executable, "-P", "-m", "kafka_dt.worker")
"""Starts a template of the workers. What happens to lie in the directory in which a node is started is not run (-P)."""


STOP_SECONDS: Final = 10.0
"""How long a worker may take to leave its stores when it has drained; then the supervisor kills it."""
WORKER_ROLE: Final = "worker"
METRICS_ROLE: Final = "metrics"
"""What a process that is forked from the template becomes, as its brief says."""
NODE_BYTES: Final = 16
"""The name that the workers of a node have in common holds so many random bytes: no client can guess it."""


@dataclass(frozen=True, slots=True)
class Reread:
    """How to read the settings of a node again."""

    config: Path
    """The file, by which `kafka-dt reload` finds the node."""
    load: Callable[[], Loaded]
    """Raises ConfigError."""


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end on the event loop of this application."""
    uvloop.run(main)


async def serve(
    loaded: Loaded,
    template: ForkedTemplate,
    on_ready: Callable[[Sequence[Endpoint]], None],
    reread: Reread | None = None,
) -> None:
    """Run a node until SIGTERM or SIGINT.

    Args:
        loaded: its settings.
        template: of its workers, forked from this process.
        on_ready: called once with the addresses that clients can use.
        reread: how to read the settings again, at SIGHUP and at `kafka-dt reload`; None where they cannot change.

    Raises:
        ConfigError: a setting cannot be used; no port has been opened.
        WorkerFailed: the node cannot start for another reason, such as ZooKeeper not being there.
    """
    loaded = pinned(loaded)
    settings = loaded.settings
    made = _check(settings)
    workers = _workers(settings)
    with node_memory(**Shared.sizes(workers), derivations=MEMORY_BYTES) as memory:
        brief = {
            "role": WORKER_ROLE,
            "properties": dict(loaded.properties),
            "memory": list(memory),
            "node": secrets.token_hex(NODE_BYTES),
        }
        supervisor = Supervisor(
            command=WORKER_COMMAND,
            brief=brief,
            endpoints=[listener.bind for listener in made],
            count=workers,
            modules=_optional_modules(settings),
            shared=list(memory.values()),
            on_ready=lambda ports: on_ready([_reachable(listener, ports) for listener in made]),
            timeout_s=settings.worker_timeout_ms / 1000,
            grace_s=settings.drain_timeout_ms / 1000 + STOP_SECONDS,
            forked=template,
            manager=ServiceManager(os.environ),
            metrics=MetricsMemory.shared(memory[METRICS_MEMORY], workers),
            companion=_metrics_process(loaded, list(memory), workers),
            drain_delay_s=settings.drain_delay_ms / 1000,
        )
        async with _reloading(loaded, reread, supervisor):
            await supervisor.run()


@asynccontextmanager
async def _reloading(loaded: Loaded, reread: Reread | None, supervisor: Supervisor) -> AsyncIterator[None]:
    """Read the settings again during a block, whenever an operator asks for it."""
    if reread is None:
        yield
        return
    reloader = Reloader(loaded, reread=reread.load, check=_check, change=supervisor.change)
    asked: set[asyncio.Task[Any]] = set()

    def hang_up() -> None:
        task = asyncio.create_task(reloader.reload())
        asked.add(task)
        task.add_done_callback(asked.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hang_up)
    async with listening(reread.config, reloader.reload):
        yield


def _metrics_process(loaded: Loaded, memory: Sequence[str], workers: int) -> Companion | None:
    """Return the process that serves metrics, which is told nothing of most settings; None without one."""
    settings = metrics_settings(loaded.settings)
    if settings is None:
        return None
    told = (METRICS_PREFIX, LOG_PREFIX)
    own = {key: text for key, text in loaded.properties.items() if key.startswith(told)}
    return Companion(
        name="The metrics listener",
        key=METRICS_LISTENER,
        endpoint=settings.endpoint,
        brief={
            "role": METRICS_ROLE,
            "properties": own,
            "memory": memory,
            "workers": workers,
            "started_s": now_ms() / 1000,
        },
    )


def worker(
    settings: Settings, brief: Mapping[str, Any], memory: Mapping[str, int], tls: Sequence[ssl.SSLContext]
) -> Worker:
    """Build the node of one worker process.

    Args:
        settings: of the node.
        brief: as `kafka_dt.worker.work` describes it.
        memory: the file descriptors of `node_memory` by name.
        tls: the contexts of listeners that the workers have in common.

    Raises:
        ConfigError: a setting cannot be used.
    """
    place = WorkerPlace(brief["number"], _workers(settings), brief["node"])
    spans = spans_wanted(os.environ, f"worker {place.number}")
    return Worker(
        settings,
        ports=brief["ports"],
        place=place,
        shared=Shared.opened(memory, place, tls),
        make_stores=_make_stores(settings, place, memory, spans),
        spans=spans,
        now_ms=now_ms,
    )


def _make_stores(settings: Settings, place: WorkerPlace, memory: Mapping[str, int], spans: Spans | None) -> MakeStores:
    """Choose the stores."""

    def in_zookeeper(needs: StoreNeeds) -> NodeStores:
        derivations = Derivations.shared(memory["derivations"])
        return zookeeper.node_stores(settings, place, derivations, needs, now_ms=now_ms, spans=spans)

    def upstream(needs: StoreNeeds) -> NodeStores:
        client = UpstreamClient(upstream_client_properties(settings), names_clients=names_clients(settings))
        return kraft.node_stores(settings, place, needs, upstream=client, now_ms=now_ms, spans=spans)

    match TokenStore(settings.token_store):
        case TokenStore.ZOOKEEPER:
            return in_zookeeper
        case TokenStore.UPSTREAM:
            return upstream
        case TokenStore.MOVING:
            return partial(joined, in_zookeeper, upstream, new_upstream=True)
        case TokenStore.READY_TO_MOVE:
            return partial(joined, in_zookeeper, upstream, new_upstream=False)


def _check(settings: Settings) -> Sequence[Listener]:
    """Check everything that can be checked before a port is opened; returns the listeners.

    Raises:
        ConfigError: a setting cannot be used.
    """
    made = listeners(settings, mechanisms_of(settings))
    for check in (*_checks_of_listeners(settings, made), *_checks(settings)):
        check()
    return made


def refusals(settings: Settings) -> Iterator[ConfigError]:
    """Give every reason for which a node would not start with settings, without opening a port."""
    checks = [*_checks(settings)]
    try:
        made = listeners(settings, mechanisms_of(settings))
    except ConfigError as error:
        yield error
    else:
        checks += _checks_of_listeners(settings, made)
        checks.append(partial(OpenMechanisms, settings, made, mechanisms_of(settings), now_ms))
    for check in checks:
        try:
            check()
        except ConfigError as error:
            yield error


def _checks_of_listeners(settings: Settings, made: Sequence[Listener]) -> Iterator[Callable[[], object]]:
    """Give each check of listeners that raises a ConfigError before a port is opened."""
    yield from (partial(encryption, listener) for listener in made)
    yield partial(ConnectionLimits.of, settings, made)
    yield partial(gateway, settings, made, lambda _: None)


def _checks(settings: Settings) -> Iterator[Callable[[], object]]:
    """Give each other such check."""
    yield partial(Authorizer.from_settings, settings, AclCache())
    if TokenStore(settings.token_store).has_zookeeper:
        yield partial(zookeeper.check, settings, _workers(settings))
    yield partial(request_buffer_bytes, settings)
    yield partial(_check_metrics, settings)
    yield partial(_check_audit, settings)


def _check_metrics(settings: Settings) -> None:
    if (metrics := metrics_settings(settings)) is not None:
        monitoring.check(metrics)


def _check_audit(settings: Settings) -> None:
    if (audit := audit_settings(settings)) is not None:
        AuditTrail.check(audit)


def _optional_modules(settings: Settings) -> tuple[str, ...]:
    audit = audit_settings(settings)
    return () if audit is None else AuditTrail.optional_modules(audit)


def _reachable(listener: Listener, ports: Mapping[str, int]) -> Endpoint:
    """Return the address to which a client on this machine would connect."""
    port = listener.advertised.port or ports[listener.name]
    return Endpoint(listener.name, listener.advertised.host or "localhost", port)


def _workers(settings: Settings) -> int:
    return settings.workers or os.cpu_count() or 1
