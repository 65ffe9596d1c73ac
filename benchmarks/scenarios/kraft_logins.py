"""Log in with tokens of a Kafka 4 cluster: at the broker, at a node that serves them, and at a node with ZooKeeper.

A hundred tokens in turn, as in the other tables of logins. All three have the tokens' credentials already, and so has
the client. The third is the kafka-dt of the other tables, with as many tokens in its ZooKeeper.
"""

from __future__ import annotations

from typing import Final

from benchmarks.bench import Bench
from benchmarks.credentials import write_credentials
from benchmarks.gateways import Way
from benchmarks.generator import Job
from benchmarks.kraft import load, stage
from benchmarks.metrics import RATE
from benchmarks.new_tokens import create_tokens
from benchmarks.results import Case
from benchmarks.scenarios import logins
from benchmarks.servers import KAFKA_DT, Server
from kafka_dt_protocol.sasl import ScramMechanism

TITLE: Final = "Logins with tokens of a Kafka 4 cluster"
COMPARED: Final = RATE
AXIS: Final = "logins a second"
KIND: Final = logins.Kind(ScramMechanism.SHA_256)
CASES: Final = tuple(Case(KIND.label, connections) for connections in (16, 128))


def run(bench: Bench) -> None:
    """Measure the three in turns."""
    with stage(bench) as ways:
        (with_zookeeper,) = bench.stage(logins.TOKENS, (KAFKA_DT,))
        ids = create_tokens(ways[1].address, logins.TOKENS)
        for case in CASES:
            turns: tuple[Way | Server, ...] = (*ways, with_zookeeper)
            for round_number, turn in bench.rounds(case.label, turns):
                if isinstance(turn, Server):
                    logins.measure(bench, turn, round_number, case.connections, kind=KIND)
                else:
                    bench.record(case, turn.subject, round_number, _measure(bench, turn, round_number, case, ids))


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
