"""From the start of the process to the first login with a token, which a client tries again and again.

ZooKeeper runs already and holds 1,000, 10,000 or 100,000 tokens (the broker's: up to 10,000), sealed for kafka-dt, as
by default. The cost of a further token is the slope between the smallest and the largest number, in time and memory.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from benchmarks.bench import Bench
from benchmarks.results import Case
from benchmarks.servers import BROKER, KAFKA_DT, START_TIMEOUT_S, UNSEALED, Server, Subject
from benchmarks.statistics import slope
from benchmarks.tokens import password_of
from tests.support.processes.process import ProcessFailed
from tests.support.protocol.raw import ConnectionClosed, LoginRefused, RawConnection

TITLE: Final = "Start to the first login"
COMPARED: Final = "start_s"
AXIS: Final = "to the first login, s"
MECHANISM: Final = "SCRAM-SHA-256"
FURTHER_TOKEN: Final = Case("a further token")
_PAUSE_S: Final = 0.02

Point = tuple[float, float]


def run(bench: Bench) -> None:
    """Start every server with every number of tokens, in turns."""
    bench.clear_stage()
    times: dict[tuple[Subject, int], list[Point]] = {}
    memory: dict[tuple[Subject, int], list[Point]] = {}
    for tokens in bench.plan.sizes:
        subjects = (BROKER, UNSEALED, KAFKA_DT)[tokens > bench.plan.broker_start_size :]
        servers = [bench.new_server(subject, tokens) for subject in subjects]
        _with_zookeepers(servers, start=True)
        try:
            for round_number, server in bench.rounds(f"start with {tokens:,} tokens", servers, warm=False):
                values = _measure(server)
                bench.record(Case("start", tokens=tokens), server.subject, round_number, values)
                key = (server.subject, round_number)
                times.setdefault(key, []).append((tokens, values["start_s"] * 1000))
                memory.setdefault(key, []).append((tokens, values["pss_mib"] * 1024))
        finally:
            _with_zookeepers(servers, start=False)
    for (subject, round_number), points in times.items():
        values = {"token_ms": slope(points), "token_kib": slope(memory[subject, round_number])}
        bench.record(FURTHER_TOKEN, subject, round_number, values)


def _measure(server: Server) -> dict[str, float]:
    begun = time.monotonic()
    process = server.program.process
    process.start()
    try:
        _log_in(server, begun + START_TIMEOUT_S)
        first_login_s = time.monotonic() - begun
        process.wait_for(r"kafka-dt is ready|\[KafkaServer id=\d+\] started", START_TIMEOUT_S)
        ready_s = time.monotonic() - begun
        memory, cpu = server.memory(), server.cpu_seconds()
    finally:
        process.stop()
    return {
        "start_s": first_login_s,
        "ready_s": ready_s,
        "pss_mib": memory.pss_mib,
        "rss_mib": memory.rss_mib,
        "start_cpu_s": cpu,
    }


def _log_in(server: Server, deadline: float) -> None:
    token_id = server.tokens.ids[-1]
    password = password_of(token_id)
    while True:
        try:
            with RawConnection(server.address) as connection:
                connection.login_scram(token_id, password, MECHANISM, token=True)
                return
        except (OSError, ConnectionClosed, LoginRefused):
            if time.monotonic() > deadline or not server.program.process.running:
                raise ProcessFailed(server.program.process.output()[-2000:]) from None
            time.sleep(_PAUSE_S)


def _with_zookeepers(servers: Sequence[Server], *, start: bool) -> None:
    for server in servers:
        if start:
            server.zookeeper.start()
        else:
            server.zookeeper.stop()
