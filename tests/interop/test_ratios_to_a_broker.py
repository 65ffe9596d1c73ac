"""A short look at the ratios of the benchmarks: is kafka-dt still about as fast, beside a real broker, as it was?

No time is judged, only what kafka-dt and the broker did in turns on this machine a moment ago. The margins are wide,
several times what `docs/performance.md` shows, because two rounds of a second on a busy machine tell little; what they
catch is a change that costs a multiple. `make bench` measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest
from rich.console import Console

from benchmarks.bench import Bench, Plan
from benchmarks.generator import LoadGenerator, compile_load
from benchmarks.metrics import PSS, RATE, SERVER_CPU
from benchmarks.results import ScenarioResults
from benchmarks.scenarios import changes, logins
from benchmarks.servers import BROKER, KAFKA_DT, Kit
from benchmarks.statistics import ratios
from benchmarks.tls import write_key_store
from tests.interop.conftest import unavailable
from tests.support.java import Java
from tests.support.maven import KAFKA_39, Bundle, Classpath

CONNECTIONS: Final = 16
SHORT: Final = Plan(rounds=2, first_warm_ms=2_000, warm_ms=200, measure_ms=1_000, sizes=(500,))


@pytest.fixture(scope="module")
def measured(
    java: Java, classpath_of: Callable[[Bundle], Classpath], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ScenarioResults]:
    """Two rounds of changes and of logins, broker and kafka-dt in turns."""
    if not java.has_compiler:
        unavailable(f"{java.executable} has no compiler")
    folder = tmp_path_factory.mktemp("bench")
    classes = compile_load(java, folder / "classes")
    kit = Kit(java, classpath_of(KAFKA_39), write_key_store(folder / "server.pem"), classes)
    with LoadGenerator(java, classes, folder / "jobs") as generator:
        bench = Bench(kit, SHORT, generator, folder, Console(quiet=True))
        try:
            servers = bench.stage(SHORT.few, (BROKER, KAFKA_DT))
            for round_number, server in bench.rounds("changes", servers):
                changes.measure(bench, server, round_number, CONNECTIONS)
            for round_number, server in bench.rounds("logins", servers):
                logins.measure(bench, server, round_number, CONNECTIONS, mechanism="SCRAM-SHA-256")
            yield ScenarioResults({}, bench.take_measurements())
        finally:
            bench.clear_stage()


def ratio(measured: ScenarioResults, operation: str, metric: str) -> float:
    (case,) = {each.case for each in measured.measurements if each.case.operation == operation}
    found = ratios(*(measured.by_round(case, subject.name, metric) for subject in (KAFKA_DT, BROKER)))
    assert found is not None
    return found.median


@pytest.mark.parametrize("operation", ["create", "renew"])
def test_changes_are_made_several_times_as_fast(measured: ScenarioResults, operation: str) -> None:
    assert ratio(measured, operation, RATE) > 3


def test_logins_by_token_are_not_much_slower(measured: ScenarioResults) -> None:
    assert ratio(measured, "SCRAM-SHA-256", RATE) > 0.25
    assert ratio(measured, "SCRAM-SHA-256", SERVER_CPU) < 5


def test_half_the_memory_is_enough(measured: ScenarioResults) -> None:
    assert ratio(measured, "SCRAM-SHA-256", PSS) < 0.5
