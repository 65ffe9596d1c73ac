"""Logins with SCRAM-SHA-256 at nodes without audit events, with events in files, and with strict events in files.

In strict mode a node answers a login when its event is synced to the disk, so a slow disk makes the difference larger.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from benchmarks.bench import Bench
from benchmarks.metrics import RATE
from benchmarks.results import Case
from benchmarks.scenarios import logins
from benchmarks.servers import KAFKA_DT

TITLE: Final = "Logins with audit events"
COMPARED: Final = RATE
AXIS: Final = ""
KIND: Final = logins.Kind("SCRAM-SHA-256")
BUFFERED: Final = replace(KAFKA_DT, name="kafka-dt, audit", audit="buffered")
STRICT: Final = replace(KAFKA_DT, name="kafka-dt, strict audit", audit="strict")


def case_of(connections: int) -> Case:
    """Name a case by its number of connections."""
    return Case(KIND.label, connections)


def run(bench: Bench) -> None:
    """Measure the three nodes on every number of connections but 1."""
    servers = bench.stage(bench.plan.few, (KAFKA_DT, BUFFERED, STRICT))
    for connections in bench.plan.several_connections:
        for round_number, server in bench.rounds(f"logins with audit on {connections} connections", servers):
            logins.measure(bench, server, round_number, connections, kind=KIND)
