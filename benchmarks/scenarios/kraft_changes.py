"""Create and renew tokens of a Kafka 4 cluster on 16 connections, at the broker and through a node that serves them.

Clients log in with PLAIN, at the node as well. The broker is the controller, too. Each connection sends a request when
it has the answer to the last one. The tokens that are renewed were created before: a controller finds a new token only
when its own image has it. Each measurement begins when the images have caught up.
"""

from __future__ import annotations

from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job
from benchmarks.kraft import UPSTREAM_STORE, load, stage, write_hmacs
from benchmarks.metrics import RATE
from benchmarks.new_tokens import create_tokens
from benchmarks.results import Case

TITLE: Final = "Create and renew tokens of a Kafka 4 cluster"
COMPARED: Final = RATE
AXIS: Final = "changes a second"
CONNECTIONS: Final = 16
RENEWED: Final = 64
CREATE: Final = Case("create", CONNECTIONS)
RENEW: Final = Case("renew", CONNECTIONS)
CASES: Final = (CREATE, RENEW)


def run(bench: Bench) -> None:
    """Measure both ways in turns."""
    with stage(bench, UPSTREAM_STORE) as ways:
        hmacs = write_hmacs(bench.folder / "jobs" / "renewed", create_tokens(ways[1].address, RENEWED))
        for case, job in (
            (RENEW, Job(address="", phases=("RENEW",), connections=CONNECTIONS, renewed=hmacs)),
            (CREATE, Job(address="", phases=("CREATE",), connections=CONNECTIONS)),
        ):
            for round_number, way in bench.rounds(case.label, ways):
                bench.record(case, way.subject, round_number, load(bench, way, job, round_number))
