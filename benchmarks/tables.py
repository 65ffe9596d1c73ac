"""Results as tables: for the terminal, and as Markdown for docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from benchmarks import metrics
from benchmarks.metrics import METRICS
from benchmarks.results import Case, Results, ScenarioResults
from benchmarks.scenarios import Scenario
from benchmarks.servers import BROKER
from benchmarks.statistics import Spread, ratios
from benchmarks.targets import TARGETS, Target


def targets_table(results: Results, targets: Sequence[Target] = TARGETS) -> str:
    """Write what is aimed at and what was reached, as Markdown."""
    rows = []
    for target in targets:
        reached = target.reached(results)
        cells = (
            ("not measured", "") if reached is None else (_spread(reached), "yes" if target.met(reached) else "**no**")
        )
        rows.append((target.work, target.words, *cells))
    return markdown(("work", "target: times the broker's", "measured", "met"), rows)


def table(scenario: Scenario, measured: ScenarioResults) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Give the headings and rows of a scenario: a row for each case and subject.

    Values are medians; the one that subjects are compared by, and its ratio, come with their spread.
    """
    present = {name for each in measured.measurements for name in each.values}
    columns = [name for name in METRICS if name in present]
    compared = METRICS[scenario.compared].heading
    # Of what a broker does not do there is nothing to divide by.
    beside = any(each.subject == BROKER.name for each in measured.measurements)
    ratio = [f"{compared}: times the broker's"] if beside else []
    headings = ("", "", *(METRICS[name].heading for name in columns), *ratio)
    rows: list[Sequence[str]] = []
    for case in measured.cases():
        for number, subject in enumerate(measured.subjects(case)):
            cells = [_cell(measured, case, subject, name, spreads=name == scenario.compared) for name in columns]
            ratios_cell = [_ratio(scenario, measured, case, subject)] if beside else []
            rows.append((case.label if number == 0 else "", subject, *cells, *ratios_cell))
    return headings, rows


def terminal_table(scenario: Scenario, measured: ScenarioResults) -> Table:
    """Lay the table of a scenario out for a terminal."""
    headings, rows = table(scenario, measured)
    laid_out = Table(title=scenario.title, title_justify="left")
    for number, heading in enumerate(headings):
        laid_out.add_column(heading, justify="left" if number <= 1 else "right")
    for row in rows:
        laid_out.add_row(*row)
    return laid_out


def _cell(measured: ScenarioResults, case: Case, subject: str, name: str, *, spreads: bool) -> str:
    values = measured.by_round(case, subject, name)
    if not values:
        return ""
    spread = Spread.of(list(values.values()))
    texts = [metrics.written(name, value) for value in (spread.median, spread.low, spread.high)]
    return texts[0] if len(values) == 1 or not spreads else f"{texts[0]} ({texts[1]} to {texts[2]})"


def _ratio(scenario: Scenario, measured: ScenarioResults, case: Case, subject: str) -> str:
    if subject == BROKER.name:
        return ""
    for name in (scenario.compared, "token_ms"):
        ours, brokers = (measured.by_round(case, who, name) for who in (subject, BROKER.name))
        if ratio := ratios(ours, brokers):
            return _spread(ratio)
    return ""


def _spread(spread: Spread) -> str:
    return f"{metrics.digits(spread.median)} ({metrics.digits(spread.low)} to {metrics.digits(spread.high)})"


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay a table out as Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
