"""The forms in which commands print their result, and the words that they share.

@click.command()
@output_option()
def command(*, output: Output) -> None:
    if output is Output.JSON:
        write_json({"tokens": 2})
    else:
        click.echo(counted(2, "token"))

The table is for people and may change. The JSON is for programs: its fields are stable.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


class Output(StrEnum):
    """The forms of `--output`."""

    TABLE = "table"
    JSON = "json"
    PROPERTIES = "properties"
    JAAS = "jaas"


def output_option(
    *forms: Output,
    help: str = "The form of the result.",  # noqa: A002 - as click's own
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--output`: the argument `output`. The forms are a table and JSON unless others are given."""
    return click.option(
        "--output",
        type=click.Choice([form.value for form in forms or (Output.TABLE, Output.JSON)]),
        default=Output.TABLE.value,
        show_default=True,
        callback=lambda _context, _parameter, value: Output(value),
        help=help,
    )


def write_json(document: Mapping[str, object] | Sequence[object], *, indent: int | None = None) -> None:
    """Print a result for programs."""
    click.echo(json.dumps(document, indent=indent))


def counted(number: int, noun: str) -> str:
    """Write how many there are of something: "1 token", "2 tokens"."""
    return f"{number:,} {noun}{'s'[: number != 1]}"


def rate(count: int, seconds: float) -> str:
    """Write how many there were a second, to follow their number; nothing if there was none."""
    return f", {count / seconds:,.0f}/s" if count and seconds > 0 else ""


def printable(text: str) -> str:
    """Escape the characters that could steer a terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
