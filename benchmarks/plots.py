"""The pictures of docs/performance.md: SVG, drawn by matplotlib from the stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.metrics import METRICS, PEAK
from benchmarks.results import Case, Results, ScenarioResults
from benchmarks.scenarios import SCENARIOS, Scenario
from benchmarks.servers import BROKER
from benchmarks.statistics import Spread

_BROKER_COLOUR: Final = "#8a8f98"
_COLOURS: Final = ("#1f6feb", "#7fb2ff", "#0a9396", "#bb6c00")
_WIDE: Final = 30
"""Values that are farther apart than this are drawn on a logarithmic axis."""


def draw(results: Results, folder: Path) -> None:
    """Draw every picture that there are results for: `<scenario>.svg` each."""
    folder.mkdir(parents=True, exist_ok=True)
    # The same results give the same file.
    with mpl.rc_context({"svg.hashsalt": "kafka-dt", "svg.fonttype": "none", "font.size": 9}):
        for name, measured in results.scenarios.items():
            scenario = SCENARIOS[name]
            if any(each.series for each in measured.measurements):
                _save(_over_time(measured), folder / f"{name}.svg")
            elif any(each.case.events for each in measured.measurements):
                _save(_over_sizes(scenario, measured), folder / f"{name}.svg")
            elif scenario.lines:
                _save(_growth(scenario, measured), folder / f"{name}.svg")
            elif scenario.axis:
                _save(_bars(scenario, measured), folder / f"{name}.svg")


def _bars(scenario: Scenario, measured: ScenarioResults) -> Figure:
    """Draw medians as bars, a group a case, with lines from the smallest to the largest value."""
    metric = scenario.compared
    drawn = [each for each in measured.measurements if metric in each.values]
    cases = list(dict.fromkeys(each.case for each in drawn))
    subjects = list(dict.fromkeys(each.subject for each in drawn))
    values = [each.values[metric] for each in drawn]
    figure = Figure(figsize=(8, 1.2 + 0.24 * len(cases) * len(subjects)), layout="constrained")
    axes = figure.add_subplot()
    height = 0.8 / len(subjects)
    colours = dict(zip([each for each in subjects if each != BROKER.name], _COLOURS, strict=False))
    for number, subject in enumerate(subjects):
        spreads = {position: _spread(measured, case, subject, metric) for position, case in enumerate(cases)}
        there = {position: spread for position, spread in spreads.items() if spread is not None}
        axes.barh(
            [position + number * height for position in there],
            [spread.median for spread in there.values()],
            height * 0.9,
            xerr=[
                [spread.median - spread.low for spread in there.values()],
                [spread.high - spread.median for spread in there.values()],
            ],
            label=subject,
            color=colours.get(subject, _BROKER_COLOUR),
            error_kw={"linewidth": 0.8},
        )
    axes.set_yticks([position + 0.4 - height / 2 for position in range(len(cases))], [case.label for case in cases])
    axes.invert_yaxis()
    axes.set_xlabel(scenario.axis)
    if max(values) > _WIDE * min(values) > 0:
        axes.set_xscale("log")
    _tidy(axes)
    axes.legend(frameon=False, loc="best")
    return figure


def _over_time(measured: ScenarioResults) -> Figure:
    """Draw latencies and memory, second by second."""
    figure = Figure(figsize=(8, 6), layout="constrained")
    latency, memory = figure.subplots(2, 1, sharex=True)
    for colour, each in zip(_COLOURS, measured.measurements, strict=False):
        for name, style in (("p50_ms", "-"), ("p99_ms", ":")):
            label = f"{each.case.operation}, {METRICS[name].heading.partition(',')[0]}"
            latency.plot(each.series[name], style, color=colour, linewidth=0.9, label=label)
    latency.set_ylabel("latency, ms")
    latency.set_yscale("log")
    latency.legend(frameon=False, ncols=2)
    memory.plot(measured.measurements[0].series["pss_mib"], color=_COLOURS[0])
    memory.set_ylabel("PSS, MiB")
    memory.set_ylim(bottom=0)
    memory.set_xlabel("seconds")
    for axes in (latency, memory):
        _tidy(axes)
    return figure


def _over_sizes(scenario: Scenario, measured: ScenarioResults) -> Figure:
    """Draw how what is compared, and memory, grow with the number of events."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    subjects = list(dict.fromkeys(each.subject for each in measured.measurements))
    for axes, metric, label in zip(
        figure.subplots(1, 2), (scenario.compared, PEAK), (scenario.axis, METRICS[PEAK].heading), strict=True
    ):
        for colour, subject in zip(_COLOURS, subjects, strict=False):
            cases = [case for case in measured.cases() if subject in measured.subjects(case)]
            spreads = {case.events / 1e6: _spread(measured, case, subject, metric) for case in cases}
            there = {size: spread.median for size, spread in spreads.items() if spread is not None}
            axes.plot(there.keys(), there.values(), "o-", color=colour, linewidth=1, markersize=4, label=subject)
        axes.set_xlabel("million events")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.legend(frameon=False)
        _tidy(axes)
    return figure


def _growth(scenario: Scenario, measured: ScenarioResults) -> Figure:
    """Draw how many times as much each value is as at the smallest size, beside a line that grows with the size."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    for axes, (over, lines) in zip(figure.subplots(1, len(scenario.lines)), scenario.lines.items(), strict=True):
        operations = {operation for operation, _ in lines.values()}
        sizes = sorted({getattr(case, over) for case in measured.cases() if case.operation in operations})
        for name, (operation, metric) in lines.items():
            medians = [_median_at(measured, operation, metric, over, size) for size in sizes]
            axes.plot(sizes, [each / medians[0] for each in medians], "o-", linewidth=1, markersize=3, label=name)
        axes.plot(sizes, [size / sizes[0] for size in sizes], "--", color=_BROKER_COLOUR, linewidth=1, label="linear")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(over)
        axes.legend(frameon=False)
        _tidy(axes)
    figure.supylabel("times as much")
    return figure


def _median_at(measured: ScenarioResults, operation: str, metric: str, over: str, size: int) -> float:
    (case,) = (each for each in measured.cases() if each.operation == operation and getattr(each, over) == size)
    (subject,) = measured.subjects(case)
    return Spread.of(list(measured.by_round(case, subject, metric).values())).median


def _spread(measured: ScenarioResults, case: Case, subject: str, metric: str) -> Spread | None:
    values = measured.by_round(case, subject, metric)
    return Spread.of(list(values.values())) if values else None


def _tidy(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="both", linewidth=0.3)
    axes.set_axisbelow(True)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
