"""`python -m benchmarks`, which `make bench` runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from benchmarks import machine
from benchmarks.bench import Bench
from benchmarks.gateways import kafka_proxy_version
from benchmarks.generator import LoadFailed, LoadGenerator, compile_load
from benchmarks.ledger import Ledger
from benchmarks.page import write_pages
from benchmarks.plan import QUICK, Plan
from benchmarks.results import LATEST, REFERENCE, Results, ScenarioResults
from benchmarks.scenarios import SCENARIOS, Scenario
from benchmarks.servers import Kit
from benchmarks.tables import terminal_table, terminal_targets
from benchmarks.tls import write_key_store
from tests.support.java.jvm import Java, find_java
from tests.support.java.maven import KAFKA_39, resolve
from tests.support.processes.process import ProcessFailed

ROOT: Final = Path(__file__).parents[1]
WORK: Final = ROOT / "build" / "benchmarks"


@click.command()
@click.option("--only", default=",".join(SCENARIOS), help="Names of scenarios, separated by commas.")
@click.option("--quick", is_flag=True, help="One short round of everything with few tokens: roughly how fast it is.")
@click.option("--rounds", type=click.IntRange(1), help="How often each server has its turn.")
@click.option("--reference", is_flag=True, help="Bring the committed results and the pages made of them up to date.")
@click.option("--render", is_flag=True, help="Measure nothing; make the pages of the committed results.")
@click.option("--directory", type=click.Path(path_type=Path), default=WORK, help="On the disk that is measured.")
def main(*, only: str, quick: bool, rounds: int | None, reference: bool, render: bool, directory: Path) -> None:
    """Measure kafka-dt beside a real Kafka broker."""
    console = Console(highlight=False)
    if render:
        write_pages(Results.load(REFERENCE))
        return
    names = [name.strip() for name in only.split(",")]
    if unknown := [name for name in names if name not in SCENARIOS]:
        raise click.UsageError(f"unknown: {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    if quick and reference:
        raise click.UsageError("--quick says roughly how fast everything is: that is no reference")
    plan = QUICK if quick else Plan()
    chosen = [SCENARIOS[name] for name in SCENARIOS if name in names]
    measured, failures = run(chosen, plan.with_rounds(rounds), directory, console)
    if (targets := terminal_targets(measured)).row_count:
        console.print(targets)
    console.print(f"stored in {LATEST}")
    if reference:
        results = Results.load(REFERENCE)
        results.merge(measured)
        results.save(REFERENCE)
        write_pages(Results.load(REFERENCE))  # loaded again, so that the pages show the digits of the file
    if failures:
        raise click.ClickException(f"scenarios that failed, without valid results: {', '.join(failures)}")


def run(scenarios: Sequence[Scenario], plan: Plan, directory: Path, console: Console) -> tuple[Results, Sequence[str]]:
    """Run scenarios one after the other; print and store the results of each when it ends.

    Returns:
        The results, and the names of the scenarios that failed.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    java = find_java()
    about = machine.describe(directory, java, ROOT) | {"kafka_proxy": kafka_proxy_version()}
    beside = [each for each in scenarios if not each.alone]
    alone = [each for each in scenarios if each.alone]
    measured, failures = Results(), []
    if beside:
        with _bench(plan, directory, java, console) as bench:
            failures += _each(beside, bench, about, measured)
    if alone:
        failures += _each(alone, Ledger(plan=plan, folder=directory, console=console), about, measured)
    return measured, failures


def _each(scenarios: Sequence[Scenario], ledger: Ledger, about: Mapping[str, Any], measured: Results) -> list[str]:
    """Run scenarios with the same ledger; return the names of those that failed."""
    failures = []
    for scenario in scenarios:
        begun = time.monotonic()
        try:
            scenario.run(ledger)
        except (LoadFailed, ProcessFailed) as failure:
            ledger.console.print(f"[red]{scenario.name} failed:[/red] {failure}", markup=True)
            failures.append(scenario.name)
            ledger.take_measurements()
            continue
        results = ScenarioResults(dict(about), ledger.take_measurements())
        measured.scenarios[scenario.name] = replace(results, run={**about, "rounds": results.rounds})
        measured.save(LATEST)
        ledger.console.print(terminal_table(scenario, measured.scenarios[scenario.name]))
        ledger.console.print(f"{scenario.name} took {time.monotonic() - begun:.0f} s")
    return failures


@contextmanager
def _bench(plan: Plan, directory: Path, java: Java, console: Console) -> Iterator[Bench]:
    """Give what scenarios with servers work with."""
    classes = compile_load(java)
    kit = Kit(java, resolve(KAFKA_39, java, console.print), write_key_store(directory / "server.pem"), classes)
    with LoadGenerator(java, classes, directory / "jobs") as generator:
        bench = Bench(plan=plan, folder=directory, console=console, kit=kit, generator=generator)
        try:
            yield bench
        finally:
            bench.clear_stage()


if __name__ == "__main__":
    main()
