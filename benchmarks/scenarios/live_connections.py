"""A thousand new logins a second, beside 10,000 connections that log in again every ten minutes (KIP-368).

All use SCRAM-SHA-256 and a hundred tokens. One generator logs in on the connections that stay (fewer where the limit of
file descriptors allows no more, the row says how many), and then again on 17 of them a second, in turn. A second
generator begins a new login every millisecond, whatever the server does. A latency counts from the time at which its
login was due.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from benchmarks.bench import Bench, Values
from benchmarks.generator import Job, LoadGenerator
from benchmarks.machine import connections_that_fit
from benchmarks.metrics import RATE
from benchmarks.results import Case
from benchmarks.scenarios import logins
from benchmarks.servers import BROKER, KAFKA_DT, Server

TITLE: Final = "Logins beside live connections"
COMPARED: Final = "p99_ms"
AXIS: Final = "p99, ms"
LIVE: Final = 10_000
INTERVAL_S: Final = 600
"""Between two logins of a connection that stays."""
LOGINS_PER_SECOND: Final = 1_000
AT_ONCE: Final = 128
"""How many new connections there are at most."""
MECHANISM: Final = "SCRAM-SHA-256"
_LENGTH: Final = 4
"""How many times as long as elsewhere one measurement takes, because only the slowest logins matter."""


def login_beside(live: int) -> Case:
    """Name the new logins by the number of connections that stay."""
    return Case(f"{LOGINS_PER_SECOND:,} logins a second beside {live:,} connections")


def run(bench: Bench) -> None:
    """Hold the connections, and measure new logins meanwhile."""
    live = connections_that_fit(LIVE)
    servers = bench.stage(bench.plan.few, (BROKER, KAFKA_DT))
    with bench.another_generator() as other:
        for round_number, server in bench.rounds(f"logins beside {live:,} connections", servers):
            new, again = _measure(bench, other, server, round_number, live)
            bench.record(login_beside(live), server.subject, round_number, new)
            bench.record(Case(f"re-authentication of the {live:,} connections"), server.subject, round_number, again)


def _measure(bench: Bench, other: LoadGenerator, server: Server, round_number: int, live: int) -> tuple[Values, Values]:
    new = Job(
        address=server.address,
        phases=("LOGIN",),
        connections=AT_ONCE,
        mechanism=MECHANISM,
        credentials=bench.credentials(server, MECHANISM, server.tokens.ids[: logins.TOKENS]),
        rate=LOGINS_PER_SECOND,
    )
    new = bench.timed(new, round_number)
    held = replace(new, phases=("HOLD",), connections=live, rate=live / INTERVAL_S)
    with other.holding(held) as results:
        values = bench.load(server, replace(new, measure_ms=_LENGTH * new.measure_ms))["LOGIN"]
    (again,) = results
    return values, {RATE: again.count / again.seconds, "p50_ms": again.p50_us / 1000, "p99_ms": again.p99_us / 1000}
