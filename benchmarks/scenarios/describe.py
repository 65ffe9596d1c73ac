"""Describe 10, 1,000 and 10,000 tokens out of 100,000 on one connection, as their owner and as an auditor.

An ACL allows the auditor to see them: DESCRIBE_TOKENS on the owner. The generator reads the whole answer, but does not
decode it.
"""

from __future__ import annotations

from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job
from benchmarks.results import Case
from benchmarks.servers import BROKER, KAFKA_DT, Server
from benchmarks.tokens import AUDITOR, OWNERS, owners_of

TITLE: Final = "Describe"
COMPARED: Final = "p50_ms"
AXIS: Final = "median, ms"


def run(bench: Bench) -> None:
    """Measure every owner that has tokens, seen by itself and by the auditor."""
    many = bench.plan.many
    present = set(owners_of(many))
    for owner, count in OWNERS.items():
        if owner not in present:
            continue
        for user, how in ((owner, "own"), (AUDITOR, "by ACL")):
            case = Case(f"{count:,} {how}")
            servers = bench.stage(many, (BROKER, KAFKA_DT))
            for round_number, server in bench.rounds(f"describe {count:,} {how}", servers):
                measure(bench, server, round_number, owner=owner, user=user, case=case)


def measure(bench: Bench, server: Server, round_number: int, *, owner: str, user: str, case: Case) -> None:
    """Do one turn."""
    job = Job(
        address=server.address,
        phases=("DESCRIBE",),
        user=user,
        owner=owner,
        expected=OWNERS[owner],
    )
    values = bench.load(server, bench.timed(job, round_number))["DESCRIBE"]
    bench.record(case, server.subject, round_number, values)
