"""The main program of a worker process: `python -m kafka_dt.worker`, started by the supervisor.

It reads its brief, one line of JSON, from standard input, says READY or why it cannot serve on standard output, and
stops at SIGTERM or when its standard input closes.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import Any

from kafka_dt import app
from kafka_dt.config import ConfigError, from_properties
from kafka_dt.log import set_up_logging
from kafka_dt.server.workers import READY
from kafka_dt.tokens import StoreUnavailable
from kafka_dt.zookeeper.errors import ZooKeeperError


async def work(brief: dict[str, Any]) -> None:
    """Serve until told to stop.

    Args:
        brief: `properties`, `ports`, `salt_secret` (hex) and `number`, as the supervisor writes them.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    loop.add_reader(sys.stdin.fileno(), stopping.set)
    node = app.Node(
        from_properties(brief["properties"]).settings,
        ports=brief["ports"],
        salt_secret=bytes.fromhex(brief["salt_secret"]),
        number=brief["number"],
    )
    try:
        await node.start()
        _say(READY)
        await stopping.wait()
    finally:
        await node.stop()


def main() -> int:
    """Run a worker; returns its exit status."""
    brief = json.loads(sys.stdin.readline())
    set_up_logging(f"worker {brief['number']}")
    try:
        app.run(work(brief))
    except (ConfigError, ZooKeeperError, StoreUnavailable, OSError) as error:
        _say(str(error).replace("\n", " "))
        return 1
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
