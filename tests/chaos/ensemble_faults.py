"""The faults that a ZooKeeper ensemble can have without losing data, and those of nodes' clocks."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from tests.chaos.fault_run import Fault, Stopped
from tests.chaos.recorded_clients import Clients, now_ms
from tests.support.processes.process import hanging
from tests.support.processes.wall_clock import WallClock
from tests.support.zookeeper.ensemble import Ensemble

CLOCK_JUMPS_S: Final = (2_400, -60)
"""The first makes tokens that live for half an hour look expired."""


def ensemble_faults(ensemble: Ensemble, stopped: Stopped) -> list[Fault]:
    """Give the faults of an ensemble."""
    chance = stopped.chance

    @asynccontextmanager
    async def killed() -> AsyncIterator[str]:
        with stopped.one_of(ensemble.members) as member:
            await asyncio.to_thread(member.kill)
            yield f"ZooKeeper {member.number} is killed"
            await asyncio.to_thread(member.start)

    @asynccontextmanager
    async def hangs() -> AsyncIterator[str]:
        with stopped.one_of(ensemble.members) as member, hanging(member.pid):
            yield f"ZooKeeper {member.number} hangs"

    @asynccontextmanager
    async def isolated() -> AsyncIterator[str]:
        member = chance.choice(ensemble.members)
        await asyncio.to_thread(ensemble.partition, member)
        yield f"ZooKeeper {member.number} is isolated"

    @asynccontextmanager
    async def away_from_clients() -> AsyncIterator[str]:
        member, silently = chance.choice(ensemble.members), chance.random() < 0.5
        await asyncio.to_thread(lambda: ensemble.cut_clients(member, silently=silently))
        yield f"ZooKeeper {member.number} is away from its clients{', silently' if silently else ''}"

    return [killed, hangs, isolated, away_from_clients]


def clock_jumps(clocks: Mapping[str, WallClock], shared: Clients, stopped: Stopped) -> list[Fault]:
    """Give the faults of a node whose wall clock is wrong for a while, ahead first.

    Args:
        clocks: by the names of the nodes that have them; with none there is no such fault.
        shared: learns which clocks are wrong.
        stopped: says which clock it is.
    """

    @asynccontextmanager
    async def jumped(jump_s: int) -> AsyncIterator[str]:
        name = stopped.chance.choice(sorted(clocks))
        shared.believed_since_ms[name] = math.inf
        clocks[name].move(jump_s)
        yield f"the clock of {name} is off by {jump_s} s"
        clocks[name].move(0)
        shared.believed_since_ms[name] = now_ms()

    return [partial(jumped, jump_s) for jump_s in CLOCK_JUMPS_S] if clocks else []
