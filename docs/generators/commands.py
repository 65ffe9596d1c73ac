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
with 2 for wrong usage, as when an option names a file that is not there. `pipeline ingest --strict` ends with 3 if
lines went to quarantine, `audit verify` with 3 if no file was written in strict mode, `pipeline report --fail-on` with
4 if there is such a case. This page is made of the texts of `--help`.

`kafka-dt --context NAME ...` chooses a context for one command ([use the commands](how-to/commands.md)).

Ctrl-C ends a command with status 130 and a line on standard error; a node ends in order, with status 0. Commands that
work on all tokens (`keys seal`, `keys unseal`, `keys verify`, `token revoke`, and those of `pipeline`) first complete
what is under way, after SIGTERM as well. Run the command again to do the rest. Their `--output json` has the same
counts: `changed` (sealed, unsealed, ended), `unchanged` (already so, valid, not selected), `gone` (another process
deleted the token meanwhile) and `failed`. `total` is the number of all tokens, done or not. `pipeline ingest` ends in
the same way. The other commands of `pipeline` end at once, with a line that says how to go on; so do all of them while
Spark starts.
"""


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *(_chapter(context) for context in commands(click.Context(main, info_name="kafka-dt")))])


def commands(context: click.Context) -> Iterator[click.Context]:
    """Give the commands that do something, in the order of their names."""
    command = context.command
    if not isinstance(command, click.Group):
        yield context
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        if found is not None:
            yield from commands(click.Context(found, info_name=name, parent=context))


def _chapter(context: click.Context) -> str:
    command = context.command
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parameters = (parameter.get_help_record(context) for parameter in command.get_params(context))
    entries = (_entry(*record) for record in parameters if record is not None and record[1])
    text = cleandoc(command.help or "")
    examples = "\n".join(line.strip() for line in (command.epilog or "").splitlines()[2:])
    shown = f"```text\n{usage}\n```\n\n```sh\n{examples}\n```\n\n"
    return f"## `{context.command_path}`\n\n{text}\n\n{shown}" + "\n".join(entries)


def _entry(flags: str, text: str) -> str:
    """Write one option; brackets stand for themselves."""
    return f"`{flags}`\n: {' '.join(text.split())}\n"
