"""A worker of the supervisor's tests: as small as can be, and told by its brief how to behave.

The brief's `folder` receives one file for each start, named by worker number and process id, that holds the brief.
`refuse` is a reason not to start. What workers share receives the worker's number; a `stubborn` worker does not hear
SIGTERM, and one that `hangs` beats no more once it has said that it serves.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from kafka_dt.processes.heartbeats import beat_once
from kafka_dt.processes.supervisor import READY
from kafka_dt.processes.template import become_worker


def main(shared: Sequence[int]) -> NoReturn:
    brief = json.loads(sys.stdin.readline())
    folder = Path(brief["folder"])
    (folder / f"unfinished.{os.getpid()}").write_text(json.dumps(brief))
    (folder / f"unfinished.{os.getpid()}").rename(folder / f"{brief['number']}.{os.getpid()}")
    for descriptor in shared:
        os.write(descriptor, bytes([brief["number"]]))
    if brief.get("refuse"):
        sys.stdout.write(brief["refuse"] + "\n")
        sys.exit(1)

    def drain(_number: int, _frame: FrameType | None) -> NoReturn:
        (folder / f"drained.{os.getpid()}").touch()
        sys.exit(0)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if brief.get("stubborn") else drain)
    sys.stdout.write(READY + "\n")
    sys.stdout.flush()
    while not select.select([sys.stdin], [], [], brief["beat_seconds"])[0]:
        if not brief.get("hangs"):
            beat_once(sys.stdout.fileno())
    drain(0, None)


if __name__ == "__main__":
    main(become_worker(int(sys.argv[-1])))
