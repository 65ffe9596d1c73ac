"""Results as tables: for the terminal, and as Markdown for docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.table import Table

from benchmarks import metrics
from benchmarks.metrics import METRICS
from benchmarks.results import Case, Results, ScenarioResults
from benchmarks.scenarios import Scenario
from benchmarks.servers import BROKER
from benchmarks.statistics import Spread, ratios
from benchmarks.targets import TARGETS, Target

_TARGET_HEADINGS: Final = ("work", "target: times the broker's", "measured", "met")


def targets_table(results: Results, targets: Sequence[Target] = TARGETS) -> str:
    """Write what is aimed at and what was reached, as Markdown."""
    rows = [_target_row(target, results) or (target.work, target.words, "not measured", "") for target in targets]
    return markdown(_TARGET_HEADINGS, [(*row[:3], "**no**" if row[3] == "no" else row[3]) for row in rows])


def terminal_targets(results: Results, targets: Sequence[Target] = TARGETS) -> Table:
    """Lay out for a terminal what was reached of the targets that were measured."""
    rows = [row for target in targets if (row := _target_row(target, results))]
    return _laid_out("Targets", _TARGET_HEADINGS, rows)


def _target_row(target: Target, results: Results) -> tuple[str, str, str, str] | None:
    reached = target.reached(results)
    if reached is None:
        return None
    return target.work, target.words, _spread(reached), "yes" if target.met(reached) else "no"


def table(scenario: Scenario, measured: ScenarioResults) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Give the headings and rows of a scenario: a row for each case and subject.

    Values are medians; the one that subjects are compared by, and its ratio, come with their spread, and so do those
    that are about different data in each round.
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
            cells = [
                _cell(measured, case, subject, name, spreads=METRICS[name].spreads or name == scenario.compared)
                for name in columns
            ]
            ratios_cell = [_ratio(scenario, measured, case, subject)] if beside else []
            rows.append((case.label if number == 0 else "", subject, *cells, *ratios_cell))
    return headings, rows


def terminal_table(scenario: Scenario, measured: ScenarioResults) -> Table:
    """Lay the table of a scenario out for a terminal."""
    return _laid_out(scenario.title, *table(scenario, measured))


def _laid_out(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    laid_out = Table(title=title, title_justify="left")
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
