"""What tokens and connections cost kafka-dt: from 1,000 tokens to a million, and from 10 connections to 10,000.

With more tokens: the CPU time of a start until every worker serves and the memory after it, then changes and logins
(SCRAM-SHA-256) on 16 connections, and a describe of 10 tokens. The tokens are not sealed; how much longer a start with
sealed ones takes is under "Start". With more connections: the memory, and logins on 16 further connections. The others
have logged in with a token and say nothing meanwhile.

The picture shows how many times as much each takes as with the fewest tokens, or connections. No line is to be steeper
than the dashed one, along which ten times as many cost ten times as much.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job
from benchmarks.machine import connections_that_fit
from benchmarks.metrics import CPU, PSS, SERVER_CPU
from benchmarks.results import Case
from benchmarks.scenarios import changes, describe, logins
from benchmarks.servers import KAFKA_DT, UNSEALED

TITLE: Final = "Growth with tokens and with connections"
COMPARED: Final = SERVER_CPU
AXIS: Final = ""
CONNECTIONS: Final = 16
OWNER: Final = "ten"
START: Final = "start"
DESCRIBE: Final = "describe 10"
BESIDE: Final = "logins beside them"
LOGIN: Final = logins.KINDS[0]
LINES: Final = {
    "tokens": {
        "CPU of a start": (START, CPU),
        "memory": (START, PSS),
        "CPU of a create": ("create", SERVER_CPU),
        "CPU of a login": (LOGIN.label, SERVER_CPU),
        "CPU of a describe": (DESCRIBE, SERVER_CPU),
    },
    "connections": {"memory": (BESIDE, PSS), "CPU of a login": (BESIDE, SERVER_CPU)},
}
"""By what a line is drawn over: its name, and what it shows."""


def run(bench: Bench) -> None:
    """Measure with more and more tokens, then with more and more connections."""
    bench.clear_stage()
    for tokens in bench.plan.grown_tokens:
        _with_tokens(bench, tokens)
    _with_connections(bench)


def _with_tokens(bench: Bench, tokens: int) -> None:
    servers = bench.stage(tokens, (UNSEALED,))
    memory = servers[0].memory()
    started = {CPU: servers[0].cpu_seconds(), PSS: memory.pss_mib, "rss_mib": memory.rss_mib}
    bench.record(Case(START, tokens=tokens), UNSEALED, 1, started)
    for round_number, server in bench.rounds(f"changes and logins with {tokens:,} tokens", servers):
        changes.measure(bench, server, round_number, CONNECTIONS, tokens)
        logins.measure(bench, server, round_number, CONNECTIONS, kind=LOGIN, tokens=tokens)
        describe.measure(bench, server, round_number, owner=OWNER, user=OWNER, case=Case(DESCRIBE, tokens=tokens))


def _with_connections(bench: Bench) -> None:
    servers = bench.stage(bench.plan.few, (KAFKA_DT,))
    with bench.another_generator() as other:
        for wanted in bench.plan.grown_connections:
            count = connections_that_fit(wanted)
            for round_number, server in bench.rounds(f"logins beside {count:,} connections", servers):
                job = Job(
                    address=server.address,
                    phases=("LOGIN",),
                    connections=CONNECTIONS,
                    mechanism=LOGIN.mechanism,
                    credentials=bench.credentials(server, LOGIN.mechanism, server.tokens.ids[: logins.TOKENS]),
                )
                with other.holding(replace(job, phases=("HOLD",), connections=count)):
                    values = bench.load(server, bench.timed(job, round_number))["LOGIN"]
                bench.record(Case(BESIDE, count), server.subject, round_number, values)
