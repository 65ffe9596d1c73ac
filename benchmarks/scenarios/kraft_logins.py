"""Log in with tokens of a Kafka 4 cluster, at the broker and at a gateway; beside a gateway with tokens of its own.

A hundred tokens in turn, as in the other tables of logins. All have the tokens' credentials already, and so has the
client. Both gateways are in front of the broker; they differ in where their tokens are.
"""

from __future__ import annotations

from typing import Final

from benchmarks.bench import Bench
from benchmarks.credentials import write_credentials
from benchmarks.gateways import Way
from benchmarks.generator import Job
from benchmarks.kraft import UPSTREAM_STORE, ZOOKEEPER_STORE, load, stage
from benchmarks.metrics import RATE
from benchmarks.new_tokens import create_tokens
from benchmarks.results import Case
from benchmarks.scenarios import logins
from benchmarks.servers import BROKER
from kafka_dt_protocol.sasl import ScramMechanism

TITLE: Final = "Logins with tokens of a Kafka 4 cluster"
COMPARED: Final = RATE
AXIS: Final = "logins a second"
KIND: Final = logins.Kind(ScramMechanism.SHA_256)
CASES: Final = tuple(Case(KIND.label, connections) for connections in (16, 128))


def run(bench: Bench) -> None:
    """Measure the three in turns."""
    with stage(bench, UPSTREAM_STORE, ZOOKEEPER_STORE) as ways:
        ids = {way.subject: create_tokens(way.address, logins.TOKENS) for way in ways[1:]}
        ids[BROKER] = ids[UPSTREAM_STORE]
        for case in CASES:
            for round_number, way in bench.rounds(case.label, ways):
                values = _measure(bench, way, round_number, case, ids[way.subject])
                bench.record(case, way.subject, round_number, values)


def _measure(bench: Bench, way: Way, round_number: int, case: Case, ids: list[str]) -> dict[str, float]:
    bench.rest()  # the broker may still derive the credentials of new tokens
    path = bench.folder / "jobs" / "credentials.tsv"
    credentials = write_credentials(path, bench.generator, (way.address, KIND.mechanism), ids, {})
    job = Job(
        address=way.address,
        phases=("LOGIN",),
        connections=case.connections,
        mechanism=KIND.mechanism,
        credentials=credentials,
    )
    return load(bench, way, job, round_number)
