"""Log in with 100,000 different tokens, each of them once, with SCRAM-SHA-256 on 16 connections.

A broker derives their credentials when it starts. kafka-dt derives the credential of a token at its first login, and
this scenario measures that. Every round takes unused tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job
from benchmarks.metrics import RATE
from benchmarks.results import Case
from benchmarks.servers import BROKER, KAFKA_DT, Server

TITLE: Final = "Logins with cold credentials"
COMPARED: Final = RATE
AXIS: Final = "logins a second"
CONNECTIONS: Final = 16
MECHANISM: Final = "SCRAM-SHA-256"


def run(bench: Bench) -> None:
    """Ask for the salts of all tokens, start kafka-dt again so that it has forgotten them, and use each token once."""
    servers = bench.stage(bench.plan.many, (BROKER, KAFKA_DT))
    ids = servers[0].tokens.ids
    with bench.console.status(f"deriving the clients' keys of {len(ids):,} tokens for each server"):
        parts = {server.subject: _parts(bench, server, ids) for server in servers}
    for server in servers:
        if not server.subject.is_broker:
            server.program.stop()
            server.program.start()
    for round_number, server in bench.rounds("cold logins", servers):
        job = Job(
            address=server.address,
            phases=("LOGIN",),
            connections=CONNECTIONS,
            mechanism=MECHANISM,
            credentials=parts[server.subject][round_number],
            once=True,
            warm_ms=bench.plan.warm_ms,
            measure_ms=2 * bench.plan.measure_ms,
        )
        values = bench.load(server, job)["LOGIN"]
        bench.record(Case(MECHANISM, CONNECTIONS, len(ids)), server.subject, round_number, values)


def _parts(bench: Bench, server: Server, ids: Sequence[str]) -> list[Path]:
    """Write a file of credentials for each round, the warm-up included."""
    whole = bench.credentials(server, MECHANISM, ids)
    lines = whole.read_text().splitlines(keepends=True)
    share = len(lines) // (bench.plan.rounds + 1)
    parts = []
    for number in range(bench.plan.rounds + 1):
        part = whole.with_name(f"cold-{server.subject.name}-{number}.tsv")
        part.write_text("".join(lines[share * number : share * (number + 1)]))
        parts.append(part)
    return parts
