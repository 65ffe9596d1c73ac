"""Print cases: who, where, when, why, and the command that ends each.

    write_case(case)
    click.echo(case_count(cases))       # 16, 9 of them high
    write_worst(cases)                  # the worst three

Clients choose some of the names, so they are cut, and control characters in them are escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kafka_dt.cli.output import counted, printable
from kafka_dt.pipeline.cases import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.pipeline.cases import Case

_CASES_SHOWN: Final = 3
"""How many cases are printed; the page has all."""
_NAMES_SHOWN: Final = 3
"""How many owners or addresses of a case are shown."""
_WIDTH: Final = 100
"""How long a reason may be; clients choose some of it."""


def write_case(case: Case) -> None:
    """Print a case."""
    who = _some(case.owners) or "no owner"
    click.echo(f"  {case.severity:6} {who}{f' from {where}' if (where := _some(case.addresses)) else ''}")
    click.echo(f"         {case.first_seen:%Y-%m-%d %H:%M} to {case.last_seen:%Y-%m-%d %H:%M}, {case.id}")
    for reason in case.why:
        click.echo(f"         {_cut(printable(reason))}")
    click.echo(f"         {case.ending.command or case.ending.why}")


def case_count(cases: Sequence[Case]) -> str:
    """Say how many cases there are, and how many of them are of the highest severity."""
    high = sum(case.severity == SEVERITIES[0] for case in cases)
    return f"{len(cases):,}{f', {high:,} of them {SEVERITIES[0]}' if high else ''}"


def write_worst(cases: Sequence[Case]) -> None:
    """Print the first of some cases, which are in the order of their urgency."""
    for case in cases[:_CASES_SHOWN]:
        write_case(case)
    if (more := len(cases) - _CASES_SHOWN) > 0:
        click.echo(f"  and {counted(more, 'more case')} on the page")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(_cut(printable(name)) for name in names[:_NAMES_SHOWN]) + more


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
