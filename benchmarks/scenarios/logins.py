"""Connect, log in, close, with a hundred tokens in turn: SCRAM-SHA-256, SCRAM-SHA-512, PLAIN, and SCRAM over TLS 1.3.

A login is what a Java client does: ApiVersions, SaslHandshake, SaslAuthenticate once or twice. Both servers have the
tokens' credentials already, and so has the client. Over TLS each connection makes a full handshake (RSA with 2048
bits). In the rows with "resumed" each connection instead offers the session ticket that the last one got (RFC 8446,
section 2.2). A column shows how many were accepted: each network thread of a broker takes its own tickets only, while
the workers of kafka-dt take those of one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
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


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to log in."""

    mechanism: str
    tls: bool = False
    resume: bool = False
    """Whether a connection resumes the TLS session of the one before it."""

    @property
    def label(self) -> str:
        """It in words."""
        return f"{self.mechanism}{' over TLS' * self.tls}{', resumed' * self.resume}"


PLAIN: Final = Kind("PLAIN")
OVER_TLS: Final = tuple(
    Kind(mechanism, tls=True, resume=resume)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    for resume in (False, True)
)
KINDS: Final = (Kind("SCRAM-SHA-256"), Kind("SCRAM-SHA-512"), PLAIN, *OVER_TLS)


def run(bench: Bench) -> None:
    """Measure every kind on every number of connections but 1."""
    servers = bench.stage(bench.plan.few, (BROKER, KAFKA_DT))
    for kind in KINDS:
        for connections in bench.plan.several_connections:
            for round_number, server in bench.rounds(f"{kind.label} on {connections} connections", servers):
                measure(bench, server, round_number, connections, kind=kind)


def measure(
    bench: Bench,
    server: Server,
    round_number: int,
    connections: int,
    *,
    kind: Kind,
    tokens: int = 0,
) -> None:
    """Do one turn; `tokens` is for the cases' labels."""
    job = Job(
        address=server.tls_address if kind.tls else server.address,
        tls=kind.tls,
        resume=kind.resume,
        phases=("LOGIN",),
        connections=connections,
        mechanism=kind.mechanism,
        credentials=_credentials(bench, server, kind.mechanism),
    )
    values = bench.load(server, bench.timed(job, round_number))["LOGIN"]
    bench.record(Case(kind.label, connections, tokens), server.subject, round_number, values)


def _credentials(bench: Bench, server: Server, mechanism: str) -> Path | None:
    return None if mechanism == "PLAIN" else bench.credentials(server, mechanism, server.tokens.ids[:TOKENS])
