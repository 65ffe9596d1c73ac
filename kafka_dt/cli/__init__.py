"""The command line: `kafka-dt COMMAND`.

Read `serve.py` first: a small command. `main` is the group of all commands; each lives in a module of its own that is
imported when it is called, so that `kafka-dt token` needs nothing of the server. `errors.py` turns typed errors into
one line and exit status 1.

Exit status: 0; 1 when the operation was refused or failed, with one line on stderr; 2 for wrong usage; 130
when work on all tokens was interrupted.

Source: docs/command-line.md.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import click

from kafka_dt.processes.core_dumps import forbid_core_dumps

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMMANDS: Final = {
    "accept-restore": "kafka_dt.cli.accept_restore:accept_restore",
    "keys": "kafka_dt.cli.keys.commands:keys",
    "pipeline": "kafka_dt.cli.pipeline.commands:pipeline",
    "run": "kafka_dt.cli.run:run",
    "serve": "kafka_dt.cli.serve:serve",
    "token": "kafka_dt.cli.token.commands:token",
    "zookeeper": "kafka_dt.cli.zookeeper:zookeeper",
}
"""Command -> module:attribute of its click command."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed, beside those that it has already.

    lazy_commands: name -> `module:attribute` of each command
    """

    def __init__(self, *, lazy_commands: Mapping[str, str], **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type]  # click's own, passed on
        self._lazy_commands = lazy_commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *self._lazy_commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, None when there is none of this name."""
        if cmd_name not in self._lazy_commands:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._lazy_commands[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command


@click.group(
    cls=LazyGroup,
    lazy_commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(version("kafka-dt"), prog_name="kafka-dt")
def main() -> None:
    """Serve, create and manage delegation tokens for Apache Kafka (KIP-48)."""
    forbid_core_dumps()
