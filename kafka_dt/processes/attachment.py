"""How a process of a node hangs on its supervisor: it beats, and hears when it is to stop.

    async with attached(brief["beat_seconds"]) as stopping:
        await stopping.wait()

It is to stop at SIGTERM, and when its standard input closes: then the supervisor has ended, whatever ended it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from kafka_dt.processes.heartbeats import beat


@asynccontextmanager
async def attached(beat_seconds: float) -> AsyncIterator[asyncio.Event]:
    """Beat to the supervisor during the block; gives what is set when this process is to stop."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)

    def supervisor_gone() -> None:
        loop.remove_reader(sys.stdin.fileno())  # a closed pipe stays readable
        stopping.set()

    loop.add_reader(sys.stdin.fileno(), supervisor_gone)
    beating = asyncio.create_task(beat(sys.stdout.fileno(), beat_seconds))
    try:
        yield stopping
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


def say(line: str) -> None:
    """Say a line to the supervisor; one that is gone hears nothing, and its end stops this process soon."""
    with suppress(BrokenPipeError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
