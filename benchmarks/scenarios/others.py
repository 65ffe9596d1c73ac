"""The cost for a node when other nodes change 1,000 tokens a second, and the number of change znodes meanwhile.

A kafka-dt node of one worker makes the changes. A second node without clients shares its ZooKeeper, and is measured. A
broker in place of the second node follows the same changes; it could not make as many itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from benchmarks.bench import Bench
from benchmarks.change_znodes import connected, count_changes
from benchmarks.generator import Job
from benchmarks.metrics import RATE, SERVER_CPU
from benchmarks.results import Case
from benchmarks.servers import BROKER, ONE_WORKER, ONE_WORKER_UNSEALED, Server, Subject, make_server
from kafka_dt.zookeeper.stores.change_purger import PurgeLimits

TITLE: Final = "Changes made by others"
COMPARED: Final = SERVER_CPU
AXIS: Final = "CPU a change, ms"
CHANGES_PER_SECOND: Final = 1_000
CONNECTIONS: Final = 32
MAKERS: Final = {
    BROKER: ONE_WORKER_UNSEALED,
    ONE_WORKER_UNSEALED: ONE_WORKER_UNSEALED,
    ONE_WORKER: ONE_WORKER,
}
"""Who watches -> who makes the changes: a broker cannot read what is sealed."""
PURGE_MS: Final = 1_000
"""What removing the excess may take."""
_LOOK_S: Final = 0.2


def run(bench: Bench) -> None:
    """Measure a node and a broker as the one who watches."""
    bench.clear_stage()
    watchers = [bench.new_server(subject, bench.plan.few, f"watching {subject.name}") for subject in MAKERS]
    makers: dict[Subject, Server] = {}
    try:
        for watcher in watchers:
            watcher.start()
            folder = bench.folder_of(f"beside {watcher.subject.name}")
            maker = make_server(MAKERS[watcher.subject], bench.kit, folder, watcher.tokens, watcher.zookeeper)
            maker.program.start()
            makers[watcher.subject] = maker
        for round_number, watcher in bench.rounds(f"{CHANGES_PER_SECOND:,} changes a second", watchers):
            values = _measure(bench, makers[watcher.subject], watcher, round_number)
            bench.record(Case("watching"), watcher.subject, round_number, values)
    finally:
        for maker in makers.values():
            maker.program.stop()
        for watcher in watchers:
            if watcher.zookeeper.running:
                watcher.stop()


def _measure(bench: Bench, maker: Server, watcher: Server, round_number: int) -> dict[str, float]:
    job = Job(
        address=maker.address,
        phases=("CYCLE",),
        connections=CONNECTIONS,
        rate=CHANGES_PER_SECOND,
        warm_ms=bench.plan.warm_ms,
        measure_ms=bench.plan.measure_ms * (2 if round_number else 1),
    )
    with _most_changes(watcher.zookeeper.address) as most:
        values = bench.load(watcher, job)["CYCLE"]
    return {
        RATE: values[RATE],
        "cpu_share": values[RATE] * values[SERVER_CPU] / 1000,
        SERVER_CPU: values[SERVER_CPU],
        "change_nodes": float(most[0]),
        "change_bound": float(change_bound(values[RATE])),
    }


def change_bound(changes_per_second: float) -> int:
    """Say how many change znodes one worker leaves at most: what it may keep, and what it makes between two looks."""
    limits = PurgeLimits()
    kept = min(limits.max_own, changes_per_second * limits.retention_ms / 1000)
    return math.ceil(kept + changes_per_second * (limits.interval_ms + PURGE_MS) / 1000)


@contextmanager
def _most_changes(address: str) -> Iterator[list[int]]:
    """Count change znodes during the block; gives a list with the largest number seen."""
    most, over = [0], Event()

    def look() -> None:
        with connected(address) as kazoo:
            while not over.wait(_LOOK_S):
                most[0] = max(most[0], count_changes(kazoo))

    thread = Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        over.set()
        thread.join()
