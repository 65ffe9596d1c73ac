"""The parts of docs/performance.md, and of two other pages, that are made of results.

The pages are written by hand, except the parts between `<!-- begin NAME -->` and `<!-- end NAME -->`: the targets, the
model of workers, the signs of theft, and one part for each scenario. `write_pages` replaces these parts and draws the
pictures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.detection.by_sign import signs_table, without_signs
from benchmarks.gateways import KAFKA_PROXY
from benchmarks.results import Results, ScenarioResults
from benchmarks.scenarios import SCENARIOS
from benchmarks.sizing import sizing_table
from benchmarks.tables import markdown, table, targets_table

_DOCS: Final = Path(__file__).parents[1] / "docs"
PAGES: Final = (_DOCS / "performance.md", _DOCS / "security.md", _DOCS / "how-to" / "pipeline-report.md")
"""A part is on one of them."""

_DETECTION: Final = "detection"
_BLOCK: Final = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n).*?(<!-- end (?P=name) -->)", re.DOTALL)


def write_pages(results: Results) -> None:
    """Bring the pages and the pictures of docs/performance.md up to date."""
    from benchmarks import plots  # noqa: PLC0415 - matplotlib is not needed for anything else

    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), results), encoding="utf-8")
    plots.draw(results, _DOCS / "performance")


def filled(page: str, results: Results) -> str:
    """Put the parts that are made of results into a page; a part whose results are missing stays as it is."""
    made = dict(_parts(results))

    def part(block: re.Match[str]) -> str:
        text = made.get(block["name"])
        return block[0] if text is None else f"{block[1]}{text}{block[3]}"

    return _BLOCK.sub(part, page)


def _parts(results: Results) -> Iterator[tuple[str, str]]:
    """Make every part: its name and its text."""
    yield "targets", targets_table(results)
    if "workers" in results.scenarios:
        yield "sizing", markdown(*sizing_table(results.scenarios["workers"]))
    if _DETECTION in results.scenarios:
        yield "signs", markdown(*signs_table(results.scenarios[_DETECTION]))
    for name, measured in results.scenarios.items():
        scenario = SCENARIOS[name]
        picture = f"![{scenario.title}](performance/{name}.svg)\n\n" if scenario.axis or scenario.lines else ""
        text = markdown(*table(scenario, without_signs(measured) if name == _DETECTION else measured))
        yield name, f"{scenario.about}\n\n{picture}{text}\n{_provenance(measured)}\n"


def _provenance(measured: ScenarioResults) -> str:
    run = measured.run
    rounds = f"{run['rounds']} round{'s'[: run['rounds'] != 1]}"
    others = {each.subject for each in measured.measurements} & {KAFKA_PROXY.name}
    with_others = "".join(f", {name} {run['kafka_proxy']}" for name in others)
    form = f", the protocol {run['protocol']}" if "protocol" in run else ""
    return (
        f"{rounds}, {run['begun'][:10]}, revision {run['revision'] or 'unknown'}: {run['cores']} cores "
        f"of {run['processor']}, Linux {run['kernel']}, Python {run['python']}{form}, Java {run['java']}{with_others}; "
        f"making one write durable takes {run['fsync_ms']:g} ms."
    )
