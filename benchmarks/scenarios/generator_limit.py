"""How much load the generator itself can make: the same jobs against a server that answers everything at once.

That server only sends prepared answers of the usual length. If the generator reaches a much higher rate with it than
with a real server, and uses less than a core while it measures one, the generator does not limit the figures.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job
from benchmarks.metrics import GENERATOR, RATE
from benchmarks.results import Case
from benchmarks.servers import Subject
from benchmarks.tokens import token_ids

TITLE: Final = "The load generator alone"
COMPARED: Final = RATE
AXIS: Final = ""
NOBODY: Final = Subject("null server")
MECHANISM: Final = "SCRAM-SHA-256"
_KEY: Final = "A" * 43 + "="
_SALT: Final = "bnVsbA=="


def run(bench: Bench) -> None:
    """Measure changes and logins."""
    credentials = bench.folder / "jobs" / "null.tsv"
    credentials.write_text("".join(f"{each}\t{_SALT}\t4096\t{_KEY}\t{_KEY}\n" for each in token_ids(100)))
    with _null_server(bench) as address:
        for round_number in range(bench.plan.rounds + 1):
            for connections in bench.plan.connections:
                changes = Job(address=address, connections=connections, phases=("CREATE",))
                logins = replace(changes, phases=("LOGIN",), mechanism=MECHANISM, credentials=credentials, trust=True)
                for job in (changes, logins):
                    _measure(bench, round_number, bench.timed(job, round_number))


def _measure(bench: Bench, round_number: int, job: Job) -> None:
    for phase, result in bench.generator.run(job).items():
        values = {
            RATE: result.count / result.seconds,
            "p50_ms": result.p50_us / 1000,
            "p99_ms": result.p99_us / 1000,
            GENERATOR: result.cpu_seconds / result.seconds,
        }
        operation = MECHANISM if phase == "LOGIN" else phase.lower()
        bench.record(Case(operation, job.connections), NOBODY, round_number, values)


@contextmanager
def _null_server(bench: Bench) -> Iterator[str]:
    command = bench.kit.java.command("load.NullServer", classpath=[bench.kit.classes], flags=("-XX:+UseSerialGC",))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield f"127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()
            process.wait(30)
