"""A worker of the supervisor's tests: as small as can be, and told by its brief how to behave.

The brief's `folder` receives one file for each start, named by worker number and process id, that holds the brief.
`refuse` is a reason not to start, and `waits_for` a file without which it does not serve. What workers share receives
the worker's number; a `stubborn` worker does not hear SIGTERM, and one that `hangs` beats no more once it has said that
it serves. New settings may name a worker that `refused` them, or that `dies` when it is to take them over, and a file
without which a worker does not answer whether it can use them (`checked_with.` and its number).
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from kafka_dt.processes.changing import ANSWER, FORGET, NUMBER, OK, PREPARE
from kafka_dt.processes.heartbeats import beat_once
from kafka_dt.processes.supervisor import READY
from kafka_dt.processes.template import become_worker

ORDER_BYTES = 65536
dies: set[str] = set()


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
    wait_for(brief.get("waits_for"))
    sys.stdout.write(READY + "\n")
    sys.stdout.flush()
    while True:
        if not select.select([sys.stdin], [], [], brief["beat_seconds"])[0]:
            if not brief.get("hangs"):
                beat_once(sys.stdout.fileno())
        elif line := os.read(sys.stdin.fileno(), ORDER_BYTES):
            obey(json.loads(line), folder, brief["number"])
        else:
            drain(0, None)


def obey(order: dict[str, Any], folder: Path, number: int) -> None:
    """Note an order in a file, and answer it as the settings say."""
    order_number = order.pop(NUMBER)
    ((what, settings),) = order.items()
    with (folder / f"orders.{number}").open("a") as orders:
        orders.write(f"{what}\n")
    if what == PREPARE:
        dies.update(settings.get("dies", ""))
        wait_for(settings.get(f"checked_with.{number}"))
    if what != PREPARE and str(number) in dies:
        os._exit(1)
    if what != FORGET:
        refused = what == PREPARE and settings.get("refused") == str(number)
        sys.stdout.write(f"{ANSWER}{order_number} {'no' if refused else OK}\n")
        sys.stdout.flush()


def wait_for(file: str | None) -> None:
    while file and not Path(file).exists():
        time.sleep(0.01)


if __name__ == "__main__":
    main(become_worker(int(sys.argv[-1])))
