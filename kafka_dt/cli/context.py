"""`kafka-dt context add|use|list|remove`: names for servers and the files of their logins.

- table: for people; the current context has a star.
- json: for programs, stable: an array of objects with `name`, `current`, `bootstrap_server` and `command_config`.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_dt.cli import SuggestingGroup
from kafka_dt.cli.contexts import Context, Contexts
from kafka_dt.cli.options import EXISTING_FILE, bootstrap_server_option, example
from kafka_dt.cli.output import Output, output_option, printable, write_json
from kafka_dt.cli.tables import console, table

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.group(cls=SuggestingGroup)
def context() -> None:
    """Name servers and logins for commands."""


@example("kafka-dt context add prod --bootstrap-server kafka1:9093 --command-config admin.properties")
@context.command()
@click.argument("name")
@bootstrap_server_option("The servers of the context.")
@click.option(
    "--command-config",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Kafka client properties with the login. The context keeps the path; the secrets stay in the file.",
)
def add(*, name: str, bootstrap_server: str | None, command_config: Path | None) -> None:
    """Add a context. The first one is the current one at once."""
    if bootstrap_server is None and command_config is None:
        raise click.UsageError("Missing option '--bootstrap-server' or '--command-config'.")
    contexts = Contexts.load()
    if name in contexts.by_name:
        raise click.ClickException(f"context {name!r} exists; remove it first: kafka-dt context remove {name}")
    path = None if command_config is None else str(command_config.absolute())
    contexts.having(name, Context(bootstrap_server, path)).save()
    click.echo(f"added {printable(name)}")


@example("kafka-dt context use prod", "kafka-dt --context test token list")
@context.command()
@click.argument("name")
def use(*, name: str) -> None:
    """Make a context the current one.

    Commands without --bootstrap-server and --command-config use it. `kafka-dt --context NAME ...` and the variable
    KAFKA_DT_CONTEXT choose one for a single command. A command that is given --bootstrap-server or --command-config
    uses no context.
    """
    contexts = Contexts.load()
    contexts.get(name)
    replace(contexts, current=name).save()
    click.echo(f"using {printable(name)}")


@example("kafka-dt context list")
@context.command("list")
@output_option()
def list_contexts(*, output: Output) -> None:
    """List the contexts; a star marks the current one."""
    contexts = Contexts.load()
    if output is Output.JSON:
        write_json(
            [
                {"name": name, "current": name == contexts.current, **asdict(each)}
                for name, each in sorted(contexts.by_name.items())
            ],
            indent=2,
        )
    elif contexts.by_name:
        made = table("", "NAME", "BOOTSTRAP SERVER", "COMMAND CONFIG")
        for name, each in sorted(contexts.by_name.items()):
            star = "*" if name == contexts.current else ""
            made.add_row(star, *_cells(name, each.bootstrap_server, each.command_config))
        console().print(made)
    else:
        click.echo("no contexts")


@example("kafka-dt context remove prod")
@context.command()
@click.argument("name")
def remove(*, name: str) -> None:
    """Remove a context. The file with its login stays."""
    contexts = Contexts.load()
    contexts.get(name)
    contexts.without(name).save()
    click.echo(f"removed {printable(name)}")


def _cells(*cells: str | None) -> Sequence[str]:
    return [printable(cell or "-") for cell in cells]
