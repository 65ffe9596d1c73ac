"""Print a case: who, where, when, why, and the command that ends it.

write_case(case)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from kafka_dt.cli.output import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_dt.pipeline.cases import Case

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


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(_cut(printable(name)) for name in names[:_NAMES_SHOWN]) + more


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
