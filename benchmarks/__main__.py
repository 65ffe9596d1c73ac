"""`python -m benchmarks`, which `make bench` runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from benchmarks import machine
from benchmarks.bench import QUICK, Bench, Plan
from benchmarks.gateways import kafka_proxy_version
from benchmarks.generator import LoadFailed, LoadGenerator, compile_load
from benchmarks.page import write_page
from benchmarks.results import LATEST, REFERENCE, Results, ScenarioResults
from benchmarks.scenarios import SCENARIOS, Scenario
from benchmarks.servers import Kit
from benchmarks.tables import terminal_table
from benchmarks.tls import write_key_store
from tests.support.java import find_java
from tests.support.maven import KAFKA_39, resolve
from tests.support.process import ProcessFailed

ROOT: Final = Path(__file__).parents[1]
WORK: Final = ROOT / "build" / "benchmarks"


@click.command()
@click.option("--only", default=",".join(SCENARIOS), help="Names of scenarios, separated by commas.")
@click.option("--quick", is_flag=True, help="Two short rounds: whether everything works, not how fast it is.")
@click.option("--rounds", type=click.IntRange(1), help="How often each server has its turn.")
@click.option("--reference", is_flag=True, help="Bring the committed results and docs/performance.md up to date.")
@click.option("--render", is_flag=True, help="Measure nothing; make docs/performance.md of the committed results.")
@click.option("--directory", type=click.Path(path_type=Path), default=WORK, help="On the disk that is measured.")
def main(*, only: str, quick: bool, rounds: int | None, reference: bool, render: bool, directory: Path) -> None:
    """Measure kafka-dt beside a real Kafka broker."""
    console = Console(highlight=False)
    if render:
        write_page(Results.load(REFERENCE))
        return
    names = [name.strip() for name in only.split(",")]
    if unknown := [name for name in names if name not in SCENARIOS]:
        raise click.UsageError(f"unknown: {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    if quick and reference:
        raise click.UsageError("--quick says whether everything works, not how fast it is: that is no reference")
    plan = QUICK if quick else Plan()
    chosen = [SCENARIOS[name] for name in SCENARIOS if name in names]
    measured, failures = run(chosen, plan.with_rounds(rounds), directory, console)
    console.print(f"stored in {LATEST}")
    if reference:
        results = Results.load(REFERENCE)
        results.merge(measured)
        results.save(REFERENCE)
        write_page(results)
    if failures:
        raise click.ClickException(f"worth nothing: {', '.join(failures)}")


def run(scenarios: Sequence[Scenario], plan: Plan, directory: Path, console: Console) -> tuple[Results, Sequence[str]]:
    """Run scenarios one after the other; each is printed and stored when it is done.

    Returns:
        The results, and the names of the scenarios that failed.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    java = find_java()
    classes = compile_load(java, directory / "classes")
    kit = Kit(java, resolve(KAFKA_39, java, console.print), write_key_store(directory / "server.pem"), classes)
    about = machine.describe(directory, java, ROOT)
    about |= {"rounds": plan.rounds, "kafka_proxy": kafka_proxy_version()}
    measured, failures = Results(), []
    with LoadGenerator(java, classes, directory / "jobs") as generator:
        bench = Bench(kit, plan, generator, directory, console)
        try:
            for scenario in scenarios:
                try:
                    scenario.run(bench)
                except (LoadFailed, ProcessFailed) as failure:
                    console.print(f"[red]{scenario.name} failed:[/red] {failure}", markup=True)
                    failures.append(scenario.name)
                    bench.take_measurements()
                    continue
                measured.scenarios[scenario.name] = ScenarioResults(about, bench.take_measurements())
                measured.save(LATEST)
                console.print(terminal_table(scenario, measured.scenarios[scenario.name]))
        finally:
            bench.clear_stage()
    return measured, failures


if __name__ == "__main__":
    main()
