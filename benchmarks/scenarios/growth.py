"""The same work with 1,000, 10,000 and 100,000 tokens in store, and with one worker and two.

Changes and logins (SCRAM-SHA-256) are on 16 connections. The broker is there for comparison.
"""

from __future__ import annotations

from typing import Final

from benchmarks.bench import Bench
from benchmarks.metrics import RATE
from benchmarks.results import Case
from benchmarks.scenarios import changes, describe, logins
from benchmarks.servers import BROKER, KAFKA_DT, ONE_WORKER
from benchmarks.tokens import owners_of

TITLE: Final = "Growth with tokens and with workers"
COMPARED: Final = RATE
AXIS: Final = "operations a second"
CONNECTIONS: Final = 16
OWNER: Final = "ten"


def run(bench: Bench) -> None:
    """Measure changes, logins and a small describe with each number of tokens."""
    for tokens in bench.plan.sizes:
        servers = bench.stage(tokens, (BROKER, KAFKA_DT, ONE_WORKER))
        for round_number, server in bench.rounds(f"changes with {tokens:,} tokens", servers):
            changes.measure(bench, server, round_number, CONNECTIONS, tokens)
        for round_number, server in bench.rounds(f"logins with {tokens:,} tokens", servers):
            logins.measure(bench, server, round_number, CONNECTIONS, kind=logins.KINDS[0], tokens=tokens)
        if OWNER in owners_of(tokens):
            for round_number, server in bench.rounds(f"describe with {tokens:,} tokens", servers):
                case = Case("describe 10", tokens=tokens)
                describe.measure(bench, server, round_number, owner=OWNER, user=OWNER, case=case)
