"""Some minutes of steady load on one node, 500 logins and 150 changes a second: whether memory and latency stay flat.

The generator starts both at fixed times, whatever the server does. A latency counts from the time at which its
operation was due.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job, LoadResult
from benchmarks.results import Case
from benchmarks.servers import KAFKA_DT, Server

TITLE: Final = "Steady load"
COMPARED: Final = "p50_ms"
AXIS: Final = "milliseconds and MiB"
LOGINS_PER_SECOND: Final = 500
CHANGES_PER_SECOND: Final = 150
CONNECTIONS: Final = 16
TOKENS: Final = 1_000
MECHANISM: Final = "SCRAM-SHA-256"


def run(bench: Bench) -> None:
    """Run both loads at once, and look at the server's memory every second."""
    (server,) = bench.stage(bench.plan.few, (KAFKA_DT,))
    seconds = bench.plan.steady_s
    changes = Job(
        address=server.address,
        phases=("CYCLE",),
        connections=CONNECTIONS,
        rate=CHANGES_PER_SECOND,
        warm_ms=bench.plan.first_warm_ms,
        measure_ms=seconds * 1000,
    )
    credentials = bench.credentials(server, MECHANISM, server.tokens.ids[:TOKENS])
    logins = replace(changes, phases=("LOGIN",), mechanism=MECHANISM, credentials=credentials, rate=LOGINS_PER_SECOND)
    with (
        bench.console.status(f"steady load for {seconds} s"),
        bench.another_generator() as other,
        ThreadPoolExecutor(2) as threads,
    ):
        running = [threads.submit(bench.generator.run, logins), threads.submit(other.run, changes)]
        memory = _watch(server, running, bench.plan.first_warm_ms / 1000)
    for operation, future in zip(("logins", "changes"), running, strict=True):
        (result,) = future.result().values()
        values, series = _figures(result, memory)
        bench.record(Case(operation), server.subject, 1, values, series)


def _watch(server: Server, running: Sequence[Future[dict[str, LoadResult]]], warm_s: float) -> list[float]:
    """Look at the memory every second until one of the loads ends; leaves the warm-up out."""
    seen: list[float] = []
    begun = time.monotonic()
    while not any(each.done() for each in running):
        time.sleep(1)
        if time.monotonic() - begun > warm_s:
            seen.append(server.memory().pss_mib)
    return seen


def _figures(result: LoadResult, memory: list[float]) -> tuple[dict[str, float], dict[str, list[float]]]:
    values = {
        "rate": result.count / result.seconds,
        "p50_ms": result.p50_us / 1000,
        "p99_ms": result.p99_us / 1000,
        "pss_mib": memory[-1],
    }
    series = {
        "rate": [second[0] for second in result.series],
        "p50_ms": [second[1] / 1000 for second in result.series],
        "p99_ms": [second[2] / 1000 for second in result.series],
        "pss_mib": memory,
    }
    return values, series
