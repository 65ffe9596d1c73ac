"""Logins with SCRAM-SHA-256 on 16 connections right after a burst of changes, against logins at an idle node.

The burst are creates, then renewals, on 16 connections for as long as 8,000 changes take a node; "changes" says how
many there were. The logins begin when the last change is answered. What a node does in idle time then competes with
them: it derives the credentials of the new tokens, and keys for further sealed changes. A broker makes hundreds of
changes in that time and has no such work, so the node is compared with itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job
from benchmarks.metrics import RATE
from benchmarks.new_tokens import remove_tokens
from benchmarks.results import Case
from benchmarks.scenarios.logins import TOKENS
from benchmarks.servers import KAFKA_DT, Subject

TITLE: Final = "Logins right after many changes"
COMPARED: Final = RATE
AXIS: Final = ""
CONNECTIONS: Final = 16
MECHANISM: Final = "SCRAM-SHA-256"
CASE: Final = Case(MECHANISM, CONNECTIONS)
IDLE: Final = Subject("kafka-dt, idle before", workers=KAFKA_DT.workers, sealed=KAFKA_DT.sealed)
BURST_MS: Final = 3_000
"""Of creates, and as long of renewals."""


def run(bench: Bench) -> None:
    """Measure logins at rest, make the changes, measure logins again."""
    for round_number, server in bench.rounds("logins after changes", bench.stage(bench.plan.few, (KAFKA_DT,))):
        logins = Job(
            address=server.address,
            phases=("LOGIN",),
            connections=CONNECTIONS,
            mechanism=MECHANISM,
            credentials=bench.credentials(server, MECHANISM, server.tokens.ids[:TOKENS]),
        )
        logins = bench.timed(logins, round_number)
        bench.record(CASE, IDLE, round_number, bench.load(server, logins)["LOGIN"])
        burst = Job(address=server.address, phases=("CREATE", "RENEW"), connections=CONNECTIONS, measure_ms=BURST_MS)
        changes = sum(each.count for each in bench.generator.run(burst).values())
        values = bench.load(server, replace(logins, warm_ms=0), rested=False)["LOGIN"]
        bench.record(CASE, server.subject, round_number, {**values, "changes": changes})
        remove_tokens(server.address)
