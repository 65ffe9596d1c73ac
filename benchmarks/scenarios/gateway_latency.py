"""Small requests of many clients, directly and through a gateway: records of 100 bytes one by one.

The load generator of the other parts sends them, one at a time on each connection: at fixed rates, with a latency that
counts from the moment at which the request was due; and each as soon as the last one is answered. Metadata is an answer
that a gateway rewrites. On all ways clients log in with PLAIN, without TLS; "broker" is the direct way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from benchmarks.bench import Bench
from benchmarks.gateways import Way, stage
from benchmarks.generator import Job
from benchmarks.metrics import GENERATOR, PROXY_CPU, PSS, RATE
from benchmarks.perf_tools import USER
from benchmarks.results import Case

TITLE: Final = "Small requests through a gateway"
COMPARED: Final = "p50_ms"
AXIS: Final = "median, ms"
RECORD_BYTES: Final = 100
WARMER: Final = 3
"""How many times as long as elsewhere it is warmed: each connection is opened and logs in upstream as well."""
_TOPIC: Final = "latency"
_JOB: Final = Job(address="", phases=("PRODUCE",), user=USER, topic=_TOPIC, record_bytes=RECORD_BYTES)
_METADATA: Final = replace(_JOB, phases=("METADATA",))

JOBS: Final = {
    Case("produce, 500 a second", 10): replace(_JOB, connections=10, rate=500),
    Case("produce, 2,000 a second", 100): replace(_JOB, connections=100, rate=2_000),
    Case("metadata, 500 a second", 10): replace(_METADATA, connections=10, rate=500),
    Case("produce, no pause", 1): _JOB,
    Case("produce, no pause", 100): replace(_JOB, connections=100),
}


def run(bench: Bench) -> None:
    """Measure all ways in turns."""
    with stage(bench) as on:
        on.make_topic(_TOPIC, 1)
        for case, job in JOBS.items():
            for round_number, way in bench.rounds(case.label, on.ways):
                bench.record(case, way.subject, round_number, _measure(bench, way, round_number, job))


def _measure(bench: Bench, way: Way, round_number: int, job: Job) -> dict[str, float]:
    bench.rest()
    used: dict[str, tuple[float, float]] = {}

    def look(_phase: str, mark: str) -> None:
        used[mark] = way.cpu_seconds()

    timed = bench.timed(replace(job, address=way.address), round_number)
    timed = replace(timed, warm_ms=WARMER * timed.warm_ms)
    (result,) = bench.generator.run(timed, look).values()
    between, broker = (after - before for before, after in zip(used["begin"], used["end"], strict=True))
    values = {
        RATE: result.count / result.seconds,
        "p50_ms": result.p50_us / 1000,
        "p99_ms": result.p99_us / 1000,
        "broker_cpu_ms": broker / result.count * 1000,
        GENERATOR: result.cpu_seconds / result.seconds,
    }
    if memory := way.memory():
        values |= {PROXY_CPU: between / result.count * 1000, PSS: memory.pss_mib, "rss_mib": memory.rss_mib}
    return values
