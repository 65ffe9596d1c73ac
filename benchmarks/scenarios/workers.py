"""What logins and creates cost a node with 1, 2, 4 and 8 workers, on 16 connections for each worker.

With more workers than cores the rate says nothing, but the processor time of an operation does: a login is the work of
one worker, while every worker hears of each change. The tokens are sealed.
"""

from __future__ import annotations

from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job
from benchmarks.metrics import SERVER_CPU
from benchmarks.results import Case
from benchmarks.scenarios.logins import TOKENS
from benchmarks.servers import Subject

TITLE: Final = "Cost of further workers"
COMPARED: Final = SERVER_CPU
AXIS: Final = "ms of server CPU an operation"
MECHANISM: Final = "SCRAM-SHA-256"
CONNECTIONS_EACH: Final = 16
LOGIN: Final = Case(MECHANISM)
CREATE: Final = Case("create")
SUBJECTS: Final = tuple(
    Subject(f"{workers} worker{'s'[: workers != 1]}", workers=workers, sealed=True) for workers in (1, 2, 4, 8)
)


def run(bench: Bench) -> None:
    """Measure logins, then creates; the created tokens are removed."""
    for round_number, server in bench.rounds("workers", bench.stage(bench.plan.few, SUBJECTS)):
        connections = CONNECTIONS_EACH * server.subject.workers
        credentials = bench.credentials(server, MECHANISM, server.tokens.ids[:TOKENS])
        logins = Job(
            address=server.address,
            phases=("LOGIN",),
            connections=connections,
            mechanism=MECHANISM,
            credentials=credentials,
        )
        values = bench.load(server, bench.timed(logins, round_number))["LOGIN"]
        bench.record(LOGIN, server.subject, round_number, values)
        changes = Job(address=server.address, phases=("CREATE", "EXPIRE"), connections=connections)
        values = bench.load(server, bench.timed(changes, round_number))["CREATE"]
        bench.record(CREATE, server.subject, round_number, values)
