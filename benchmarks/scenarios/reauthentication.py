"""Log in again on connections that stay (KIP-368), with SCRAM-SHA-256 and SCRAM-SHA-512, 16 and 128 at a time.

A server accepts this once a second on a connection. So each job first logs in on 16,000 connections (fewer where the
limit of file descriptors allows no more), and then takes these in turn: SaslHandshake and SaslAuthenticate twice, as a
Java client does. A connection rests for more than a second after each time. If no connection has rested long enough,
the measurement fails, because the rate would be that of the connections and not that of the server.
"""

from __future__ import annotations

from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job
from benchmarks.machine import connections_that_fit
from benchmarks.metrics import RATE
from benchmarks.results import Case
from benchmarks.scenarios import logins
from benchmarks.servers import BROKER, KAFKA_DT, Server

TITLE: Final = "Re-authentication"
COMPARED: Final = RATE
AXIS: Final = "re-authentications a second"
MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def case_of(mechanism: str, at_once: int) -> Case:
    """Name a case by its mechanism, and by how many connections log in again at a time."""
    return Case(f"{mechanism}, {at_once} at a time")


def run(bench: Bench) -> None:
    """Measure both mechanisms with every number of connections but 1."""
    servers = bench.stage(bench.plan.few, (BROKER, KAFKA_DT))
    for mechanism in MECHANISMS:
        for at_once in bench.plan.several_connections:
            for round_number, server in bench.rounds(f"{mechanism} again, {at_once} at a time", servers):
                values = _measure(bench, server, round_number, mechanism=mechanism, at_once=at_once)
                bench.record(case_of(mechanism, at_once), server.subject, round_number, values)


def _measure(bench: Bench, server: Server, round_number: int, *, mechanism: str, at_once: int) -> dict[str, float]:
    job = Job(
        address=server.address,
        phases=("REAUTHENTICATE",),
        connections=connections_that_fit(bench.plan.live_connections),
        at_once=at_once,
        mechanism=mechanism,
        credentials=bench.credentials(server, mechanism, server.tokens.ids[: logins.TOKENS]),
    )
    return bench.load(server, bench.timed(job, round_number))["REAUTHENTICATE"]
