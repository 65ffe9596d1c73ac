"""Memory with 11,000 tokens after a start, after work, of a further worker, and of a broker with a small heap.

The work is the warm-up of the other scenarios: changes, logins with every mechanism, and a few describes. A broker's
start script gives it 1 GiB of heap, and it uses all of it; so the table also has a broker with 256 MiB. What a further
worker takes is half of the difference between four workers and two, after work.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from benchmarks.bench import Bench
from benchmarks.generator import Job
from benchmarks.metrics import PSS
from benchmarks.results import Case
from benchmarks.servers import BROKER, KAFKA_DT, SMALL_BROKER, Server, Subject
from benchmarks.tokens import OWNERS

TITLE: Final = "Memory"
COMPARED: Final = PSS
AXIS: Final = "PSS, MiB"
CONNECTIONS: Final = 16
OWNER: Final = "ten"
MORE_WORKERS: Final = Subject("kafka-dt, 4 workers", workers=4, sealed=True)
FURTHER_WORKER: Final = "a further worker"


def run(bench: Bench) -> None:
    """Start each server anew in each round, look, let it work, look again."""
    bench.clear_stage()
    tokens = bench.plan.memory_tokens
    servers = [bench.new_server(subject, tokens) for subject in (BROKER, SMALL_BROKER, KAFKA_DT, MORE_WORKERS)]
    worked: dict[tuple[Subject, int], dict[str, float]] = {}
    for round_number, server in bench.rounds(f"memory with {tokens:,} tokens", servers, warm=False):
        server.start()
        try:
            _note(bench, server, round_number, Case("after the start", tokens=tokens))
            _work(bench, server)
            worked[server.subject, round_number] = _note(bench, server, round_number, Case("after work", tokens=tokens))
        finally:
            server.stop()
    more = MORE_WORKERS.workers - KAFKA_DT.workers
    for (_, round_number), few in [(key, values) for key, values in worked.items() if key[0] == KAFKA_DT]:
        many = worked[MORE_WORKERS, round_number]
        values = {name: (many[name] - few[name]) / more for name in few}
        bench.record(Case(FURTHER_WORKER, tokens=tokens), KAFKA_DT, round_number, values)


def _work(bench: Bench, server: Server) -> None:
    plan = bench.plan
    changes = Job(
        address=server.address,
        phases=("CREATE", "RENEW", "EXPIRE"),
        connections=CONNECTIONS,
        measure_ms=plan.measure_ms,
    )
    bench.generator.run(changes)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        credentials = bench.credentials(server, mechanism, server.tokens.ids[:100])
        bench.generator.run(replace(changes, phases=("LOGIN",), mechanism=mechanism, credentials=credentials))
    bench.generator.run(replace(changes, phases=("DESCRIBE",), user=OWNER, owner=OWNER, expected=OWNERS[OWNER]))


def _note(bench: Bench, server: Server, round_number: int, case: Case) -> dict[str, float]:
    memory = server.memory()
    values = {PSS: memory.pss_mib, "rss_mib": memory.rss_mib}
    bench.record(case, server.subject, round_number, values)
    return values
