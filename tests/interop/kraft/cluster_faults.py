"""The faults that a cluster whose brokers are its controllers, too, can have without losing data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.chaos.fault_run import Fault, Stopped
from tests.support.brokers.controller_links import ControllerLinks
from tests.support.brokers.kraft import KraftCluster
from tests.support.processes.process import hanging


def cluster_faults(cluster: KraftCluster, stopped: Stopped, links: ControllerLinks | None = None) -> list[Fault]:
    """Give the faults of a cluster; a broker is isolated only where there are links."""
    brokers = list(cluster.brokers.values())

    @asynccontextmanager
    async def killed() -> AsyncIterator[str]:
        with stopped.one_of(brokers) as broker:
            await asyncio.to_thread(broker.kill)
            yield f"broker {broker.node_id} is killed"
            await asyncio.to_thread(broker.start)

    @asynccontextmanager
    async def hangs() -> AsyncIterator[str]:
        with stopped.one_of(brokers) as broker, hanging(broker.process.pid):
            yield f"broker {broker.node_id} hangs"

    @asynccontextmanager
    async def isolated() -> AsyncIterator[str]:
        assert links is not None
        broker = stopped.chance.choice(brokers)
        await asyncio.to_thread(links.isolate, broker.node_id)
        yield f"broker {broker.node_id} is isolated from the other controllers"
        await asyncio.to_thread(links.heal)

    return [killed, hangs, *([isolated] if links else [])]
