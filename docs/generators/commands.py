"""The command line reference, made of click's own declarations."""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD: Final = """\
# Command line

Every command ends with status 0; with 1 when the operation was refused or failed, after one line on standard error;
with 2 for wrong usage. `--help` tells the same as this page, which is generated from it.

Work on all tokens (`keys seal`, `keys unseal`, `keys verify`, `token expire-all`) that Ctrl-C or SIGTERM interrupted
ends with status 130, after what it has done so far. It can be run again. Its `--output json` counts by the same names
in every command: `changed` (sealed, unsealed, ended), `unchanged` (as it should be, valid, not meant), `gone` (others
deleted it meanwhile) and `failed`. `total` is how many tokens there are, done or not.
"""


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *(_chapter(context) for context in _commands(click.Context(main, info_name="kafka-dt")))])


def _commands(context: click.Context) -> Iterator[click.Context]:
    """Give the commands that do something, in the order of their names."""
    command = context.command
    if not isinstance(command, click.Group):
        yield context
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        if found is not None:
            yield from _commands(click.Context(found, info_name=name, parent=context))


def _chapter(context: click.Context) -> str:
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parameters = (parameter.get_help_record(context) for parameter in command.get_params(context))
    entries = (_entry(*record) for record in parameters if record is not None and record[1])
    text = cleandoc(command.help or "")
    return f"## `{context.command_path}`\n\n{text}\n\n```text\n{usage}\n```\n\n" + "\n".join(entries)


def _entry(flags: str, text: str) -> str:
    """Write one option; brackets stand for themselves."""
    return f"`{flags}`\n: {' '.join(text.split())}\n"
