"""The main program of the worker processes, which are forked from a template (`processes/template.py`).

    with template_of_workers() as template:      # in a command, before it reads its configuration
        app.run(app.serve(loaded, template, ...))

A template that replaces another one is `python -m kafka_dt.worker`, started by the supervisor; the argument is the
descriptor of its socket.

A worker reads its brief, one line of JSON, from standard input, says READY or why it cannot serve on standard output,
beats there from its event loop, and stops at SIGTERM or when its standard input closes, also while it still starts. On
its standard input it also hears of new settings (`processes/changing.py`).
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import signal
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

from kafka_dt import app
from kafka_dt.client import TokenClientError
from kafka_dt.config import ConfigError, Settings, from_properties
from kafka_dt.identity.acls.store import AclStoreUnavailable
from kafka_dt.log import LogFormat, set_level, set_up_logging
from kafka_dt.monitoring.process import monitor
from kafka_dt.node import Worker
from kafka_dt.processes.attachment import say
from kafka_dt.processes.changing import LONGEST_ORDER_BYTES, obey
from kafka_dt.processes.core_dumps import forbid_core_dumps
from kafka_dt.processes.heartbeats import beat
from kafka_dt.processes.supervisor import READY
from kafka_dt.processes.template import ForkedTemplate, become_worker, forked_template
from kafka_dt.stores import ClusterUnavailable
from kafka_dt.tls import common_contexts
from kafka_dt.tokens import StoreUnavailable
from kafka_dt_protocol import APIS


def template_of_workers() -> AbstractContextManager[ForkedTemplate]:
    """Fork the template of the workers from this process, which has no loop, thread or secret yet."""
    APIS.load_entities()
    return forked_template(partial(main, tls=common_contexts()))


async def work(
    settings: Settings, brief: Mapping[str, Any], memory: Mapping[str, int], tls: Sequence[ssl.SSLContext]
) -> None:
    """Serve until told to stop.

    Args:
        settings: of the node.
        brief: as the supervisor writes it: `properties`, `ports`, `memory` (the names of the files of `node_memory`),
            `node` (a text that only the workers of this node are given), `number` and `beat_seconds`.
        memory: the file descriptors of `node_memory` by name.
        tls: the contexts of listeners that the workers have in common.
    """
    beating = asyncio.create_task(beat(sys.stdout.fileno(), brief["beat_seconds"]))
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    orders = asyncio.StreamReader(LONGEST_ORDER_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    worker = app.worker(settings, brief, memory, tls)
    obeying = asyncio.create_task(obey(orders, partial(_prepare, worker), say))
    obeying.add_done_callback(lambda _: stopping.set())  # the supervisor has gone
    starting = asyncio.create_task(worker.start())
    stopped = asyncio.create_task(stopping.wait())
    must_restart = asyncio.create_task(worker.must_restart.wait())
    try:
        await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            # Python's garbage collector stops everything while it looks at all objects: for 0.2 s with 100,000 tokens.
            # What has been loaded stays, so the collector need not look at it again.
            gc.freeze()
            say(READY)
            await asyncio.wait([stopped, must_restart], return_when=asyncio.FIRST_COMPLETED)
            if must_restart.done():
                say("ZooKeeper was restored: this worker ends, and its replacement reads the restored data")
    finally:
        await _cancel(starting, stopped, must_restart, obeying)
        await worker.stop()
        await _cancel(beating)


def _prepare(worker: Worker, properties: Mapping[str, str]) -> Callable[[], None]:
    """Check new settings, and return what takes them over.

    Raises:
        ValueError: they cannot be used; one line.
    """
    try:
        settings = from_properties(properties).settings
        take_over = worker.prepare(settings)
    except ConfigError as error:
        raise ValueError(_one_line(error)) from error

    def all_of_them() -> None:
        take_over()
        set_level(settings.log_level)

    return all_of_them


def main(shared: Sequence[int], tls: Sequence[ssl.SSLContext]) -> int:
    """Run a worker; returns its exit status.

    Args:
        shared: the file descriptors of `node_memory`, in the order of their names in the brief.
        tls: the contexts of listeners that the workers have in common.
    """
    forbid_core_dumps()  # before the brief, which has the keys
    line = sys.stdin.readline()
    if not line:
        return 0  # the supervisor has ended
    brief = json.loads(line)
    memory = dict(zip(brief["memory"], shared, strict=True))
    is_worker = brief["role"] == app.WORKER_ROLE
    try:
        settings = from_properties(brief["properties"]).settings
        set_up_logging(
            f"worker {brief['number']}" if is_worker else brief["role"],
            level=settings.log_level,
            form=LogFormat(settings.log_format),
            lines_per_minute=settings.log_lines_per_minute,
        )
        if is_worker:
            _allow_many_connections()
            app.run(work(settings, brief, memory, tls))
        else:
            app.run(monitor(settings, brief, memory))
    except (ConfigError, ClusterUnavailable, StoreUnavailable, AclStoreUnavailable, TokenClientError, OSError) as error:
        say(_one_line(error))
        return 1
    return 0


def _one_line(error: Exception) -> str:
    return str(error).replace("\n", " ")


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _allow_many_connections() -> None:
    """Open as many files as the system lets us, as Java does: the usual limit of 1024 is soon reached."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # "unlimited" may be more than the kernel takes
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    APIS.load_entities()
    common = common_contexts()
    sys.exit(main(become_worker(int(sys.argv[-1])), common))
