"""A supervisor with real processes that do nothing but live and die.

    node = Node(tmp_path)
    async with running(node):
        os.kill(node.pids(0)[0], signal.SIGKILL)
        await until(lambda: len(node.pids(0)) == 2)

The workers are `worker_script.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from kafka_dt.config import Endpoint
from kafka_dt.metrics import MetricsMemory
from kafka_dt.processes.supervisor import Supervisor
from kafka_dt.processes.template import TEMPLATE_NAME
from tests.support.nodes.node import children, process_name
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


def template_of(supervisor: int) -> int:
    (template,) = (pid for pid in children(supervisor) if process_name(pid) == TEMPLATE_NAME)
    return template
