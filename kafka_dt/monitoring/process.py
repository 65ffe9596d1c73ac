"""The process of a node that serves metrics and health; `kafka_dt.worker` runs it in place of a worker.

The supervisor starts it with the workers, replaces it when it ends, and stops it after them. It reads the memory that
they write, and asks them nothing. So a worker that hangs does not hold it up, and whatever happens to it touches no
client.

Source: docs/decisions/0029-numbers-of-the-workers.md.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kafka_dt.config import ConfigError, Endpoint, MetricsSettings, Settings, metrics_settings
from kafka_dt.config.options.metrics import METRICS_PREFIX
from kafka_dt.metrics import MetricsMemory
from kafka_dt.metrics.memory import METRICS_MEMORY
from kafka_dt.monitoring.exposition import Exposition
from kafka_dt.monitoring.health import Health
from kafka_dt.monitoring.http import HttpServer
from kafka_dt.monitoring.pages import Pages
from kafka_dt.processes.attachment import attached, say
from kafka_dt.processes.supervisor import READY
from kafka_dt.server.listeners.open_port import bind
from kafka_dt.tls import ReloadingContext, TlsError

_LOG = logging.getLogger(__name__)

PROCESS_NAME: Final = "kafka-dt-metric"
"""What `ps` and `top` call it: 15 characters at most (/proc/PID/comm)."""
FILE_CHECK_SECONDS: Final = 1.0


def check(settings: MetricsSettings) -> None:
    """Check what can be checked before a port is opened.

    Raises:
        ConfigError: naming the key that cannot be used.
    """
    if settings.tls is not None:
        _context(settings.tls)


async def monitor(settings: Settings, brief: Mapping[str, Any], memory: Mapping[str, int]) -> None:
    """Serve until told to stop.

    Args:
        settings: those of the endpoint and of the log; the others are not told.
        brief: `ports`, `workers` (how many), `started_s` and `beat_seconds`.
        memory: the file descriptors of `node_memory` by name.

    Raises:
        ConfigError, OSError: it cannot serve.
    """
    _take_name()
    own = metrics_settings(settings)
    assert own is not None  # noqa: S101 - there is no such process without
    numbers = MetricsMemory.shared(memory[METRICS_MEMORY], brief["workers"])
    _close_others(memory)
    health = Health(numbers, time.monotonic)
    context = None if own.tls is None else _context(own.tls)
    exposition = Exposition(
        numbers,
        health,
        started_s=brief["started_s"],
        certificate_s=lambda: None if context is None else context.certificate_end_s,
    )
    login = f"{own.user}:{own.password.value}" if own.password else ""
    pages = Pages(exposition.render, health, login=login, monotonic=time.monotonic)
    endpoint = own.endpoint
    port = brief["ports"][endpoint.name]
    server = HttpServer(
        bind(Endpoint(endpoint.name, endpoint.host, port)),
        pages.answer,
        None if context is None else lambda: context.current,
    )
    server.listen()
    async with attached(brief["beat_seconds"]) as stopping, asyncio.TaskGroup() as tasks:
        work = [tasks.create_task(server.serve())]
        if context is not None:
            work.append(tasks.create_task(_keep_fresh(context)))
        _LOG.info("Metrics and health are at %s://%s:%d", endpoint.name, endpoint.host or "localhost", port)
        say(READY)
        await stopping.wait()
        for each in work:
            each.cancel()


def _take_name() -> None:
    Path("/proc/self/comm").write_text(PROCESS_NAME, encoding="ascii")


def _close_others(memory: Mapping[str, int]) -> None:
    """Close the memory of the workers that this process has no business with."""
    for descriptor in memory.values():
        os.close(descriptor)


def _context(tls: Mapping[str, str]) -> ReloadingContext:
    try:
        return ReloadingContext(tls)
    except TlsError as error:
        raise ConfigError(METRICS_PREFIX + error.key, error.reason) from error


async def _keep_fresh(context: ReloadingContext) -> None:
    """Take new certificates when their files change; with those that cannot be used the old ones stay."""
    while True:
        await asyncio.sleep(FILE_CHECK_SECONDS)
        await asyncio.to_thread(context.follow, "the metrics listener", METRICS_PREFIX.__add__)
