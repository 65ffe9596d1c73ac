"""The console, tables and instants for people: texts as they are, whole however narrow the terminal, for copying.

A name that looks like rich's markup (`[red]`) or like an emoji's name (`User:key:`) is neither.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import IO, TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Container

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WIDE: Final = 10_000


def console(file: IO[str] | None = None) -> Console:
    """Make the console for tables: stdout, or a file. A terminal wraps what is too long for it; nothing is cut."""
    return Console(file=file, highlight=False, markup=False, emoji=False, width=_WIDE)


def messages(*, stderr: bool = False) -> Console:
    """Make the console for all else, as wide as the terminal: stdout, or stderr."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def table(*names: str, numbers: Container[str] = ()) -> Table:
    """Make a table without lines, of columns with these names; those that hold `numbers` are flush right."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        made.add_column(name, no_wrap=True, justify="right" if name in numbers else "left")
    return made


def iso_utc(timestamp_ms: int) -> str:
    """Return an instant as people read it, to the second: `2026-11-21T08:00:00Z`; the number if it has no date."""
    try:
        instant = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return f"{instant:%Y-%m-%dT%H:%M:%S}Z"
