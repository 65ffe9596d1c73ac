"""10,000 connections that have logged in with a token and then say nothing: memory a connection, and CPU.

Each server starts afresh. A few clients log in first, so that one-time costs do not count. The figures are the
difference between the server before and after the connections.
"""

from __future__ import annotations

import time
from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job
from benchmarks.machine import connections_that_fit
from benchmarks.results import Case
from benchmarks.servers import BROKER, KAFKA_DT, Server

TITLE: Final = "Idle connections"
COMPARED: Final = "connection_kib"
AXIS: Final = "KiB a connection"
MECHANISM: Final = "SCRAM-SHA-256"
TOKENS: Final = 100
FIRST: Final = 50
IDLE_S: Final = 3.0


def run(bench: Bench) -> None:
    """Hold the connections in each round."""
    bench.clear_stage()
    count = connections_that_fit(bench.plan.idle_connections)
    servers = [bench.new_server(subject, bench.plan.few) for subject in (BROKER, KAFKA_DT)]
    for round_number, server in bench.rounds(f"{count:,} idle connections", servers, warm=False):
        server.start()
        try:
            values = _measure(bench, server, count)
        finally:
            server.stop()
        bench.record(Case("idle", count), server.subject, round_number, values)


def _measure(bench: Bench, server: Server, count: int) -> dict[str, float]:
    credentials = bench.credentials(server, MECHANISM, server.tokens.ids[:TOKENS])

    def job(connections: int) -> Job:
        return Job(
            address=server.address,
            phases=("HOLD",),
            connections=connections,
            mechanism=MECHANISM,
            credentials=credentials,
        )

    with bench.generator.holding(job(FIRST)):
        pass
    time.sleep(IDLE_S)
    before = server.memory()
    with bench.generator.holding(job(count)):
        time.sleep(IDLE_S)
        after = server.memory()
        cpu = server.cpu_seconds()
        time.sleep(IDLE_S)
        idle_share = (server.cpu_seconds() - cpu) / IDLE_S
    return {
        "pss_mib": after.pss_mib,
        "rss_mib": after.rss_mib,
        "connection_kib": (after.pss_mib - before.pss_mib) * 1024 / count,
        "cpu_share": idle_share,
    }
