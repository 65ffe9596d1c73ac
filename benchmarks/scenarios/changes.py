"""Create tokens, renew them, remove them, on 1, 16 and 128 connections that have logged in with PLAIN.

Each connection sends a request when it has the answer to the last one. It then renews the created tokens again and
again, and deletes them in the end (expire with a negative period), so the number of tokens stays the same. kafka-dt
seals tokens by default; a broker does not, so the table also has kafka-dt without sealing.
"""

from __future__ import annotations

from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job
from benchmarks.metrics import RATE
from benchmarks.results import Case
from benchmarks.servers import BROKER, KAFKA_DT, UNSEALED, Server

TITLE: Final = "Create, renew, expire"
COMPARED: Final = RATE
AXIS: Final = "changes a second"
PHASES: Final = ("CREATE", "RENEW", "EXPIRE")


def run(bench: Bench) -> None:
    """Measure the three on every number of connections."""
    servers = bench.stage(bench.plan.few, (BROKER, KAFKA_DT, UNSEALED))
    for connections in bench.plan.connections:
        for round_number, server in bench.rounds(f"changes on {connections} connections", servers):
            measure(bench, server, round_number, connections)


def measure(bench: Bench, server: Server, round_number: int, connections: int, tokens: int = 0) -> None:
    """Do one turn; `tokens` is for the cases' labels."""
    job = Job(address=server.address, phases=PHASES, connections=connections)
    for phase, values in bench.load(server, bench.timed(job, round_number)).items():
        bench.record(Case(phase.lower(), connections, tokens), server.subject, round_number, values)
