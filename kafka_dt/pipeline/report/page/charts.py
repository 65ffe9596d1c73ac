"""The plots of the page, as plotly's figures; colours of text and grid are the page's, it sets them when it opens.

Names are escaped: plotly reads a little HTML in labels, and clients choose names.

Colours are Okabe and Ito's, which people with any colour vision tell apart; what a plot shows stands in a table beside
it as well.

Source: Masataka Okabe, Kei Ito, "Color Universal Design", 2008
"""

from __future__ import annotations

import html
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import plotly.graph_objects as go  # type: ignore[import-untyped]

from kafka_dt.pipeline.report.contents import OTHER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from kafka_dt.pipeline.report.contents import Blast, Contents, Listing, Series
    from kafka_dt.pipeline.report.signs import Finding, Signs

COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#B8A900", "#8C8C8C")
"""The last one is for all others."""
_EXPOSED, _TO_LOOK_AT, _ENDED = "exposed", "to be looked at", "tokens that have ended"
_SILENT: Final = "rgba(128,128,128,0.45)"
_LONGEST_LABEL: Final = 40
_MOST_TICKS: Final = 6
_BAR_PX: Final = 34


def figures(contents: Contents) -> dict[str, dict[str, Any]]:
    """Make the plots that have anything to show, by the id of their place in the page."""
    made: dict[str, go.Figure | None] = {
        "theft": _theft(contents.findings, contents.signs),
        **{f"alive-{role}": _areas(series, contents) for role, series in contents.alive.items()},
        "expiring": _owners(contents.expiring),
        "never-used": _owners(contents.never_used),
        "past-half": _owners(contents.past_half),
        "logins": _bars(contents.logins, "logins"),
        "refusals": _bars(contents.refusals, "refusals"),
        "blast": _steps(contents.blast),
    }
    return {name: json.loads(figure.to_json()) for name, figure in made.items() if figure is not None}


def colour_number(name: str, position: int) -> int:
    """Say which of `COLOURS` a series has."""
    return len(COLOURS) - 1 if name == OTHER else position % (len(COLOURS) - 1)


def printable(text: str) -> str:
    """Show what does not print, and what turns the direction of text, as escapes."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def label(text: str) -> str:
    """Make a name safe and short enough for a plot."""
    shown = printable(text)
    cut = shown if len(shown) <= _LONGEST_LABEL else shown[: _LONGEST_LABEL - 1] + "…"
    return html.escape(cut, quote=False)


def _areas(series: Series, contents: Contents) -> go.Figure | None:
    """Draw numbers that hold until the next one; nothing is drawn before the first event or after the last instant."""
    instants = [min(max(instant, contents.since), contents.at) for instant in series.instants]
    style = {"stackgroup": "all", "mode": "lines"}
    traces = [
        go.Scatter(**shared, **style, line={"width": 1, "color": colour, "shape": "hv"})
        for shared, colour in _over_time(series, instants)
    ]
    silences = [_silence(*_plain(each)) for each in contents.silences]
    return _figure(traces, yaxis=_counts("tokens", _highest(series)), shapes=silences, hovermode="x unified")


def _silence(start: str, end: str) -> dict[str, Any]:
    """Cover a time without events: numbers of then are not known, those before it only hold on."""
    place = {"type": "rect", "xref": "x", "yref": "paper", "x0": start, "x1": end, "y0": 0, "y1": 1, "layer": "above"}
    return {**place, "line": {"width": 0}, "fillcolor": _SILENT}


def _bars(series: Series, unit: str) -> go.Figure | None:
    traces = [
        go.Bar(**shared, marker={"color": colour, "line": {"width": 0}})
        for shared, colour in _over_time(series, series.instants)
    ]
    counts = _counts(unit, _highest(series))
    return _figure(traces, yaxis=counts, barmode="stack", bargap=0.05, hovermode="x unified")


def _over_time(series: Series, instants: Sequence[datetime]) -> Iterator[tuple[dict[str, Any], str]]:
    """Give what the trace of each name has, however it is drawn, and its colour."""
    for position, (name, values) in enumerate(series.values.items()):
        if any(values):
            shared = {"x": _plain(instants), "y": list(values), "name": label(name), "hovertemplate": "%{y:,}"}
            yield shared, COLOURS[colour_number(name, position)]


def _owners(listing: Listing) -> go.Figure | None:
    owners = [(label(owner), count) for owner, count in listing.by_owner]
    if rest := listing.total - sum(count for _, count in owners):
        owners.append((OTHER, rest))
    if listing.total == len(owners):  # one bar is as long as the other
        return None
    # Two names may have the same label, so the places have numbers.
    places = list(range(len(owners)))
    bars = go.Bar(
        x=[count for _, count in owners],
        y=places,
        orientation="h",
        marker={"color": COLOURS[0]},
        text=[f"{count:,}" for _, count in owners],
        customdata=[owner for owner, _ in owners],
        hovertemplate="%{customdata}: %{x:,}<extra></extra>",
    )
    axis = {"tickvals": places, "ticktext": [owner for owner, _ in owners], "autorange": "reversed"}
    counts = _counts("tokens", max(count for _, count in owners))
    return _figure([bars], yaxis=axis, xaxis=counts, height=90 + _BAR_PX * len(owners), bargap=0.3)


def _theft(findings: Sequence[Finding], signs: Signs) -> go.Figure | None:
    traces = []
    found = {each.kind for each in findings}
    shown = [sign for sign in signs if sign.kind in found]
    for place, sign in enumerate(shown):
        of_kind = [each for each in findings if each.kind == sign.kind]
        traces.append(
            go.Scatter(
                x=_plain([instant for each in of_kind for instant in (each.first_seen, each.last_seen)]),
                y=[place] * 2 * len(of_kind),
                mode="markers",
                marker={
                    "size": 11,
                    "color": COLOURS[place % len(COLOURS)],
                    "symbol": ["triangle-right", "square"] * len(of_kind),
                },
                text=[label(each.subject) for each in of_kind for _ in range(2)],
                hovertemplate="%{text}<br>%{x}<extra></extra>",
            )
        )
    axis = {
        "tickvals": list(range(len(shown))),
        "ticktext": [sign.title for sign in shown],
        "range": [len(shown) - 0.5, -0.5],
    }
    return _figure(traces, yaxis=axis, height=110 + 44 * len(shown))


def _steps(blast: Blast | None) -> go.Figure | None:
    if blast is None:
        return None
    numbers: dict[str, Counter[str]] = {_EXPOSED: Counter(), _TO_LOOK_AT: Counter(), _ENDED: Counter()}
    places: dict[str, None] = {}
    for each in blast.counts:
        if each.step:
            place = f"step {each.step}: {each.type}"
            places[place] = None
            numbers[_EXPOSED if each.exposed else _TO_LOOK_AT][place] += each.count - each.ended
            numbers[_ENDED][place] += each.ended
    traces = []
    for (name, counted), colour in zip(numbers.items(), (COLOURS[3], COLOURS[4], COLOURS[-1]), strict=True):
        if counts := {place: number for place, number in counted.items() if number}:
            traces.append(
                go.Bar(
                    x=list(counts),
                    y=list(counts.values()),
                    name=name,
                    marker={"color": colour},
                    text=[f"{count:,}" for count in counts.values()],
                    hovertemplate="%{y:,}",
                )
            )
    axis = {"categoryorder": "array", "categoryarray": list(places)}
    highest = max(sum(counted[place] for counted in numbers.values()) for place in places) if places else 0
    legend = {"orientation": "h", "y": 1.15}
    return _figure(traces, barmode="stack", xaxis=axis, yaxis=_counts(None, highest), showlegend=True, legend=legend)


def _figure(traces: Sequence[Any], **layout: Any) -> go.Figure | None:
    if not traces:
        return None
    common: Mapping[str, Any] = {
        "template": "none",
        "height": 320,
        "showlegend": False,
        "margin": {"l": 10, "r": 10, "t": 10, "b": 10},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
    }
    figure = go.Figure(data=list(traces), layout={**common, **layout})
    figure.update_xaxes(automargin=True)
    figure.update_yaxes(automargin=True)
    return figure


def _highest(series: Series) -> int:
    return max((sum(column) for column in zip(*series.values.values(), strict=True)), default=0)


def _counts(title: str | None, highest: int) -> dict[str, Any]:
    """Give an axis of things that are counted: whole numbers, at most `_MOST_TICKS` apart from 0."""
    size = 1
    while highest > _MOST_TICKS * size * 5:
        size *= 10
    step = next(size * digit for digit in (1, 2, 5) if highest <= _MOST_TICKS * size * digit)
    ticks = {"tickvals": list(range(0, highest + step, step)), "tickformat": ",d"}
    return ticks if title is None else {"title": title, **ticks}


def _plain(instants: Sequence[datetime]) -> list[str]:
    """Write instants without their zone, or plotly would show them in the reader's."""
    return [f"{instant:%Y-%m-%d %H:%M:%S}" for instant in instants]
