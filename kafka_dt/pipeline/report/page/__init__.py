"""The report as one HTML file that needs nothing else: no network, no server, no other file.

    Path("report.html").write_text(html(contents), encoding="utf-8")

Read `report.html.j2` first, the template. Its styles and its script are `report.css` and `report.js`, its plots those
of `charts.py`. plotly's own script is part of the file, 5 MB of it.

Names in a report come from events, and clients choose some of them. What an expression of the template gives is made
printable and then escaped, whether the template thinks of it or not. The policy in the page (CSP) names its scripts by
their hashes and lets nothing be loaded, so a script that came in by a name in an event would not run.

Source: W3C, "Content Security Policy Level 3"
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from kafka_dt.pipeline.report.page import charts
from kafka_dt.pipeline.report.signs import Severity

if TYPE_CHECKING:
    from kafka_dt.pipeline.report.contents import Contents, Series

__all__ = ["html"]

_CASES: Final = 300
"""How many cases the page shows."""
_NAMES: Final = 3
"""How many addresses of a case are in its title."""
_RELATED: Final = 10
"""How many other cases a case names."""
_WORST: Final = 3
"""How many cases are on the first screen."""
_ROWS: Final = 25
"""How many rows of a list of tokens it shows."""
_REACHED: Final = 100
"""How many rows of a blast radius it shows."""
_SEVERITIES: Final[Mapping[Severity, str]] = {
    Severity.HIGH: "act now",
    Severity.MEDIUM: "today",
    Severity.LOW: "when there is time",
}
"""What a severity asks for."""

_ROLES: Final[Mapping[str, tuple[str, str]]] = {
    "owner": ("By owner", "The principal that their logins act as."),
    "requester": (
        "By requester",
        "The principal that asked for them: the owner, unless another one may ask for the owner (KIP-373).",
    ),
    "renewer": ("By renewer", "The principals that may renew them; a token with several renewers counts for each."),
}
"""Title and meaning of the plots of living tokens."""


def html(contents: Contents) -> str:
    """Write a report as HTML."""
    figures = charts.figures(contents)
    cases = contents.cases[:_CASES]
    plotly, script = get_plotlyjs(), _file("report.js")
    template = _environment().get_template("report.html.j2")
    return template.render(
        report=contents,
        cases=cases,
        shown_cases={case.id for case in cases},
        shown_names=_NAMES,
        shown_related=_RELATED,
        worst=_WORST,
        titles={sign.kind: sign.title for sign in contents.signs},
        kinds={kind for case in cases for kind in case.kinds},
        high=sum(case.severity == Severity.HIGH for case in contents.cases),
        rows=_ROWS,
        reached_rows=_REACHED,
        logins=_events(contents, "ok"),
        refused=_events(contents, "refused"),
        figures=figures,
        figures_json=Markup(_json(figures)),  # noqa: S704 - escaped for where it stands
        colours=charts.COLOURS,
        roles=_ROLES,
        severities=_SEVERITIES,
        style=Markup(_file("report.css")),  # noqa: S704 - our own file
        plotly=Markup(plotly),  # noqa: S704 - plotly's own file
        script=Markup(script),  # noqa: S704 - our own file
        policy=_policy(plotly, script),
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__name__, ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "instant": lambda value: "-" if value is None else f"{value:%Y-%m-%d %H:%M}",
        "number": lambda value: f"{value:,}",
        "share": lambda value: "-" if value is None else f"{value:.0%}",
        "duration": _duration,
    }
    environment.globals["summed"] = _summed
    return environment


def _printable(value: Any) -> Any:
    return charts.printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _summed(series: Series) -> list[tuple[str, int, int, int, int]]:
    """Give name, number of the colour, last value, greatest value and sum of each series."""
    return [
        (name, charts.colour_number(name, position), values[-1], max(values), sum(values))
        for position, (name, values) in enumerate(series.values.items())
        if any(values)
    ]


def _events(contents: Contents, outcome: str) -> int:
    return sum(each.events for each in contents.activity if (each.type, each.outcome) == ("login", outcome))


def _policy(*scripts: str) -> str:
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _json(value: Any) -> str:
    """Write JSON that cannot end the script element it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _file(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


def _duration(value: timedelta) -> str:
    days, hours = value / timedelta(days=1), value / timedelta(hours=1)
    return f"{days:g} days" if days > 1 else f"{hours:g} {'hour' if hours == 1 else 'hours'}"
