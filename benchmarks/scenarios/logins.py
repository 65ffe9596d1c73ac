"""Connect, log in, close, with a hundred tokens in turn: SCRAM-SHA-256, SCRAM-SHA-512, PLAIN, and over TLS.

A login is what a Java client does: ApiVersions, SaslHandshake, SaslAuthenticate once or twice. Both servers have the
tokens' credentials already, and so has the client. Over TLS each connection makes a full handshake (TLS 1.3, RSA with
2048 bits).
"""

from __future__ import annotations

from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job
from benchmarks.metrics import RATE
from benchmarks.results import Case
from benchmarks.servers import BROKER, KAFKA_DT, Server

TITLE: Final = "Logins with warm credentials"
COMPARED: Final = RATE
AXIS: Final = "logins a second"
TOKENS: Final = 100
KINDS: Final = (("SCRAM-SHA-256", False), ("SCRAM-SHA-512", False), ("PLAIN", False), ("SCRAM-SHA-256", True))
"""Mechanism, and whether over TLS."""


def run(bench: Bench) -> None:
    """Measure every kind on every number of connections but 1."""
    servers = bench.stage(bench.plan.few, (BROKER, KAFKA_DT))
    for mechanism, tls in KINDS:
        for connections in bench.plan.connections:
            if connections == 1:
                continue
            for round_number, server in bench.rounds(f"{mechanism} on {connections} connections", servers):
                measure(bench, server, round_number, connections, mechanism=mechanism, tls=tls)


def measure(
    bench: Bench,
    server: Server,
    round_number: int,
    connections: int,
    *,
    mechanism: str,
    tls: bool = False,
    tokens: int = 0,
) -> None:
    """Do one turn; `tokens` is for the cases' labels."""
    job = Job(
        address=server.tls_address if tls else server.address,
        tls=tls,
        phases=("LOGIN",),
        connections=connections,
        mechanism=mechanism,
        credentials=None if mechanism == "PLAIN" else bench.credentials(server, mechanism, server.tokens.ids[:TOKENS]),
    )
    values = bench.load(server, bench.timed(job, round_number))["LOGIN"]
    operation = f"{mechanism} over TLS" if tls else mechanism
    bench.record(Case(operation, connections, tokens), server.subject, round_number, values)
